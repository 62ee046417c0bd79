// SPDX-License-Identifier: Apache-2.0
// What the stand-ins for cuBLASLt and cuSPARSE share: numbers of every type that they
// multiply, and things that callers hold.
#ifndef SHARDCALL_TESTS_KERNELS_STAND_IN_LIBRARY_H_
#define SHARDCALL_TESTS_KERNELS_STAND_IN_LIBRARY_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <library_types.h>

#include <complex>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tests/collectives/stand_in/record.h"

namespace stand_in {

inline size_t BytesOf(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    case CUDA_R_32F: return 4;
    case CUDA_R_64F:
    case CUDA_C_32F: return 8;
    case CUDA_C_64F: return 16;
    default: Misuse("a type of matrices that the stand-in does not have");
  }
}

template <typename T>
T ReadAs(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
inline std::complex<double> Load(cudaDataType_t type, const char* from) {
  switch (type) {
    case CUDA_R_16F: return __half2float(ReadAs<__half>(from));
    case CUDA_R_16BF: return __bfloat162float(ReadAs<__nv_bfloat16>(from));
    case CUDA_R_32F: return ReadAs<float>(from);
    case CUDA_R_64F: return ReadAs<double>(from);
    case CUDA_C_32F: return std::complex<double>(ReadAs<std::complex<float>>(from));
    default: return ReadAs<std::complex<double>>(from);
  }
}
template <typename T>
void WriteAs(T value, char* to) {
  std::memcpy(to, &value, sizeof(T));
}
inline void Store(cudaDataType_t type, std::complex<double> v, char* to) {
  switch (type) {
    case CUDA_R_16F: return WriteAs(__float2half_rn(static_cast<float>(v.real())), to);
    case CUDA_R_16BF: return WriteAs(__float2bfloat16_rn(static_cast<float>(v.real())), to);
    case CUDA_R_32F: return WriteAs(static_cast<float>(v.real()), to);
    case CUDA_R_64F: return WriteAs(v.real(), to);
    case CUDA_C_32F: return WriteAs(std::complex<float>(v), to);
    default: return WriteAs(v, to);
  }
}

// What callers hold by a pointer, until they destroy it. A pointer never means another
// thing later.
template <typename T>
class Held {
 public:
  explicit Held(Thing thing) : thing_(thing) {}
  template <typename Pointer>
  void Make(Pointer* pointer, T value) {
    char* const key = new char;
    *pointer = reinterpret_cast<Pointer>(key);
    std::lock_guard<std::mutex> lock(mutex_);
    all_[key] = std::make_shared<T>(std::move(value));
    Made(thing_);
  }
  std::shared_ptr<T> Find(const void* pointer, const char* function) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = all_.find(pointer);
    if (it == all_.end()) {
      Misuse(std::string(function) + " of what was never made, or is destroyed");
    }
    return it->second;
  }
  void Destroy(const void* pointer, const char* function) {
    Find(pointer, function);
    std::lock_guard<std::mutex> lock(mutex_);
    all_.erase(pointer);
    Freed(thing_);
  }

 private:
  const Thing thing_;
  std::mutex mutex_;
  std::map<const void*, std::shared_ptr<T>> all_;
};

template <typename T>
T ReadAttribute(const void* from, size_t bytes) {
  if (bytes != sizeof(T)) Misuse("an attribute of another size");
  return ReadAs<T>(static_cast<const char*>(from));
}

}  // namespace stand_in

#endif  // SHARDCALL_TESTS_KERNELS_STAND_IN_LIBRARY_H_
