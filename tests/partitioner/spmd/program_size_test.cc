// SPDX-License-Identifier: Apache-2.0
// A device's program has as many instructions for long shards as for short ones.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

struct NamedProgram {
  const char* name;
  const char* text;
};
// Over vectors of @N elements on 8 devices.
const NamedProgram kPrograms[] = {
    {"roll", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  a = f32[1] slice(x), slice={[@(N-1):@N]}
  b = f32[@(N-1)] slice(x), slice={[0:@(N-1)]}
  ROOT r = f32[@N] concatenate(a, b), dimensions={0}, sharding={devices=[8]<=[8]})"},
    {"roll back", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  a = f32[3] slice(x), slice={[0:3]}
  b = f32[@(N-3)] slice(x), slice={[3:@N]}
  ROOT r = f32[@N] concatenate(b, a), dimensions={0}, sharding={devices=[8]<=[8]})"},
    {"short piece between long ones", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  a = f32[13] parameter(1), sharding={devices=[8]<=[8]}
  ROOT r = f32[@(N*2+13)] concatenate(x, a, x), dimensions={0}, sharding={devices=[8]<=[8]})"},
    {"shift", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  v = f32[] constant(0)
  ROOT r = f32[@N] pad(x, v), padding=1_-1, sharding={devices=[8]<=[8]})"},
    {"short vector padded to a long one", R"(
  x = f32[5] parameter(0), sharding={devices=[8]<=[8]}
  v = f32[] constant(0)
  ROOT r = f32[@N] pad(x, v), padding=100_@(N-105), sharding={devices=[8]<=[8]})"},
    {"interior padding", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  v = f32[] constant(0)
  ROOT r = f32[@(N*2-1)] pad(x, v), padding=0_0_1, sharding={devices=[8]<=[8]})"},
    {"reverse", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  ROOT r = f32[@N] reverse(x), dimensions={0}, sharding={devices=[8]<=[8]})"},
    {"reverse of an uneven length", R"(
  x = f32[@(N-3)] parameter(0), sharding={devices=[8]<=[8]}
  ROOT r = f32[@(N-3)] reverse(x), dimensions={0}, sharding={devices=[8]<=[8]})"},
    {"every other element", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  ROOT r = f32[@(N/2)] slice(x), slice={[1:@N:2]}, sharding={devices=[8]<=[8]})"},
    {"elements far apart", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  ROOT r = f32[16] slice(x), slice={[0:@N:@(N/16)]}, sharding={devices=[8]<=[8]})"},
    {"last element", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  ROOT r = f32[1] slice(x), slice={[@(N-1):@N]})"},
    {"rows of 64", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  ROOT r = f32[@(N/64),64] reshape(x), sharding={devices=[8,1]<=[8]})"},
    {"rows of 3", R"(
  x = f32[@(N*3)] parameter(0), sharding={devices=[8]<=[8]}
  ROOT r = f32[3,@N] reshape(x), sharding={devices=[1,8]<=[8]})"},
    {"resharded through a reshape of an uneven length", R"(
  x = f32[@(N+8)] parameter(0), sharding={devices=[8]<=[8]}
  ROOT r = f32[@(N/4+2),4] reshape(x), sharding={devices=[4,2]<=[8]})"},
    {"transpose", R"(
  x = f32[@(N/64),64] parameter(0), sharding={devices=[8,1]<=[8]}
  ROOT r = f32[64,@(N/64)] transpose(x), dimensions={1,0}, sharding={devices=[8,1]<=[8]})"},
    {"windows of 3", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  z = f32[] constant(0)
  ROOT r = f32[@N] reduce-window(x, z), window={size=3 pad=1_1}, to_apply=add, sharding={devices=[8]<=[8]})"},
    {"sorted", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  ROOT r = f32[@N] sort(x), dimensions={0}, to_apply=less, sharding={devices=[8]<=[8]})"},
    {"one element updated", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  u = f32[1] parameter(1)
  i = s32[] parameter(2)
  ROOT r = f32[@N] dynamic-update-slice(x, u, i), sharding={devices=[8]<=[8]})"},
    {"gathered elements", R"(
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  i = s32[16,1] parameter(1)
  ROOT r = f32[16] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1})"},
    {"counted and summed", R"(
  i = f32[@N] iota(), iota_dimension=0, sharding={devices=[8]<=[8]}
  x = f32[@N] parameter(0), sharding={devices=[8]<=[8]}
  m = f32[@N] multiply(i, x)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(m, z), dimensions={0}, to_apply=add)"},
};

constexpr char kComputations[] = R"(
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=LT }

ENTRY main {
)";

std::string TextOf(const NamedProgram& p, int64_t n) {
  return Instantiate(std::string(kComputations) + p.text + "\n}\n", {{'N', n}}, TestMesh{{8}}, {});
}

TEST(ProgramSize, DoesNotDependOnTheLengthOfAShard) {
  for (const NamedProgram& p : kPrograms) {
    SCOPED_TRACE(p.name);
    TextOptions options;
    options.spmd.cost.latency = 1e-15;  // so that both lengths have the same choices by cost
    const auto shorter = PartitionText(TextOf(p, int64_t{1} << 20), options);
    const auto longer = PartitionText(TextOf(p, int64_t{1} << 24), options);
    ASSERT_TRUE(shorter.ok()) << shorter.status();
    ASSERT_TRUE(longer.ok()) << longer.status();
    EXPECT_EQ((*shorter)->local.module.num_instructions(),
              (*longer)->local.module.num_instructions());
    // The lengths themselves have more digits.
    EXPECT_LT(LocalText(**longer).size(), 1.5 * LocalText(**shorter).size());
  }
}

TEST(ProgramSize, IsThatOfProgramsThatGiveTheRightNumbers) {
  for (const NamedProgram& p : kPrograms) {
    SCOPED_TRACE(p.name);
    EXPECT_EQ(WhyNotEqual(TextOf(p, 192), {}), "");
    EXPECT_EQ(WhyNotEqual(TextOf(p, 1024), {}), "");
  }
}

}  // namespace
}  // namespace shardcall
