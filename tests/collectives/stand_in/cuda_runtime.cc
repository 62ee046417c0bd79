// SPDX-License-Identifier: Apache-2.0
// The functions of CUDA's runtime that we call.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tests/collectives/stand_in/memory.h"
#include "tests/collectives/stand_in/record.h"
#include "tests/collectives/stand_in/stream.h"

namespace stand_in {
namespace {

struct Event {
  std::atomic<int64_t> recorded{0}, reached{0};
};

// Handles are addresses of things that are kept, so none ever means another.
struct Handles {
  std::mutex mutex;
  std::map<const void*, std::shared_ptr<Stream>> streams;
  std::map<const void*, std::shared_ptr<Event>> events;
};
Handles& All() {
  static Handles* const handles = new Handles;
  return *handles;
}

thread_local int current_device = 0;

int DeviceCount() {
  const char* const text = std::getenv("STAND_IN_GPUS");
  return text == nullptr ? 8 : std::atoi(text);
}

std::shared_ptr<Event> FindEvent(cudaEvent_t event, const char* function) {
  std::lock_guard<std::mutex> lock(All().mutex);
  const auto it = All().events.find(event);
  if (it == All().events.end() || it->second == nullptr) {
    Misuse(std::string(function) + " of what is no event, or is destroyed");
  }
  return it->second;
}

// Both ends of a copy, which are where its kind says.
struct Ends {
  View to, from;
};
Ends LookAtEnds(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                const char* function) {
  Ends ends{Look(to, bytes, function), Look(from, bytes, function)};
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (bytes > 0 && kind != cudaMemcpyDefault &&
      (ends.to.on_device != to_device || ends.from.on_device != from_device)) {
    Misuse(std::string(function) + ": memory is not where the kind of the copy says");
  }
  return ends;
}

}  // namespace

std::shared_ptr<Stream> FindStream(cudaStream_t stream, const char* function) {
  std::lock_guard<std::mutex> lock(All().mutex);
  const auto it = All().streams.find(stream);
  if (it == All().streams.end() || it->second == nullptr) {
    Misuse(std::string(function) + " of what is no stream, or is destroyed");
  }
  return it->second;
}

int CurrentDevice() { return current_device; }

}  // namespace stand_in

using namespace stand_in;  // NOLINT

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const int devices = DeviceCount();
  if (devices > 0) *count = devices;
  return devices > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (Fails("cudaSetDevice")) return cudaErrorUnknown;
  if (device < 0 || device >= DeviceCount()) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  if (Fails("cudaGetDevice")) return cudaErrorUnknown;
  *device = current_device;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error of the stand-in for CUDA";
}
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (Fails("cudaMalloc")) return cudaErrorMemoryAllocation;
  *pointer = Allocate(bytes, /*of_nccl=*/false);
  return *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  Free(pointer, /*of_nccl=*/false, "cudaFree");
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {};
  attributes->type = Find(pointer) != nullptr ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const Ends ends = LookAtEnds(to, from, bytes, kind, "cudaMemcpy");
  if (bytes > 0) std::memmove(ends.to.data, ends.from.data, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (Fails("cudaMemcpyAsync")) return cudaErrorUnknown;
  Record("cudaMemcpyAsync(" + std::to_string(bytes) + ")");
  FindStream(stream, "cudaMemcpyAsync")
      ->Push([ends = LookAtEnds(to, from, bytes, kind, "cudaMemcpyAsync"), bytes] {
        if (bytes > 0) std::memmove(ends.to.data, ends.from.data, bytes);
        return true;
      });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (Fails("cudaMemsetAsync")) return cudaErrorUnknown;
  Record("cudaMemsetAsync(" + std::to_string(bytes) + ")");
  FindStream(stream, "cudaMemsetAsync")
      ->Push([view = LookAtDevice(to, bytes, "cudaMemsetAsync"), value, bytes] {
        if (bytes > 0) std::memset(view.data, value, bytes);
        return true;
      });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  auto made = std::make_shared<Stream>(current_device);
  made->Start();
  *stream = reinterpret_cast<cudaStream_t>(new char);
  std::lock_guard<std::mutex> lock(All().mutex);
  All().streams[*stream] = std::move(made);
  Made(Thing::kStream);
  return cudaSuccess;
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  *device = FindStream(stream, "cudaStreamGetDevice")->device();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  FindStream(stream, "cudaStreamDestroy")->Close();
  std::lock_guard<std::mutex> lock(All().mutex);
  All().streams[stream] = nullptr;
  Freed(Thing::kStream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return FindStream(stream, "cudaStreamQuery")->Idle() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (Fails("cudaStreamSynchronize")) return cudaErrorUnknown;
  Record("cudaStreamSynchronize");
  FindStream(stream, "cudaStreamSynchronize")->AwaitIdle();
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  FindStream(stream, "cudaLaunchHostFunc")->Push([=] {
    function(data);
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  *event = reinterpret_cast<cudaEvent_t>(new char);
  std::lock_guard<std::mutex> lock(All().mutex);
  All().events[*event] = std::make_shared<Event>();
  Made(Thing::kEvent);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  FindEvent(event, "cudaEventDestroy");
  std::lock_guard<std::mutex> lock(All().mutex);
  All().events[event] = nullptr;
  Freed(Thing::kEvent);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  Record("cudaEventRecord");
  auto found = FindEvent(event, "cudaEventRecord");
  const int64_t number = ++found->recorded;
  FindStream(stream, "cudaEventRecord")->Push([found, number] {
    found->reached = number;
    return true;
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const auto found = FindEvent(event, "cudaEventQuery");
  return found->reached == found->recorded ? cudaSuccess : cudaErrorNotReady;
}

}  // extern "C"
