// SPDX-License-Identifier: Apache-2.0
// What handlers keep between calls: for one call of a program (CallSite), or for one
// device and its stream (HandlerDevice::kept).
#ifndef SHARDCALL_KERNELS_FFI_KEPT_STATES_H_
#define SHARDCALL_KERNELS_FFI_KEPT_STATES_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

class KeptStates {
 public:
  using Maker = absl::FunctionRef<absl::StatusOr<std::shared_ptr<void>>()>;
  // What `owner` made here before, else what `make` makes. It must keep the
  // owner alive, lest another one stands at its address. Failures are not kept.
  absl::StatusOr<std::shared_ptr<void>> GetOrMake(const void* owner, Maker make);

 private:
  std::mutex mutex_;
  std::vector<std::pair<const void*, std::shared_ptr<void>>> kept_;
};

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_KEPT_STATES_H_
