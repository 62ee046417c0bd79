// SPDX-License-Identifier: Apache-2.0
// The signals that end code that crashes.
#ifndef SHARDCALL_KERNELS_FFI_GUARD_SIGNAL_NAMES_H_
#define SHARDCALL_KERNELS_FFI_GUARD_SIGNAL_NAMES_H_

#include <signal.h>

namespace shardcall {
inline namespace internal {

inline constexpr int kCrashSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

// "SIGSEGV"; may be called in a signal handler.
inline const char* SignalName(int signal_number) {
  switch (signal_number) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGILL: return "SIGILL";
    case SIGFPE: return "SIGFPE";
    case SIGABRT: return "SIGABRT";
    case SIGKILL: return "SIGKILL";
    default: return "a signal";
  }
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_GUARD_SIGNAL_NAMES_H_
