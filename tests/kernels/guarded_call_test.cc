// SPDX-License-Identifier: Apache-2.0
// Guards around a handler's buffers: what is written outside of results is E318, in
// every build that asks for it.
#include "shardcall/kernels/ffi/guard/guarded_call.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

// These handlers stand for libraries that no sanitizer has seen.
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
#define UNSEEN __attribute__((no_sanitize("address")))
#else
#define UNSEEN
#endif

namespace shardcall {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Views = absl::Span<const BufferView>;

UNSEEN void Store(const BufferView& v, int64_t at, float value) {
  volatile float* const x = static_cast<float*>(v.data);
  x[at] = value;
}

class GuardedCall : public testing::Test {
 protected:
  absl::Status Call(std::function<void(Views in, Views out)> body,
                    absl::Status status = absl::OkStatus()) {
    HandlerContext context;
    context.target = "writer";
    context.instruction = "cc.7";
    return CallGuarded(
        [&](const HandlerContext&, Views in, Views out) {
          body(in, out);
          return status;
        },
        context, operands_, results_);
  }
  std::vector<float> x_{1, 2, 3}, w_{4}, y_{0, 0, 0};
  std::vector<BufferView> operands_{{ElementType::kF32, {3}, x_.data()},
                                    {ElementType::kF32, {1}, w_.data()}};
  std::vector<BufferView> results_{{ElementType::kF32, {3}, y_.data()}};
};

TEST_F(GuardedCall, GoodHandlersComputeAsEver) {
  EXPECT_TRUE(Call([](Views in, Views out) {
                for (int k = 0; k < 3; ++k) {
                  static_cast<float*>(out[0].data)[k] = 2 * static_cast<float*>(in[0].data)[k];
                }
              }).ok());
  EXPECT_EQ(y_, (std::vector<float>{2, 4, 6}));
}

TEST_F(GuardedCall, WhatIsWrittenPastAResultIsNamed) {
  const absl::Status s = Call([](Views, Views out) { Store(out[0], 3, 9); });
  EXPECT_THAT(std::string(s.message()),
              AllOf(HasSubstr("E318 the handler of \"writer\" wrote outside of result 0, f32[3]: "),
                    HasSubstr("bytes from"), HasSubstr("past its end"), HasSubstr("%cc.7")));
  EXPECT_EQ(y_, (std::vector<float>{0, 0, 0}));  // and nothing of it came back
}

TEST_F(GuardedCall, BeforeAResultBeyondAnOperandAndIntoOne) {
  EXPECT_THAT(std::string(Call([](Views, Views out) { Store(out[0], -1, 9); }).message()),
              HasSubstr("before its start"));
  EXPECT_THAT(std::string(Call([](Views in, Views) { Store(in[1], 5, 9); }).message()),
              HasSubstr("outside of operand 1, f32[1]"));
  EXPECT_THAT(std::string(Call([](Views in, Views) { Store(in[0], 1, 9); }).message()),
              AllOf(HasSubstr("wrote into operand 0"), HasSubstr("alias")));
  EXPECT_EQ(x_, (std::vector<float>{1, 2, 3}));
}

TEST_F(GuardedCall, AnAliasIsOneBuffer) {
  results_[0].data = x_.data();
  EXPECT_TRUE(Call([](Views in, Views out) {
                EXPECT_EQ(in[0].data, out[0].data);
                Store(in[0], 0, 7);
              }).ok());
  EXPECT_EQ(x_[0], 7);
}

TEST_F(GuardedCall, ARegistryOfGuardedHandlersHoldsWhatTakesAnotherBuffersExtent) {
  HandlerRegistry handlers;
  ASSERT_TRUE(handlers
                  .Register({.target = "t",
                             .host =
                                 [](const HandlerContext&, Views in, Views out) {
                                   for (int64_t k = 0; k < in[0].num_elements(); ++k) {
                                     Store(out[0], k, 1);
                                   }
                                   return absl::OkStatus();
                                 }})
                  .ok());
  const HandlerRegistry guarded = GuardedHandlers(handlers);
  std::vector<float> large(1000), small(10);
  const std::vector<BufferView> in{{ElementType::kF32, {1000}, large.data()}};
  const std::vector<BufferView> out{{ElementType::kF32, {10}, small.data()}};
  HandlerContext context;
  context.target = "t";
  EXPECT_THAT(std::string((*guarded.Find("t", "Host"))->host(context, in, out).message()),
              HasSubstr("outside of result 0, f32[10]"));
}

TEST_F(GuardedCall, WiderElementsThanGivenStayWithinTheGuardsOfFailuresToo) {
  HandlerRegistry handlers;
  ASSERT_TRUE(handlers
                  .Register({.target = "t",
                             .host =
                                 [](const HandlerContext&, Views, Views out) {
                                   auto* wide = static_cast<double*>(out[0].data);
                                   for (int64_t k = 0; k < 4096; ++k)
                                     wide[2 * k] = wide[2 * k + 1] = 1;
                                   return absl::InvalidArgumentError("takes f64 alone");
                                 }})
                  .ok());
  const HandlerRegistry guarded = GuardedHandlers(handlers);
  std::vector<char> narrow(4096);
  const std::vector<BufferView> out{{ElementType::kS8, {4096}, narrow.data()}};
  HandlerContext context;
  context.target = "t";
  EXPECT_THAT(std::string((*guarded.Find("t", "Host"))->host(context, {}, out).message()),
              HasSubstr("outside of result 0, s8[4096]"));
}

// What a fenced handler of one f32[3] and one result f32[3] ends in.
class FencedCallDeathTest : public GuardedCall {
 protected:
  void CallFenced(FenceSide side, std::function<void(Views in, Views out)> body) {
    struct sigaction action = {};
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      char text[128];
      DescribeFence(info->si_addr, text, sizeof(text));
      std::fprintf(stderr, "hit: %s\n", text);
      _exit(7);
    };
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    const HostHandler fenced = Fenced(
        [&](const HandlerContext&, Views in, Views out) {
          body(in, out);
          return absl::OkStatus();
        },
        side);
    HandlerContext context;
    context.target = "writer";
    std::fprintf(stderr, "returned: %s\n",
                 std::string(fenced(context, operands_, results_).message()).c_str());
    _exit(0);
  }
};

