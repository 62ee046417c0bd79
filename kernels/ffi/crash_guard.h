// SPDX-License-Identifier: Apache-2.0
// Calls of a function that may be none of the kind that it is taken for.
#ifndef SHARDCALL_KERNELS_FFI_CRASH_GUARD_H_
#define SHARDCALL_KERNELS_FFI_CRASH_GUARD_H_

#include "absl/functional/function_ref.h"

namespace shardcall {

// Runs `body`; false where it ended in SIGSEGV, SIGBUS, SIGILL or SIGFPE of this
// thread. What stood on its stack is then not destroyed: for questions to a library
// that is given up after a false. One at a time in the process; what `body` throws
// comes through.
bool CallCatchingSignals(absl::FunctionRef<void()> body);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_CRASH_GUARD_H_
