// SPDX-License-Identifier: Apache-2.0
// sparse_matmul with every dimension sharded: rows, columns, what is summed over,
// and the entries themselves.
#include <gtest/gtest.h>

#include "tests/support/program_family.h"

namespace shardcall {
namespace {

// Z entries, M rows, K columns of the sparse matrix, N of the dense one. Offsets
// are r * Z / M, so that all rows have some entries.
constexpr char kProgram[] = R"(
  v = s32[@Z] parameter(0)<0:1>
  raw = s32[@Z] parameter(1)
  b = s32[@K,@N] parameter(2)<1:2>
  two = s32[] constant(1)
  ones = s32[@Z] broadcast(two), dimensions={}
  c = s32[@Z] subtract(raw, ones)
  i = s32[@(M+1)] iota(), iota_dimension=0
  z = s32[] constant(@Z)
  zs = s32[@(M+1)] broadcast(z), dimensions={}
  m = s32[] constant(@M)
  ms = s32[@(M+1)] broadcast(m), dimensions={}
  p = s32[@(M+1)] multiply(i, zs)
  o = s32[@(M+1)] divide(p, ms)
  y = s32[@M,@N] custom-call(v, c, o, b), custom_call_target="sparse_matmul", api_version=API_VERSION_TYPED_FFI
  ROOT r = s32[@M,@N] copy(y)<2:2>
)";

TEST(SparseTargets, EveryDimensionMayBeSharded) {
  VerifyFamily({.text = kProgram,
                .sizes = {{{'Z', 16}, {'M', 8}, {'K', 8}, {'N', 4}},
                          {{'Z', 13}, {'M', 5}, {'K', 7}, {'N', 3}},
                          {{'Z', 5}, {'M', 3}, {'K', 1}, {'N', 9}},
                          {{'Z', 1}, {'M', 1}, {'K', 6}, {'N', 1}}},
                .max_cases = 400,
                .no_fallback = true});
}

TEST(SparseTargets, FloatsAgreeToo) {
  VerifyFamily({.text = R"(
  v = f32[@Z] parameter(0)<0:1>
  c = s32[@Z] parameter(1)<0:1>
  o = s32[@(M+1)] parameter(2)
  b = f32[@K,4] parameter(3)<1:2>
  ROOT y = f32[@M,4] custom-call(v, c, o, b), custom_call_target="sparse_matmul", api_version=API_VERSION_TYPED_FFI
)",
                .sizes = {{{'Z', 8}, {'M', 6}, {'K', 8}}, {{'Z', 7}, {'M', 9}, {'K', 5}}},
                .max_cases = 150,
                .no_fallback = true});
}

TEST(SparseTargets, ColumnsNeedNoCommunication) {
  const auto program = PartitionText(R"(HloModule m, num_partitions=4

ENTRY main {
  v = f32[64] parameter(0)
  c = s32[64] parameter(1)
  o = s32[17] parameter(2)
  b = f32[32,64] parameter(3), sharding={devices=[1,4]<=[4]}
  ROOT y = f32[16,64] custom-call(v, c, o, b), custom_call_target="sparse_matmul", api_version=API_VERSION_TYPED_FFI, sharding={devices=[1,4]<=[4]}
}
)",
                                     {});
  ASSERT_TRUE(program.ok()) << program.status();
  for (Opcode op : {Opcode::kAllGather, Opcode::kAllReduce, Opcode::kCollectivePermute}) {
    EXPECT_EQ(CountOpcode(**program, op), 0) << LocalText(**program);
  }
}

}  // namespace
}  // namespace shardcall
