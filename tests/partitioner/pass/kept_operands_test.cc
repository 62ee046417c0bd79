// SPDX-License-Identifier: Apache-2.0
// Barriers stand in front of what XLA would make a wrong program of, and of nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

std::string After(const std::string& body, const std::string& computations = "") {
  return TextAfter(*MakeKeptOperands(), computations +
                                            "ENTRY e {\n  x = f32[8,4] parameter(0)\n"
                                            "  i = s32[] parameter(1)\n  z = s32[] constant(0)\n" +
                                            body + "}\n");
}

TEST(KeptOperands, AnUpdateByElementsOfWhatItUpdates) {
  EXPECT_THAT(After(R"(
  u = f32[4,4] slice(x), slice={[1:5], [0:4]}
  ROOT r = f32[8,4] dynamic-update-slice(x, u, i, z)
)"),
              HasSubstr("dynamic-update-slice(%x, %opt-barrier, %i, %z)"));
}

TEST(KeptOperands, ThroughOtherOpsAndOtherNamesOfTheElements) {
  EXPECT_THAT(After(R"(
  y = f32[4,8] reshape(x)
  u = f32[1,8] slice(y), slice={[1:2], [0:8]}
  w = f32[1,8] reverse(u), dimensions={1}
  v = f32[2,4] reshape(w)
  s = f32[2,4] negate(v)
  t = f32[8,4] reshape(y)
  ROOT r = f32[8,4] dynamic-update-slice(t, s, i, z)
)"),
              HasSubstr("dynamic-update-slice(%t, %opt-barrier, %i, %z)"));
}

TEST(KeptOperands, APartOfAnotherPlaceInTheSameShape) {
  EXPECT_THAT(After(R"(
  j = s32[] parameter(2)
  u = f32[1,4] dynamic-slice(x, j, z), dynamic_slice_sizes={1,4}
  ROOT r = f32[8,4] dynamic-update-slice(x, u, i, z)
)"),
              HasSubstr("opt-barrier(%u)"));
}

// A scatter by one index becomes an update in XLA.
TEST(KeptOperands, AScatteredUpdateByOneIndexAlone) {
  const auto scatter = [](const std::string& indices, const std::string& updates,
                          const std::string& limit = "2") {
    return After("  n = s32[" + indices + "1] iota(), iota_dimension=0\n  u = f32[" + updates +
                     "4] slice(x), slice={[1:" + limit +
                     "], [0:4]}\n"
                     "  ROOT r = f32[8,4] scatter(x, n, u), update_window_dims={1}, "
                     "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                     "index_vector_dim=1, to_apply=f\n",
                 "f { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
                 "  ROOT r = f32[] add(a, b) }\n");
  };
  EXPECT_THAT(scatter("1,", "1,"), HasSubstr("scatter(%x, %n, %opt-barrier)"));
  EXPECT_EQ(scatter("2,", "2,", "3"), "");
}

// The whole operand, too, if other than element by element.
TEST(KeptOperands, ATransposedUpdate) {
  EXPECT_THAT(After(R"(
  s = f32[4,4] slice(x), slice={[0:4], [0:4]}
  t = f32[4,4] transpose(s), dimensions={1,0}
  d = f32[4,4] dynamic-update-slice(s, t, z, z)
  ROOT r = f32[8,4] dynamic-update-slice(x, d, i, z)
)"),
              HasSubstr("dynamic-update-slice(%s, %opt-barrier, %z, %z)"));
}

TEST(KeptOperands, NotAPartOfTheSamePlaceElementByElement) {
  EXPECT_EQ(After(R"(
  u = f32[1,4] dynamic-slice(x, i, z), dynamic_slice_sizes={1,4}
  v = f32[1,4] multiply(u, u)
  ROOT r = f32[8,4] dynamic-update-slice(x, v, i, z)
)"),
            "");
}

TEST(KeptOperands, NotAnUpdateOfOtherElements) {
  EXPECT_EQ(After(R"(
  y = f32[8,4] parameter(2)
  u = f32[1,4] slice(y), slice={[1:2], [0:4]}
  k = f32[8,4] opt-barrier(x)
  s = f32[1,4] slice(k), slice={[3:4], [0:4]}
  v = f32[1,4] add(u, s)
  ROOT r = f32[8,4] dynamic-update-slice(x, v, i, z)
)"),
            "");
}

constexpr char kAdd[] = R"(
f { a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  ROOT r = TYPE[] add(a, b) }
)";

std::string AllReduce(const std::string& type) {
  std::string add = kAdd;
  for (size_t at; (at = add.find("TYPE")) != std::string::npos;) add.replace(at, 4, type);
  return After("  c = " + type + "[] constant(" + (type[0] == 'c' ? "(2, 1)" : "2") +
                   ")\n  b = " + type + "[2] broadcast(c), dimensions={}\n  ROOT r = " + type +
                   "[2] all-reduce(b), replica_groups={{0,1,2,3}}, to_apply=f\n",
               add);
}

TEST(KeptOperands, OfComplexReductionsOverDevices) {
  EXPECT_THAT(AllReduce("c64"), HasSubstr("all-reduce(%opt-barrier)"));
  EXPECT_THAT(AllReduce("c128"), HasSubstr("all-reduce(%opt-barrier)"));
  EXPECT_EQ(AllReduce("f32"), "");
}

}  // namespace
}  // namespace shardcall
