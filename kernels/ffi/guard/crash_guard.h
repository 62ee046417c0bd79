// SPDX-License-Identifier: Apache-2.0
// Calls functions that may have another ABI than assumed: an untyped one takes its first argument
// for its results, and may write any number of bytes there.
#ifndef SHARDCALL_KERNELS_FFI_GUARD_CRASH_GUARD_H_
#define SHARDCALL_KERNELS_FFI_GUARD_CRASH_GUARD_H_

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace shardcall {
inline namespace internal {

// Runs `body`; false if it ended in SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT of this thread,
// which includes a stack overflow. Objects on its stack are then not destroyed, so use this only
// to query a library that is given up after a false. Any thread may call it; a nested call belongs
// to the outer one. Exceptions of `body` pass through.
bool CallCatchingSignals(absl::FunctionRef<void()> body);

// Zeroed memory followed by an inaccessible page: a write past its end stops there and damages
// nothing else.
class FencedMemory {
 public:
  explicit FencedMemory(size_t size);  // rounded up to 16 bytes
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;
  ~FencedMemory();
  void* data() const { return data_; }  // null if the allocation failed

 private:
  void* pages_ = nullptr;
  size_t mapped_ = 0;
  void* data_ = nullptr;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_GUARD_CRASH_GUARD_H_
