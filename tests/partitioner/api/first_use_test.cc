// SPDX-License-Identifier: Apache-2.0
// A process may be forked while another of its threads uses the library for the first time.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shardcall/kernels/math/blas.h"
#include "shardcall/partitioner/api/executable.h"
#include "shardcall/partitioner/bindings/xla/registration.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/buffer_pool.h"
#include "shardcall/sharding/context.h"
#include "tests/support/forked_child.h"

namespace shardcall {
namespace {

constexpr int kRounds = 300;

// So long after a use begins that all that it does is met.
std::chrono::microseconds After(int round) { return std::chrono::microseconds(round % 3 * round); }

constexpr char kProgram[] = R"(HloModule product, num_partitions=2
ENTRY main {
  x = f32[64,64] parameter(0), sharding={devices=[2,1]<=[2]}
  y = f32[64,64] parameter(1), sharding={devices=[1,2]<=[2]}
  ROOT z = f32[64,64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[2,1]<=[2]}
})";

constexpr char kDynamicProgram[] = R"(HloModule sizes
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[64,64] parameter(0)
  y = f32[64,64] parameter(1)
  z = f32[] constant(0)
  n = s32[] constant(32)
  d = f32[<=64,64] set-dimension-size(x, n), dimensions={0}
  e = f32[<=64,64] add(d, d)
  ROOT r = f32[64] reduce(e, z), dimensions={0}, to_apply=add
})";

// All of these are in processes of their own, so that none has used anything before.
TEST(FirstUse, AChildThatIsForkedAtTheFirstProductMultiplies) {
  const auto multiply = [] {
    std::vector<float> a(64, 1), c(64);
    BlasGemm(BlasOp::kNone, BlasOp::kNone, 8, 8, 8, 1.f, a.data(), 8, a.data(), 8, 0.f, c.data(),
             8);
    return c[63] == 8 ? 0 : 1;
  };
  for (int k = 0; k < 4 * kRounds; ++k) ASSERT_EQ(StatusOfForkAtFirstUse(multiply), 0) << k;
}

TEST(FirstUse, AChildThatIsForkedAtTheFirstLargeBufferHasItsOwn) {
  const auto allocate = [] {
    size_t bytes = BufferPool::kLeastPooledBytes;
    void* const block = BufferPool::Get().Allocate(&bytes);
    BufferPool::Get().Free(block, bytes);
    return block != nullptr ? 0 : 1;
  };
  for (int k = 0; k < kRounds; ++k) ASSERT_EQ(StatusOfForkAtFirstUse(allocate), 0) << k;
}

TEST(FirstUse, AChildThatIsForkedWhileTheTargetsAreRegisteredHasAllOfThem) {
  const auto look = [] { return DefaultRegistry()->rules.Find("rms_norm", "") != nullptr ? 0 : 1; };
  for (int k = 0; k < kRounds; ++k) ASSERT_EQ(StatusOfForkAtFirstUse(look, After(k)), 0) << k;
}

// Of a program whose result is 64 everywhere.
void ForkAtFirstRunOf(const std::string& text) {
  absl::StatusOr<Module> module = ParseModule(std::make_shared<const std::string>(text),
                                              std::make_shared<Context>(), "product");
  ASSERT_TRUE(module.ok()) << module.status();
  const auto program = Compile(*std::move(module), {});
  ASSERT_TRUE(program.ok()) << program.status();
  const Tensor ones =
      Tensor::From<float>(ElementType::kF32, {64, 64}, std::vector<float>(64 * 64, 1));
  const auto run = [&] {
    const auto out = program->Execute({ones, ones});
    return out.ok() && *(*out)[0].data<float>() == 64 ? 0 : 1;
  };
  for (int k = 0; k < kRounds; ++k) ASSERT_EQ(StatusOfForkAtFirstUse(run, After(k)), 0) << k;
}

TEST(FirstUse, AChildThatIsForkedAtTheFirstRunRuns) { ForkAtFirstRunOf(kProgram); }

TEST(FirstUse, AChildThatIsForkedWhileOpsAreCompiledForTheirSizesRuns) {
  ForkAtFirstRunOf(kDynamicProgram);
}

}  // namespace
}  // namespace shardcall
