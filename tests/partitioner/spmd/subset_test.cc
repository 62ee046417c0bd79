// SPDX-License-Identifier: Apache-2.0
// Values that are sharded over some of a program's devices, beside others that are sharded over
// all. Each size is run where it divides and where it does not.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// ROWS is a size. SOME, PAIR and APART are rows over two of four devices, ALL over four.
std::string Program(const std::string& body, int n) {
  return absl::StrReplaceAll(absl::StrCat(R"(HloModule m, num_partitions=4
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
ENTRY main {
)",
                                          body, "\n}"),
                             {{"ROWS", absl::StrCat(n)},
                              {"SOME", "sharding={devices=[2,1]<=[2]}"},
                              {"PAIR", "sharding={devices=[2,1]1,3}"},
                              {"APART", "sharding={devices=[2,1]3,0}"},
                              {"COLUMNS", "sharding={devices=[1,2]2,3}"},
                              {"THREE", "sharding={devices=[3,1]0,1,2}"},
                              {"ALL", "sharding={devices=[4,1]<=[4]}"},
                              {"WHOLE", "sharding={replicated}"}});
}

constexpr const char* kBodies[] = {
    // A parameter, a result.
    "  x = f32[ROWS,6] parameter(0), SOME\n  ROOT y = f32[ROWS,6] sine(x)",
    "  x = f32[ROWS,6] parameter(0)\n  ROOT y = f32[ROWS,6] negate(x), PAIR",
    "  x = f32[ROWS,6] parameter(0), APART\n  ROOT y = f32[ROWS,6] negate(x), APART",
    // From one set of devices to another, and to all.
    "  x = f32[ROWS,6] parameter(0), SOME\n  ROOT y = f32[ROWS,6] negate(x), PAIR",
    "  x = f32[ROWS,6] parameter(0), ALL\n  y = f32[ROWS,6] negate(x), APART\n"
    "  ROOT z = f32[ROWS,6] negate(y), ALL",
    "  x = f32[ROWS,6] parameter(0), APART\n  ROOT y = f32[ROWS,6] negate(x), COLUMNS",
    // By an annotation, and where three devices do not divide four.
    "  x = f32[ROWS,6] parameter(0), ALL\n"
    "  y = f32[ROWS,6] custom-call(x), custom_call_target=\"Sharding\", PAIR\n"
    "  ROOT z = f32[ROWS,6] negate(y), WHOLE",
    "  x = f32[ROWS,6] parameter(0), ALL\n  y = f32[ROWS,6] negate(x), THREE\n"
    "  ROOT z = f32[ROWS,6] negate(y), ALL",
    // Two sets in one op; a contraction and a reduction over what is sharded.
    "  x = f32[ROWS,6] parameter(0), SOME\n  y = f32[ROWS,6] parameter(1), APART\n"
    "  ROOT z = f32[ROWS,6] add(x, y), ALL",
    "  x = f32[6,ROWS] parameter(0), COLUMNS\n  w = f32[ROWS,5] parameter(1), PAIR\n"
    "  ROOT d = f32[6,5] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, WHOLE",
    "  x = f32[ROWS,6] parameter(0), APART\n  zero = f32[] constant(0)\n"
    "  ROOT s = f32[6] reduce(x, zero), dimensions={0}, to_apply=sum",
    // What needs to know where a device's rows lie.
    "  x = f32[ROWS,6] parameter(0), PAIR\n  ROOT r = f32[ROWS,6] reverse(x), dimensions={0}, SOME",
    "  n = f32[ROWS,6] iota(), iota_dimension=0, APART\n  x = f32[ROWS,6] parameter(0), APART\n"
    "  ROOT a = f32[ROWS,6] add(n, x), COLUMNS",
};

TEST(Subset, EveryDeviceComputesWhatTheProgramSays) {
  for (const char* body : kBodies) {
    for (const int n : {8, 7}) {
      const std::string text = Program(body, n);
      EXPECT_EQ(WhyNotEqual(text, {}), "") << text;
    }
  }
}

TEST(Subset, OpsOfTheSameDevicesSendNothing) {
  const std::string text = Program(
      "  x = f32[ROWS,6] parameter(0), PAIR\n  y = f32[ROWS,6] parameter(1), PAIR\n"
      "  ROOT z = f32[ROWS,6] add(x, y), PAIR",
      8);
  const auto p = PartitionText(text, {});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT((*p)->local.collectives, IsEmpty()) << LocalText(**p);
  // What a device that is not named is to be given stands in the program.
  EXPECT_THAT(LocalText(**p), HasSubstr("f32[4,6]{1,0} parameter(0)"));
  EXPECT_THAT(LocalText(**p),
              HasSubstr("shardcall.shards={devices=[2,1,2]<=[4] last_tile_dim_replicate}"));
}

}  // namespace
}  // namespace shardcall
