// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/cuda_device.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status CudaStatus(cudaError_t code, absl::string_view what) {
  if (code == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // clears the error, if it can be cleared
  return absl::Status(code == cudaErrorMemoryAllocation ? absl::StatusCode::kResourceExhausted
                                                        : absl::StatusCode::kInternal,
                      absl::StrCat("CUDA failed in ", what, ": ", cudaGetErrorString(code), " (",
                                   static_cast<int>(code), ")"));
}

class CudaDevice final : public HandlerDevice {
 public:
  CudaDevice(int device, void* stream)
      : device_(device), stream_(static_cast<cudaStream_t>(stream)), owned_(stream == nullptr) {}
  ~CudaDevice() override {
    if (cudaSetDevice(device_) != cudaSuccess) return;
    ReleaseAll();
    // Do not wait for a stream that may never become idle.
    if (owned_ && stream_ != nullptr && cudaStreamQuery(stream_) == cudaSuccess) {
      cudaStreamDestroy(stream_);
    }
  }

  absl::Status Init() {
    SHARDCALL_RETURN_IF_ERROR(Activate());
    if (!owned_) return absl::OkStatus();
    return CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                      "cudaStreamCreateWithFlags");
  }

  void* stream() override { return stream_; }
  absl::Status Activate() override { return CudaStatus(cudaSetDevice(device_), "cudaSetDevice"); }
  absl::Status CopyIn(void* to, const void* from, int64_t bytes) override {
    return Copy(to, from, bytes, cudaMemcpyHostToDevice);
  }
  absl::Status CopyWithin(void* to, const void* from, int64_t bytes) override {
    return Copy(to, from, bytes, cudaMemcpyDeviceToDevice);
  }
  absl::Status CopyOut(void* to, const void* from, int64_t bytes) override {
    SHARDCALL_RETURN_IF_ERROR(Copy(to, from, bytes, cudaMemcpyDeviceToHost));
    return CudaStatus(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
  absl::StatusOr<bool> IsIdle() override {
    const cudaError_t code = cudaStreamQuery(stream_);
    if (code == cudaErrorNotReady) return false;
    SHARDCALL_RETURN_IF_ERROR(CudaStatus(code, "what is on the stream"));
    return true;
  }

 protected:
  absl::StatusOr<void*> AllocateMemory(int64_t bytes) override {
    SHARDCALL_RETURN_IF_ERROR(Activate());
    void* memory = nullptr;
    SHARDCALL_RETURN_IF_ERROR(CudaStatus(cudaMalloc(&memory, bytes), "cudaMalloc"));
    return memory;
  }
  void ReleaseMemory(void* memory) override {
    cudaSetDevice(device_);
    cudaFree(memory);
  }

 private:
  absl::Status Copy(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind) {
    SHARDCALL_RETURN_IF_ERROR(Activate());
    return CudaStatus(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync");
  }

  const int device_;
  cudaStream_t stream_;
  const bool owned_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<HandlerDevice>> OpenCudaDevice(int ordinal, void* stream) {
  int count = 0;  // without a driver the call fails and leaves 0
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count < 1) {
    cudaGetLastError();
    return ToStatus({.code = "E303",
                     .message = "handlers for CUDA cannot be called: there is no CUDA device",
                     .expected = "a GPU with a driver of CUDA 13 or newer",
                     .found = absl::StrCat("cudaGetDeviceCount gives ", static_cast<int>(code),
                                           " (", cudaGetErrorString(code), ")"),
                     .fix = "Run it on a machine with a GPU, or register a handler for Host"},
                    absl::StatusCode::kUnavailable);
  }
  int device = ordinal % count;
  if (stream != nullptr) {
    SHARDCALL_RETURN_IF_ERROR(CudaStatus(
        cudaStreamGetDevice(static_cast<cudaStream_t>(stream), &device), "cudaStreamGetDevice"));
  }
  auto opened = std::make_shared<CudaDevice>(device, stream);
  const absl::Status status = opened->Init();
  if (!status.ok()) {
    return ToStatus({.code = "E309",
                     .message = std::string(status.message()),
                     .fix = "See the driver and the device: nvidia-smi"},
                    status.code());
  }
  return std::shared_ptr<HandlerDevice>(std::move(opened));
}

bool CudaIsInUse() {
  // The runtime has no such question, and would itself begin to use CUDA. Of the driver, any
  // function but cuInit says so.
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  constexpr int kNotInitialized = 3;  // CUDA_ERROR_NOT_INITIALIZED
  int devices = 0;
  const bool used = count != nullptr && count(&devices) != kNotInitialized;
  dlclose(driver);
  return used;
}

}  // namespace internal
}  // namespace shardcall
