// SPDX-License-Identifier: Apache-2.0
// Futures of the typed FFI: a handler returns one if its results come later. The runtime waits for
// it, within the deadline.
#ifndef SHARDCALL_KERNELS_FFI_XLA_FFI_FUTURE_H_
#define SHARDCALL_KERNELS_FFI_XLA_FFI_FUTURE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/abi.h"

namespace shardcall {
inline namespace internal {

abi::Future* NewFfiFuture();

// Completes it. A future that does not exist or is complete already is ignored: XLA's headers
// would abort the process for an error here.
void CompleteFfiFuture(const void* future, absl::Status status);

enum class FutureEnd { kDone, kNotAFuture, kDeadline };

// Waits until `future` is complete and destroys it; `status` is what it was completed with. At the
// deadline the future takes over `keep`, which owns what its work may still use, and releases it
// when it is completed later.
FutureEnd AwaitFfiFuture(const void* future, absl::Duration deadline,
                         const std::shared_ptr<const void>& keep, absl::Status* status);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_XLA_FFI_FUTURE_H_
