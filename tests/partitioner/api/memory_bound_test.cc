// SPDX-License-Identifier: Apache-2.0
// A bound on the memory of a device: what plans do for it, and what is said where none keeps it.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/device_memory.h"
#include "shardcall/partitioner/api/report.h"
#include "tests/support/corpus.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// 256 KiB of x and of w on each of 4 devices; the product is 64 KiB.
constexpr char kProduct[] = R"(HloModule m, num_partitions=4
ENTRY e {
  x = f32[1024,256] parameter(0), sharding={devices=[4,1]<=[4]}
  w = f32[256,64] parameter(1), sharding={devices=[4,1]<=[4]}
  h = f32[1024,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="h" source_file="model.py" source_line=3}
  ROOT y = f32[1024,1024] dot(h, h), lhs_contracting_dims={1}, rhs_contracting_dims={1}, sharding={devices=[4,1]<=[4]}
}
)";

int64_t PeakOf(const std::string& text) {
  const auto p = PartitionText(text, {});
  EXPECT_TRUE(p.ok()) << p.status();
  return p.ok() ? CountDeviceMemory((*p)->local.module).Peak() : 0;
}

TEST(MemoryBound, AProgramThatKeepsItIsTheSame) {
  const int64_t peak = PeakOf(kProduct);
  const auto bound = PartitionText(kProduct, {.spmd = {.max_memory = peak}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(LocalText(**bound), LocalText(**PartitionText(kProduct, {})));
}

TEST(MemoryBound, AProgramThatCannotKeepItSaysWhatIsHeld) {
  const int64_t peak = PeakOf(kProduct);
  const auto bound = PartitionText(kProduct, {.spmd = {.max_memory = peak - 1}});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(bound.status().message()),
              AllOf(HasSubstr("E210"), HasSubstr("temporaries at %"), HasSubstr("model.py:3"),
                    HasSubstr("--max-memory")));
}

// Two weights are gathered before the loop, or each where it is used. `unread` makes memory for it.
constexpr char kLoop[] = R"(HloModule m, num_partitions=8
body {
  p = (s32[], f32[256,64], f32[64,64], f32[64,64], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  h = f32[256,64] get-tuple-element(p), index=1
  v = f32[64,64] get-tuple-element(p), index=2
  w = f32[64,64] get-tuple-element(p), index=3
  u = f32[64,64] get-tuple-element(p), index=4
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[256,64] dot(h, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[256,64] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[256,64] dot(c, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[256,64], f32[64,64], f32[64,64], f32[64,64]) tuple(j, b, v, w, u)
}
condition {
  p = (s32[], f32[256,64], f32[64,64], f32[64,64], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT
}
ENTRY main {
  h = f32[256,64] parameter(0), sharding={devices=[8,1]<=[8]}
  v = f32[64,64] parameter(1), sharding={devices=[8,1]<=[8]}
  w = f32[64,64] parameter(2), sharding={devices=[8,1]<=[8]}
  u = f32[64,64] parameter(3), sharding={devices=[8,1]<=[8]}
  unread = f32[65536] parameter(4)
  zero = s32[] constant(0)
  t = (s32[], f32[256,64], f32[64,64], f32[64,64], f32[64,64]) tuple(zero, h, v, w, u)
  l = (s32[], f32[256,64], f32[64,64], f32[64,64], f32[64,64]) while(t), condition=condition, body=body
  ROOT r = f32[256,64] get-tuple-element(l), index=1, sharding={devices=[8,1]<=[8]}
}
)";

TEST(MemoryBound, ALoopGathersWhereItUsesIfThereIsNoRoomBefore) {
  const auto free = PartitionText(kLoop, {});
  ASSERT_TRUE(free.ok()) << free.status();
  const double once = TotalBytesMoved((*free)->local);
  const int64_t peak = CountDeviceMemory((*free)->local.module).Peak();
  const auto same = PartitionText(kLoop, {.spmd = {.max_memory = peak}});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(TotalBytesMoved((*same)->local), once);
  const auto less = PartitionText(kLoop, {.spmd = {.max_memory = peak - 1}});
  ASSERT_TRUE(less.ok()) << less.status();
  EXPECT_GT(TotalBytesMoved((*less)->local), once) << LocalText(**less);
  EXPECT_LT(CountDeviceMemory((*less)->local.module).Peak(), peak);
}

// With the bound of what each program needs, it stays as it is; with less, it is refused, or
// another plan keeps it.
TEST(MemoryBound, NoProgramOfTheCorpusIsAboveIt) {
  for (const char* family : {"mlp_", "llama_block", "shard_map_", "embed_"}) {
    for (const auto& path : CorpusFiles(family, ".gspmd.hlo")) {
      SCOPED_TRACE(path.filename().string());
      std::ifstream in(path);
      const std::string text(std::istreambuf_iterator<char>(in), {});
      TextOptions options{.allow_replicate = {"all"}};
      const auto free = PartitionText(text, options);
      if (!free.ok()) continue;  // other tests say which those are
      const int64_t peak = CountDeviceMemory((*free)->local.module).Peak();
      options.spmd.max_memory = peak;
      EXPECT_TRUE(PartitionText(text, options).ok());
      options.spmd.max_memory = peak - 1;
      const auto less = PartitionText(text, options);
      if (less.ok()) {
        EXPECT_LT(CountDeviceMemory((*less)->local.module).Peak(), peak);
      } else {
        EXPECT_THAT(less, Fails("E210", "more memory"));
      }
    }
  }
}

}  // namespace
}  // namespace shardcall
