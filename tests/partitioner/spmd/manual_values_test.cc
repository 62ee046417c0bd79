// SPDX-License-Identifier: Apache-2.0
// Values that are manual without a boundary: parameters, results and what is made of them. Each
// device has a value of its own, with the shape that is written.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/api/report.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

// MANUAL is manual on all devices; FREE_k also has dimension k sharded over the other half of them.
std::string Of(const std::string& text) {
  return absl::StrReplaceAll(text, {{"MANUAL", "sharding={manual}"},
                                    {"FREE_0", "{devices=[2,1,4]<=[8] last_tile_dims={manual}}"},
                                    {"FREE_1", "{devices=[1,2,4]<=[8] last_tile_dims={manual}}"},
                                    {"WHOLE",
                                     "{devices=[1,1,4,2]<=[2,4]T(1,0) "
                                     "last_tile_dims={manual, replicated}}"},
                                    {"SCALAR",
                                     "{devices=[4,2]<=[2,4]T(1,0) "
                                     "last_tile_dims={manual, replicated}}"}});
}

void Verify(const std::string& text) {
  VerifyFamily({.text = Of(text), .meshes = {{{8}}}, .no_fallback = true});
}

TEST(ManualValues, ParametersAndResultsKeepTheirShapes) {
  const auto p = Done(Of(R"(
  x = f32[8,4] parameter(0), MANUAL
  y = f32[8,4] abs(x), MANUAL
  z = f32[64,4] parameter(1), sharding={devices=[8,1]<=[8]}
  n = f32[64,4] negate(z)
  ROOT t = (f32[8,4], f32[64,4]) tuple(y, n), sharding={{manual}, {devices=[8,1]<=[8]}}
)"),
                      8);
  EXPECT_THAT(LocalText(*p), HasSubstr("(x: f32[8,4], z: f32[8,4]) -> (f32[8,4], f32[8,4])"));
  EXPECT_THAT(LocalText(*p), HasSubstr("{{manual}, {devices=[8,1]<=[8]}}"));
  EXPECT_EQ(TotalBytesMoved(p->local), 0);
}

TEST(ManualValues, LeaveTheirRegionByABoundary) {
  const auto p = Done(Of(R"(
  x = f32[8] parameter(0), MANUAL
  y = f32[8] abs(x), MANUAL
  ROOT r = f32[64] custom-call(y), custom_call_target="SPMDShardToFullShape", sharding={devices=[8]<=[8]}
)"),
                      8);
  EXPECT_THAT(LocalText(*p), HasSubstr("(x: f32[8]) -> f32[8]"));
  EXPECT_EQ(TotalBytesMoved(p->local), 0);
}

TEST(ManualValues, AreReducedWithConstantsOfTheirRegion) {
  Verify(R"(
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[8,4] parameter(0), MANUAL
  c = f32[] constant(3), MANUAL
  ROOT r = f32[8] reduce(x, c), dimensions={1}, to_apply=add, MANUAL
}
)");
}

TEST(ManualValues, AreFedToEachDevice) {
  const auto p = Done(Of(R"(
  t = token[] after-all()
  i = ((f32[8], f32[4]), token[]) infeed(t), sharding={{manual}, {manual}, {maximal device=0}}
  d = (f32[8], f32[4]) get-tuple-element(i), index=0, sharding={{manual}, {manual}}
  x = f32[8] get-tuple-element(d), index=0, MANUAL
  ROOT r = f32[64] custom-call(x), custom_call_target="SPMDShardToFullShape", sharding={devices=[8]<=[8]}
)"),
                      8);
  EXPECT_THAT(LocalText(*p), HasSubstr("((f32[8]{0}, f32[4]{0}), token[]) infeed("));
}

TEST(ManualValues, AreChosenByAPredicateOfEachDevice) {
  Verify(R"(
yes {
  x = f32[8] parameter(0), MANUAL
  ROOT r = f32[8] negate(x), MANUAL
}

no {
  x = f32[8] parameter(0), MANUAL
  ROOT r = f32[8] add(x, x), MANUAL
}

ENTRY main {
  p = pred[] parameter(0), MANUAL
  x = f32[8] parameter(1), MANUAL
  ROOT r = f32[8] conditional(p, x, x), true_computation=yes, false_computation=no, MANUAL
}
)");
}

constexpr char kLoop[] = R"(
less {
  s = (s32[], f32[8,4]) parameter(0), sharding={SCALAR, FREE_1}
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[8,4]) parameter(0), sharding={SCALAR, FREE_1}
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[8,4] add(x, x)
  ROOT r = (s32[], f32[8,4]) tuple(j, y), sharding={SCALAR, FREE_1}
}

ENTRY main {
  x = f32[8,4] parameter(0), sharding=FREE_1
  z = s32[] constant(0)
  t = (s32[], f32[8,4]) tuple(z, x), sharding={SCALAR, FREE_1}
  w = (s32[], f32[8,4]) while(t), condition=less, body=body, sharding={SCALAR, FREE_1}
  ROOT r = f32[8,4] get-tuple-element(w), index=1, sharding=FREE_1
}
)";

TEST(ManualValues, AreCarriedByLoopsOnShardsOfTheFreeAxes) {
  Verify(kLoop);
  const auto p = Done(Of(kLoop), 8);
  EXPECT_THAT(LocalText(*p), HasSubstr("(x: f32[8,2]) -> f32[8,2]"));
  EXPECT_EQ(TotalBytesMoved(p->local), 0);
}

TEST(ManualValues, AreContractedOverTheFreeAxes) {
  const std::string text = Of(R"(
  x = f32[8,64] parameter(0), sharding=FREE_1
  y = f32[64,8] parameter(1), sharding=FREE_0
  ROOT d = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding=WHOLE
)");
  Verify(text);
  EXPECT_EQ(BytesMoved(text), 8 * 8 * 4);
}

TEST(ManualValues, ElementsOfATupleMayBeOfSeveralRegions) {
  Verify(R"(
  x = f32[8] parameter(0), MANUAL
  y = f32[16] parameter(1), sharding={devices=[8]<=[8]}
  t = (f32[8], f32[16]) tuple(x, y), sharding={{manual}, {devices=[8]<=[8]}}
  a = f32[8] get-tuple-element(t), index=0, MANUAL
  b = f32[16] get-tuple-element(t), index=1
  c = f32[8] negate(a), MANUAL
  d = f32[16] negate(b)
  ROOT r = (f32[8], f32[16]) tuple(c, d), sharding={{manual}, {devices=[8]<=[8]}}
)");
}

TEST(ManualValues, DoNotMeetOthersWithoutABoundary) {
  EXPECT_EQ(DiagnosticCode(Refused(Of(R"(
  x = f32[16] parameter(0), MANUAL
  y = f32[16] parameter(1), sharding={devices=[8]<=[8]}
  ROOT r = f32[16] add(x, y)
)"),
                                   8)),
            "E175");
}

}  // namespace
}  // namespace shardcall
