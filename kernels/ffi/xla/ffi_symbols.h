// SPDX-License-Identifier: Apache-2.0
/* What the functions of ffi_symbols.c do. In C, since that file is a library of its own.
 */
#ifndef SHARDCALL_KERNELS_FFI_XLA_FFI_SYMBOLS_H_
#define SHARDCALL_KERNELS_FFI_XLA_FFI_SYMBOLS_H_

#include <stddef.h>

typedef struct Shardcall_FfiSymbols {
  const void* (*get_api)(const char* symbol, const void* caller);
  void (*set_success)(void* status);
  void (*set_failure)(void* status, const char* message, size_t message_len);
} Shardcall_FfiSymbols;

#endif /* SHARDCALL_KERNELS_FFI_XLA_FFI_SYMBOLS_H_ */
