// SPDX-License-Identifier: Apache-2.0
// The device extension (shardcall_ffi.h) of one call of a typed-FFI handler.
#ifndef SHARDCALL_KERNELS_FFI_XLA_FFI_DEVICE_H_
#define SHARDCALL_KERNELS_FFI_XLA_FFI_DEVICE_H_

#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/kernels/ffi/mesh_view.h"
#include "shardcall/kernels/ffi/shardcall_ffi.h"

namespace shardcall {
inline namespace internal {

class FfiDevice {
 public:
  // `context` is read until Close().
  explicit FfiDevice(const HandlerContext& context);
  FfiDevice(const FfiDevice&) = delete;
  FfiDevice& operator=(const FfiDevice&) = delete;

  Shardcall_FfiDevice* c() { return &c_; }
  // The call has ended, and work that it left behind can use the device no longer. Waits for a
  // running function.
  void Close();
  // The error of the first function that failed.
  absl::Status first_error();

  // Runs `work(communicator, group)`; or, with no communicator and a group of only this device,
  // `alone()`.
  template <typename Work, typename Alone>
  int32_t Collective(const int32_t* group, int32_t size, Work work, Alone alone);
  template <typename Work>
  int32_t Guarded(Work work);

  const HandlerContext* context() const { return context_; }
  CollectiveTag tag() const { return {tag_}; }

 private:
  std::mutex mutex_;
  const HandlerContext* context_;  // null: closed
  const std::string tag_;
  std::vector<MeshAxisView> axes_;
  std::vector<const char*> names_;
  std::vector<int64_t> sizes_, coordinates_;
  absl::Status first_error_;
  std::string message_;
  Shardcall_FfiDevice c_ = {};

  static const char* Message(const Shardcall_FfiDevice* c);
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_XLA_FFI_DEVICE_H_
