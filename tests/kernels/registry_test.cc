// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

HandlerEntry Entry(std::string target, std::string platform = "Host") {
  HandlerEntry entry;
  entry.target = std::move(target);
  entry.platform = std::move(platform);
  entry.source = "libx.so";
  entry.host = [](const HandlerContext&, absl::Span<const BufferView>,
                  absl::Span<const BufferView>) { return absl::OkStatus(); };
  return entry;
}

TEST(HandlerRegistry, FindsWhatWasRegisteredForThePlatform) {
  HandlerRegistry registry;
  ASSERT_TRUE(registry.Register(Entry("f")).ok());
  ASSERT_TRUE(registry.Register(Entry("f", "CUDA")).ok());
  auto found = registry.Find("f", "CUDA");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->platform, "CUDA");
  EXPECT_EQ(registry.List().size(), 2);
}

TEST(HandlerRegistry, APlatformIsFoundByItsAliasesAndInAnyCase) {
  HandlerRegistry registry;
  ASSERT_TRUE(registry.Register(Entry("f", "cpu")).ok());
  ASSERT_TRUE(registry.Register(Entry("f", "gpu")).ok());
  ASSERT_TRUE(registry.Register(Entry("f", "Abacus")).ok());
  for (const auto& [name, spelled] :
       std::vector<std::pair<const char*, const char*>>{{"Host", "Host"},
                                                        {"HOST", "Host"},
                                                        {"CPU", "Host"},
                                                        {"cuda", "CUDA"},
                                                        {"GPU", "CUDA"},
                                                        {"abacus", "Abacus"},
                                                        {"Abacus", "Abacus"}}) {
    const auto found = registry.Find("f", name);
    ASSERT_TRUE(found.ok()) << name << " " << found.status();
    EXPECT_EQ((*found)->platform, spelled);
  }
  EXPECT_EQ(DiagnosticCode(registry.Register(Entry("f", "ABACUS"))), "E141");
  EXPECT_EQ(DiagnosticCode(registry.Register(Entry("f", ""))), "E141");
  EXPECT_EQ(DiagnosticCode(registry.Find("f", "ROCM").status()), "E140");
  EXPECT_EQ(*PlatformFromName("rocm"), "ROCM");
  EXPECT_EQ(*PlatformFromName("Slide Rule"), "Slide Rule");
}

TEST(HandlerRegistry, ASecondRegistrationIsAlreadyExists) {
  HandlerRegistry registry;
  ASSERT_TRUE(registry.Register(Entry("f")).ok());
  const absl::Status status = registry.Register(Entry("f"));
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("libx.so"));
}

TEST(HandlerRegistry, AnEntryWithoutNameOrFunctionIsRefused) {
  HandlerRegistry registry;
  EXPECT_FALSE(registry.Register(Entry("")).ok());
  HandlerEntry no_function = Entry("g");
  no_function.host = nullptr;
  EXPECT_FALSE(registry.Register(no_function).ok());
  HandlerEntry version = Entry("g");
  version.api_version = 5;
  EXPECT_FALSE(registry.Register(version).ok());
  EXPECT_TRUE(registry.List().empty());
}

TEST(HandlerRegistry, AnUnknownTargetIsE140WithNearNames) {
  HandlerRegistry registry;
  ASSERT_TRUE(RegisterBuiltinHandlers(registry).ok());
  const absl::Status status = registry.Find("rms_nrom", "Host").status();
  EXPECT_EQ(DiagnosticCode(status), "E140");
  EXPECT_THAT(std::string(status.message()), HasSubstr("Near names: rms_norm"));
  EXPECT_THAT(std::string(registry.Find("zzz", "Host").status().message()),
              Not(HasSubstr("Near names")));
}

TEST(HandlerRegistry, ATargetOfAnotherPlatformIsE140WithItsPlatforms) {
  HandlerRegistry registry;
  HandlerEntry x = Entry("X");
  x.own_version_only = true;
  ASSERT_TRUE(registry.Register(x).ok());
  ASSERT_TRUE(registry.Register(Entry("X_f")).ok());
  const absl::Status status = registry.Find("X", "CUDA", "", "%call.1").status();
  EXPECT_EQ(DiagnosticCode(status), "E140");
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("\"X\" at %call.1 is registered for: Host (api 4, libx.so). Requested: CUDA"));
  EXPECT_THAT(std::string(registry.Find("X_f", "CUDA").status().message()),
              HasSubstr("Host (api any, libx.so)"));
}

