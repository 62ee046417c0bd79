// SPDX-License-Identifier: Apache-2.0
// The execution context of a typed-FFI call.
#ifndef SHARDCALL_KERNELS_FFI_XLA_FFI_CONTEXT_H_
#define SHARDCALL_KERNELS_FFI_XLA_FFI_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "shardcall/kernels/ffi/abi.h"
#include "shardcall/kernels/ffi/handler_device.h"
#include "shardcall/kernels/ffi/xla/ffi_device.h"
#include "shardcall/kernels/ffi/xla/ffi_types.h"

namespace shardcall {
inline namespace internal {

// An object that a handler makes in one stage and uses in a later one.
class FfiState {
 public:
  FfiState() = default;
  FfiState(const FfiState&) = delete;
  FfiState& operator=(const FfiState&) = delete;
  ~FfiState() { Reset(); }

  bool empty() const { return object_ == nullptr; }
  void* object() const { return object_; }
  int64_t type_id() const { return type_id_; }
  void Set(void* object, int64_t type_id, FfiDeleter deleter) {
    Reset();
    object_ = object, type_id_ = type_id, deleter_ = deleter;
  }

 private:
  void Reset() noexcept {
    try {
      if (object_ != nullptr && deleter_ != nullptr) deleter_(object_);
    } catch (...) {  // a library's destructor may throw, which cannot be reported
    }
    object_ = nullptr;
  }

  void* object_ = nullptr;
  int64_t type_id_ = 0;
  FfiDeleter deleter_ = nullptr;
};

}  // namespace internal
}  // namespace shardcall

namespace shardcall::abi {

struct ExecutionContext {
  int minor = 0;  // of the stage's handler
  Stage stage = Stage::kExecute;
  int32_t device_ordinal = 0;
  int64_t run_id = 0;
  const std::map<int64_t, void*>* user_data = nullptr;  // by type id; null: none
  FfiState* instantiated = nullptr;                     // of the call site
  FfiState prepared, initialized;                       // of this call

  // The device that holds buffers and scratch memory; null: host memory, or no device yet.
  std::shared_ptr<HandlerDevice> accelerator;

  std::mutex scratch_mutex;
  std::vector<std::pair<void*, size_t>> scratch;  // freed at the end of the call at the latest
  void FreeScratch(void* data);

  // The device extension, made on first use; null if there is none, as in the instantiate stage
  // and after the call.
  Shardcall_FfiDevice* Device();
  void EndCall();
  const HandlerContext* call = nullptr;  // until EndCall
  std::mutex device_mutex;
  std::unique_ptr<FfiDevice> device;

  // Set when a task on the pool has thrown. Tasks may outlive the call.
  std::shared_ptr<std::atomic<bool>> task_threw;

  // Null for a stage that has no state.
  FfiState* state(Stage s) {
    return s == Stage::kInstantiate  ? instantiated
           : s == Stage::kPrepare    ? &prepared
           : s == Stage::kInitialize ? &initialized
                                     : nullptr;
  }
  ExecutionContext() = default;
  ExecutionContext(const ExecutionContext&) = delete;
  ExecutionContext& operator=(const ExecutionContext&) = delete;
  ~ExecutionContext();  // frees the remaining scratch memory
};

}  // namespace shardcall::abi

namespace shardcall {
inline namespace internal {

// "instantiate", "prepare", ...
const char* FfiStageName(abi::Stage stage);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_XLA_FFI_CONTEXT_H_
