// SPDX-License-Identifier: Apache-2.0
// Calls of external code outside of a run: a library's start-up code, a plugin's entry, the
// metadata query of a handler. Any of them may never return.
#ifndef SHARDCALL_KERNELS_FFI_TIMED_CALL_H_
#define SHARDCALL_KERNELS_FFI_TIMED_CALL_H_

#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// The default deadline of a load.
constexpr absl::Duration kLoadDeadline = absl::Seconds(60);

// Runs `body` on its own thread. OK once it has returned and its captures are released; its
// exceptions pass through. If it has not returned within `deadline`, the result is that of `late`;
// if this thread's StopScope is asked to stop, it is E346. The thread is then abandoned: `body` and
// its captures live until it ends, and it must use nothing else. If no thread can be started, it
// runs on this one, without a deadline.
absl::Status CallWithin(absl::Duration deadline, std::function<void()> body,
                        absl::FunctionRef<absl::Status()> late);

// The same with E319, saying that `what` ("register_targets of the library "x"") has not returned.
absl::Status CallWithin(absl::Duration deadline, const std::string& what,
                        std::function<void()> body);

// The number of abandoned threads of this process that have not ended yet.
int CallsLeftBehind();

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_TIMED_CALL_H_
