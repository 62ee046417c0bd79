// SPDX-License-Identifier: Apache-2.0
// The functions that libraries of handlers leave undefined, in a process that does not show
// ours to them: one that opened us with dlopen, as frameworks open plugins.
#ifndef SHARDCALL_KERNELS_FFI_LOAD_SHOWN_SYMBOLS_H_
#define SHARDCALL_KERNELS_FFI_LOAD_SHOWN_SYMBOLS_H_

#include "absl/strings/string_view.h"

namespace shardcall::inline internal {

// XLA_FFI_GetApi, xla::ffi::GetXlaFfiApi, and the two of XlaCustomCallStatus.
bool IsFfiSymbol(absl::string_view symbol);

// Shows them to every library that is loaded from now on, and nothing else of ours. False
// where the system does not let a library be opened from memory.
bool ShowFfiSymbols();

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_FFI_LOAD_SHOWN_SYMBOLS_H_
