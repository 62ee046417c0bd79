// SPDX-License-Identifier: Apache-2.0
// What the handlers for CUDA make of a library's handles and descriptors, and of its
// errors, over the stand-ins.
#include <cuda_runtime_api.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/cuda/shared_library.h"
#include "tests/collectives/stand_in/stand_in.h"
#include "tests/kernels/cuda_target_util.h"

namespace shardcall {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Type = ElementType;

struct Example {
  const char* target;
  std::vector<Array> operands;
  Array result;
  const char* attributes;
  int alias;
};

std::vector<Example> Examples() {
  const Array m = WholeNumbers(Type::kF32, {4, 4}, 1);
  const Array values = WholeNumbers(Type::kF32, {6}, 1);
  const Array columns = Indices({1, 2, 0, 1, 3, 1});
  return {
      {"cublas_gemm", {m, m}, m, "", -1},
      {"cublas_gemm",
       {WholeNumbers(Type::kF32, {2, 4, 4}, 1), WholeNumbers(Type::kF32, {2, 4, 4}, 2),
        WholeNumbers(Type::kF32, {2, 4, 4}, 3)},
       {Type::kF32, {2, 4, 4}},
       "{beta = 2.0}",
       0},
      {"cublas_gemm", {{Type::kF32, {4, 0}}, {Type::kF32, {0, 4}}, m}, m, "{beta = 2.0}", -1},
      {"sparse_matmul", {values, columns, Indices({0, 2, 3, 4, 6}), m}, m, "", 3},
      {"sparse_matmul", {values, columns, Indices({1, 2, 3, 4, 6}), m}, m, "", -1},
      {"sparse_matmul", {values, columns, Indices({9, 2, 3, 4, 6}), m}, m, "", -1},
      {"nccl_allreduce", {m}, m, "", -1},
  };
}

class CudaLibraries : public CudaTargets {
 protected:
  ~CudaLibraries() override { stand_in::FailCall(-1); }
};

// Each in turn: an error with its code, the call and what to do, and nothing is left; what
// comes after has the right numbers.
TEST_F(CudaLibraries, EveryCallThatFailsIsAnErrorAndLeavesNothing) {
  int failures = 0;
  for (const Example& e : Examples()) {
    const auto call = [&] {
      return Call("CUDA", e.target, e.operands, e.result, e.attributes, e.alias);
    };
    const auto want = Call("Host", e.target, e.operands, e.result, e.attributes, e.alias);
    ASSERT_TRUE(want.ok()) << want.status();
    for (int number = 0;; ++number) {
      stand_in::FailCall(number);
      const auto failed = call();
      const std::string function = stand_in::FailedCall();
      stand_in::FailCall(-1);
      if (function.empty()) break;
      ++failures;
      EXPECT_EQ(DiagnosticCode(failed.status()), "E309") << function << failed.status();
      const std::string message(failed.status().message());
      EXPECT_THAT(message, HasSubstr(function));
      EXPECT_THAT(message, HasSubstr("Fix: "));
      EXPECT_THAT(stand_in::Unfreed(), Not(HasSubstr("descriptor"))) << function;
      const auto got = call();
      ASSERT_TRUE(got.ok()) << "after " << function << ": " << got.status();
      EXPECT_EQ(*got, *want) << "after " << function;
    }
  }
  EXPECT_GT(failures, 80);
  device_.reset();
  EXPECT_EQ(stand_in::Unfreed(), "2 handles");
}

TEST_F(CudaLibraries, WorkGoesOnTheStreamAndIsNotAwaited) {
  const Array m = WholeNumbers(Type::kF32, {4, 4}, 1);
  ASSERT_TRUE(Call("CUDA", "gemm", {m, m}, m).ok());
  stand_in::TakeCalls();
  ASSERT_TRUE(Call("CUDA", "gemm", {m, m}, m).ok());
  // Two copies in, the product, a copy out, which the caller awaits.
  EXPECT_THAT(stand_in::TakeCalls(),
              testing::ElementsAre("cudaMemcpyAsync(64)", "cudaMemcpyAsync(64)",
                                   "cublasLtMatmul(4x4, 1 of them)", "cudaMemcpyAsync(64)",
                                   "cudaStreamSynchronize"));
}

TEST_F(CudaLibraries, RegularMatricesGoToTheLibraryAndOthersToOurKernel) {
  const Array m = WholeNumbers(Type::kF32, {4, 4}, 1), values = WholeNumbers(Type::kF32, {6}, 1);
  const Array columns = Indices({1, 2, 0, 1, 3, 1});
  const auto calls = [&](const Array& v, const Array& c, const Array& offsets, const Array& b) {
    stand_in::TakeCalls();
    EXPECT_TRUE(Call("CUDA", "sparse_matmul", {v, c, offsets, b}, b).ok());
    return stand_in::TakeCalls();
  };
  const Array offsets = Indices({0, 2, 3, 4, 6});
  EXPECT_THAT(calls(values, columns, offsets, m), Contains("cusparseSpMM(4x4, 6 entries)"));
  EXPECT_THAT(calls(values, columns, Indices({3, 3, 3, 4, 6}), m),
              Contains("cusparseSpMM(4x4, 3 entries)"));
  EXPECT_THAT(calls(values, Indices({1, 2, 0, 1, 3, 4}), offsets, m), Contains("SparseMatmul"));
  EXPECT_THAT(calls(values, columns, Indices({0, 2, 1, 4, 6}), m), Contains("SparseMatmul"));
  const Array whole = WholeNumbers(Type::kS32, {4, 4}, 1);
  EXPECT_THAT(calls(WholeNumbers(Type::kS32, {6}, 1), columns, offsets, whole),
              Not(Contains("SparseCheck")));
}

TEST_F(CudaLibraries, DevicesOfOneGpuTakeHandlesThatOthersGaveBack) {
  const Array m = WholeNumbers(Type::kF32, {4, 4}, 1);
  ASSERT_TRUE(Call("CUDA", "gemm", {m, m}, m).ok());
  stand_in::TakeCalls();
  for (int run = 0; run < 3; ++run) {
    device_.reset();
    device_ = *OpenCudaDevice(0, nullptr);
    ASSERT_TRUE(Call("CUDA", "gemm", {m, m}, m).ok());
  }
  EXPECT_THAT(stand_in::TakeCalls(), Not(Contains("cublasLtCreate")));
  device_ = *OpenCudaDevice(1, nullptr);
  ASSERT_TRUE(Call("CUDA", "gemm", {m, m}, m).ok());
  EXPECT_THAT(stand_in::TakeCalls(), Contains("cublasLtCreate"));
}

TEST_F(CudaLibraries, LaunchesOfOneCallShareTheirWorkspace) {
  const Array many = WholeNumbers(Type::kF32, {140000, 1, 1}, 1);
  stand_in::TakeCalls();
  ASSERT_TRUE(Call("CUDA", "gemm", {many, many}, many).ok());
  EXPECT_THAT(stand_in::TakeCalls(), Contains("cublasLtMatmul(1x1, 65535 of them)").Times(2));
  // Two operands, the result, and it.
  EXPECT_THAT(stand_in::Unfreed(), HasSubstr("4 allocations"));
}

// That of a communicator is: threads that call handlers have the first GPU as theirs.
TEST_F(CudaLibraries, AStreamOfAnotherGpuIsWorkedOnThere) {
  ASSERT_EQ(cudaSetDevice(2), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  for (const Example& e : Examples()) {
    const auto device = OpenCudaDevice(0, stream);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_TRUE(CallOn(*device, e.target, e.operands, e.result, e.attributes).ok());
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(CudaLibraries, ThreadsWithDevicesOfTheirOwnDoNotMeet) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      const std::shared_ptr<HandlerDevice> device = *OpenCudaDevice(t, nullptr);
      for (int round = 0; round < 20; ++round) {
        for (const Example& e : Examples()) {
          const auto want = Call("Host", e.target, e.operands, e.result, e.attributes);
          const auto got = CallOn(device, e.target, e.operands, e.result, e.attributes);
          ASSERT_TRUE(got.ok()) << got.status();
          ASSERT_EQ(*got, *want);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedLibrary, OneThatIsNotThereSaysWhatToDo) {
  const auto none = OpenSharedLibrary("libcublasLt.so.99");
  EXPECT_EQ(DiagnosticCode(none.status()), "E303");
  EXPECT_TRUE(absl::IsUnavailable(none.status()));
  EXPECT_THAT(std::string(none.status().message()),
              testing::AllOf(HasSubstr("libcublasLt.so.99"), HasSubstr("LD_LIBRARY_PATH")));
  const auto c = OpenSharedLibrary("libc.so.6");
  ASSERT_TRUE(c.ok()) << c.status();
  void* address = nullptr;
  const absl::Status missing = FindAddress(*c, "libc.so.6", "no_such_function", &address);
  EXPECT_EQ(DiagnosticCode(missing), "E303");
  EXPECT_THAT(std::string(missing.message()), HasSubstr("no_such_function"));
}

}  // namespace
}  // namespace shardcall