TEST_F(FencedCallDeathTest, TheByteBesideABufferOrAPageFurtherIsNamed) {
  auto load = [](int64_t at) {
    return [at](Views in, Views) {
      volatile float* const x = static_cast<float*>(in[0].data);
      (void)x[at];
    };
  };
  EXPECT_EXIT(CallFenced(FenceSide::kAfter, load(16)), testing::ExitedWithCode(7),
              "hit: 52 bytes past the end of operand 0, f32\\[3\\]");
  EXPECT_EXIT(CallFenced(FenceSide::kAfter, load(100000)), testing::ExitedWithCode(7),
              "past the end of operand 0, f32\\[3\\]");
  EXPECT_EXIT(CallFenced(FenceSide::kBefore, load(-1)), testing::ExitedWithCode(7),
              "hit: 4 bytes before the start of operand 0, f32\\[3\\]");
  EXPECT_EXIT(CallFenced(FenceSide::kAfter, [](Views, Views out) { Store(out[0], 17, 1); }),
              testing::ExitedWithCode(7), "past the end of result 0, f32\\[3\\]");
}

TEST_F(FencedCallDeathTest, WhatIsWrittenBetweenTheEndAndTheFenceIsE318) {
  EXPECT_EXIT(CallFenced(FenceSide::kAfter, [](Views, Views out) { Store(out[0], 3, 1); }),
              testing::ExitedWithCode(0), "E318 .*outside of result 0");
}

TEST_F(FencedCallDeathTest, GoodHandlersReturnAndWhatIsReadThereDiffersBySide) {
  for (FenceSide side : {FenceSide::kBefore, FenceSide::kAfter}) {
    float beside = 0;
    const HostHandler fenced = Fenced(
        [&](const HandlerContext&, Views in, Views out) {
          volatile float* const x = static_cast<float*>(in[0].data);
          beside = x[3];
          Store(out[0], 0, 5);
          return absl::OkStatus();
        },
        side);
    EXPECT_TRUE(fenced(HandlerContext(), operands_, results_).ok());
    EXPECT_EQ(y_[0], 5);
    EXPECT_EQ(beside > 0, side == FenceSide::kBefore);
  }
}

TEST_F(GuardedCall, TokensEmptyArraysAndFailuresPass) {
  operands_.push_back({ElementType::kToken, {}, nullptr});
  operands_.push_back({ElementType::kF32, {0}, x_.data()});
  EXPECT_TRUE(Call([](Views in, Views) { EXPECT_EQ(in[2].data, nullptr); }).ok());
  EXPECT_EQ(Call([](Views, Views) {}, absl::NotFoundError("no")).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace shardcall