TEST(HandlerRegistry, ATraitMoreIsAnotherHandler) {
  HandlerRegistry registry;
  HandlerEntry x = Entry("X");
  x.functions = {&registry};
  ASSERT_TRUE(registry.Register(x).ok());
  EXPECT_TRUE(registry.Register(x).ok());
  x.traits = {"COMMAND_BUFFER_COMPATIBLE"};
  const absl::Status status = registry.Register(x);
  EXPECT_EQ(DiagnosticCode(status), "E141");
  EXPECT_THAT(std::string(status.message()), HasSubstr("(COMMAND_BUFFER_COMPATIBLE)"));
}

TEST(HandlerRegistry, TheShippedTargetsAreBuiltIn) {
  HandlerRegistry registry;
  ASSERT_TRUE(RegisterBuiltinHandlers(registry).ok());
  std::vector<std::string> names, cuda;
  int lapack = 0;
  for (const HandlerEntry* e : registry.List()) {
    EXPECT_EQ(e->source, "built in");
    if (e->platform == "CUDA") {
      cuda.push_back(e->target);
      continue;
    }
    EXPECT_EQ(e->platform, "Host");
    if (e->target.rfind("lapack_", 0) == 0 || e->target.rfind("blas_", 0) == 0) {
      ++lapack;
    } else {
      names.push_back(e->target);
    }
  }
  if (!cuda.empty()) {  // a toolkit may lack cuBLASLt or cuSPARSE
    EXPECT_THAT(cuda, testing::IsSupersetOf({"custom_relu", "nccl_allreduce", "rms_norm"}));
    EXPECT_THAT(cuda, testing::IsSubsetOf({"cublas_gemm", "custom_relu", "gemm", "nccl_allreduce",
                                           "rms_norm", "sparse_matmul"}));
  }
  EXPECT_THAT(
      names,
      ElementsAre("cublas_gemm", "cublas_getrf_batched", "custom_relu", "custom_relu_bwd", "fft",
                  "flash_attention_bwd", "flash_attention_fwd", "gemm", "gemm_bwd", "moe_combine",
                  "moe_dispatch", "moe_positions", "nccl_allreduce", "rms_norm", "rms_norm_bwd",
                  "softmax_cross_entropy", "softmax_cross_entropy_bwd",
                  "softmax_cross_entropy_shard", "sparse_matmul", "sparse_matmul_bwd", "topk"));
  EXPECT_EQ(lapack, 108);  // 15 typed routines and 12 untyped ones, of four types
}

TEST(HandlerRegistry, BuiltInsLeaveATakenNameAloneAndSayIt) {
  HandlerRegistry registry;
  ASSERT_TRUE(registry.Register(Entry("rms_norm")).ok());
  EXPECT_EQ(RegisterBuiltinHandlers(registry).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ((*registry.Find("rms_norm", "Host"))->source, "libx.so");
  EXPECT_TRUE(registry.Find("rms_norm_bwd", "Host").ok());
}

// Calls `ask` on a thread, and waits for it: a watcher may need another thread, which asks.
void AskOnAThread(const std::function<void()>& ask) { std::thread(ask).join(); }

TEST(HandlerRegistry, WatchersAreToldWhileOtherThreadsUseTheRegistry) {
  HandlerRegistry r;
  ASSERT_TRUE(r.Register(Entry("before")).ok());
  std::vector<std::string> told;
  const auto watch = [&](const HandlerEntry& entry) {
    AskOnAThread([&] { EXPECT_TRUE(r.Find(entry.target, "Host").ok()); });
    told.push_back(entry.target);
    return absl::OkStatus();
  };
  ASSERT_TRUE(r.Watch("Host", watch).ok());
  ASSERT_TRUE(r.Register(Entry("after")).ok());
  EXPECT_THAT(told, ElementsAre("before", "after"));
}

}  // namespace
}  // namespace shardcall
