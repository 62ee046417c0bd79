// SPDX-License-Identifier: Apache-2.0
// Calls of a function that may be none of the kind that it is taken for: an untyped one
// takes the first argument for its results, and writes as many as it likes there.
#ifndef SHARDCALL_KERNELS_FFI_GUARD_CRASH_GUARD_H_
#define SHARDCALL_KERNELS_FFI_GUARD_CRASH_GUARD_H_

#include <cstddef>

#include "absl/functional/function_ref.h"

namespace shardcall {

// Runs `body`; false where it ended in SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT of
// this thread, by too deep a stack too. What stood on its stack is then not destroyed:
// for questions to a library that is given up after a false. Any thread may be in one; a
// call within `body` is part of it. What `body` throws comes through.
bool CallCatchingSignals(absl::FunctionRef<void()> body);

// Zeroed memory that ends where no byte may be touched: what writes past its end stops
// there, and harms nothing else.
class FencedMemory {
 public:
  explicit FencedMemory(size_t size);  // rounded up to 16 bytes
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;
  ~FencedMemory();
  void* data() const { return data_; }  // null where there was no memory

 private:
  void* pages_ = nullptr;
  size_t mapped_ = 0;
  void* data_ = nullptr;
};

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_GUARD_CRASH_GUARD_H_
