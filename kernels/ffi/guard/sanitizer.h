// SPDX-License-Identifier: Apache-2.0
// AddressSanitizer functions, which do nothing in builds without it.
#ifndef SHARDCALL_KERNELS_FFI_GUARD_SANITIZER_H_
#define SHARDCALL_KERNELS_FFI_GUARD_SANITIZER_H_

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define SHARDCALL_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHARDCALL_HAS_ASAN 1
#endif
#endif
#ifdef SHARDCALL_HAS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace shardcall {
inline namespace internal {

inline void PoisonBytes(const char* begin, size_t size) {
#ifdef SHARDCALL_HAS_ASAN
  __asan_poison_memory_region(begin, size);
#else
  (void)begin, (void)size;
#endif
}

inline void UnpoisonBytes(const char* begin, size_t size) {
#ifdef SHARDCALL_HAS_ASAN
  __asan_unpoison_memory_region(begin, size);
#else
  (void)begin, (void)size;
#endif
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_GUARD_SANITIZER_H_
