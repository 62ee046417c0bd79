// SPDX-License-Identifier: Apache-2.0
// Futures of the typed FFI: a handler returns one to say that its results come
// later. The runtime waits for it, as long as its deadline allows.
#ifndef SHARDCALL_KERNELS_FFI_XLA_FFI_FUTURE_H_
#define SHARDCALL_KERNELS_FFI_XLA_FFI_FUTURE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/abi.h"

namespace shardcall {

abi::Future* NewFfiFuture();

// Completes it. What is no live future, or is complete already, is left alone:
// XLA's headers end the process when they are told of an error here.
void CompleteFfiFuture(const void* future, absl::Status status);

enum class FutureEnd { kDone, kNotAFuture, kDeadline };

// Waits until `future` is complete and ends its life; `status` is what it was
// completed with. At the deadline the future takes over `keep`, what its work
// may still touch, and lets go of it when it is completed after all.
FutureEnd AwaitFfiFuture(const void* future, absl::Duration deadline,
                         const std::shared_ptr<const void>& keep, absl::Status* status);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_XLA_FFI_FUTURE_H_
