// SPDX-License-Identifier: Apache-2.0
// Calls of code that is not ours outside of a run: a library's start-up code, a plugin's
// entry, a handler that is asked for its version. Any of them may never return.
#ifndef SHARDCALL_KERNELS_FFI_GUARD_TIMED_CALL_H_
#define SHARDCALL_KERNELS_FFI_GUARD_TIMED_CALL_H_

#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Of a load that is given none.
constexpr absl::Duration kLoadDeadline = absl::Seconds(60);

// Runs `body` on a thread of its own. OK once it has returned and what it captures is
// released; what it throws comes through. Where it has not returned within `deadline` the
// result is what `late` gives, and the thread is left behind: `body` and what it captures
// live until it ends, and it must touch nothing else. Where no thread can be started it
// runs on this one, without a deadline.
absl::Status CallWithin(absl::Duration deadline, std::function<void()> body,
                        absl::FunctionRef<absl::Status()> late);

// The same with E319 that `what` ("register_targets of the library "x"") has not returned.
absl::Status CallWithin(absl::Duration deadline, const std::string& what,
                        std::function<void()> body);

// How many such threads of this process have been left behind and have not ended since.
int CallsLeftBehind();

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_GUARD_TIMED_CALL_H_
