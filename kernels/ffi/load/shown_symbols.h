// SPDX-License-Identifier: Apache-2.0
// The functions that handler libraries leave undefined. They are missing in a process that does not
// export ours, such as one that opened this library with dlopen, as frameworks open plugins.
#ifndef SHARDCALL_KERNELS_FFI_LOAD_SHOWN_SYMBOLS_H_
#define SHARDCALL_KERNELS_FFI_LOAD_SHOWN_SYMBOLS_H_

#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

// XLA_FFI_GetApi, xla::ffi::GetXlaFfiApi, and the two of XlaCustomCallStatus.
bool IsFfiSymbol(absl::string_view symbol);

// Exports them, and nothing else, to every library that is loaded from now on. False if the system
// cannot open a library from memory.
bool ShowFfiSymbols();

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_LOAD_SHOWN_SYMBOLS_H_
