// SPDX-License-Identifier: Apache-2.0
/* The functions that libraries of handlers leave undefined, as a library of their own that
 * needs no other. Its bytes stand in ours (shown_symbols.cc), which opens it for all where
 * a process does not show ours: a framework that opens us as a plugin shows nothing of us,
 * and to show all of us would change what other libraries are bound to.
 */
#include "shardcall/kernels/ffi/xla/ffi_symbols.h"

#define SHOWN __attribute__((visibility("default")))

static Shardcall_FfiSymbols used;

/* Found by the handle of this library: a process may have several. */
SHOWN void shardcall_use_ffi_symbols(const Shardcall_FfiSymbols* symbols) { used = *symbols; }

SHOWN const void* XLA_FFI_GetApi(void) {
  return used.get_api("XLA_FFI_GetApi", __builtin_return_address(0));
}

const void* GetXlaFfiApi(void) __asm__("_ZN3xla3ffi12GetXlaFfiApiEv");
SHOWN const void* GetXlaFfiApi(void) {
  return used.get_api("_ZN3xla3ffi12GetXlaFfiApiEv", __builtin_return_address(0));
}

SHOWN void XlaCustomCallStatusSetSuccess(void* status) { used.set_success(status); }

SHOWN void XlaCustomCallStatusSetFailure(void* status, const char* message, size_t message_len) {
  used.set_failure(status, message, message_len);
}
