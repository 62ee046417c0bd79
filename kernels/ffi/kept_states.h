// SPDX-License-Identifier: Apache-2.0
// State that handlers keep between calls: for one call of a program (CallSite), or for one device
// and its stream (HandlerDevice::kept).
#ifndef SHARDCALL_KERNELS_FFI_KEPT_STATES_H_
#define SHARDCALL_KERNELS_FFI_KEPT_STATES_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "shardcall/sharding/base/made_once.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

class KeptStates {
 public:
  using Maker = absl::FunctionRef<absl::StatusOr<std::shared_ptr<void>>()>;
  // The object that was made for `owner` before, else the result of `make`. The object must keep
  // the owner alive, so that no other owner gets its address. Failures are not kept.
  absl::StatusOr<std::shared_ptr<void>> GetOrMake(const void* owner, Maker make) {
    return kept_.GetOrMake(owner, make);
  }

 private:
  MadeOnce<const void*, std::shared_ptr<void>> kept_;
};

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_KEPT_STATES_H_
