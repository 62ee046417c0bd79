// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/trip_count.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// Of a loop that counts from 2 by `step` while `test` holds of the counter k and the limit 12.
int64_t TripsOf(absl::string_view next, absl::string_view test) {
  auto m = ParseModule(std::make_shared<const std::string>(absl::StrCat(R"(HloModule m

body {
  p = (s32[], f32[]) parameter(0)
  k = s32[] get-tuple-element(p), index=0
  x = f32[] get-tuple-element(p), index=1
  step = s32[] constant(3)
)",
                                                                        next, R"(
  ROOT t = (s32[], f32[]) tuple(n, x)
}

cond {
  p = (s32[], f32[]) parameter(0)
  k = s32[] get-tuple-element(p), index=0
  limit = s32[] constant(12)
)",
                                                                        test, R"(
}

ENTRY main {
  two = s32[] constant(2)
  x = f32[] parameter(0)
  t = (s32[], f32[]) tuple(two, x)
  ROOT loop = (s32[], f32[]) while(t), condition=cond, body=body
}
)")),
                       std::make_shared<Context>(), "test.hlo");
  SHARDCALL_CHECK(m.ok());
  return KnownTripCount(*m, m->comp(m->entry()).root);
}

const char kAdd[] = "  n = s32[] add(k, step)";
const char kLess[] = "  ROOT r = pred[] compare(k, limit), direction=LT";

TEST(TripCount, IsThatOfTheCounter) {
  EXPECT_EQ(TripsOf(kAdd, kLess), 4);  // 2, 5, 8, 11
  EXPECT_EQ(
      TripsOf("  n = s32[] add(step, k)", "  ROOT r = pred[] compare(k, limit), direction=LE"), 4);
  EXPECT_EQ(TripsOf("  n = s32[] multiply(k, step)", kLess), -1);
}

// On meshes with explicit axes JAX annotates counters, steps and limits.
TEST(TripCount, IsSeenThroughAnnotations) {
  const std::string of = R"(, custom_call_target="Sharding", sharding={replicated})";
  const std::string add =
      absl::StrCat("  a = s32[] custom-call(k)", of, "\n  b = s32[] custom-call(step)", of,
                   "\n  c = s32[] add(a, b)\n  n = s32[] custom-call(c)", of);
  const std::string less =
      absl::StrCat("  a = s32[] custom-call(k)", of, "\n  b = s32[] custom-call(limit)", of,
                   "\n  ROOT r = pred[] compare(a, b), direction=LT");
  EXPECT_EQ(TripsOf(add, less), 4);
  EXPECT_EQ(TripsOf(add, kLess), 4);
  // Another target may change the number.
  EXPECT_EQ(TripsOf("  n = s32[] custom-call(k), custom_call_target=\"other\"", kLess), -1);
}

}  // namespace
}  // namespace shardcall
