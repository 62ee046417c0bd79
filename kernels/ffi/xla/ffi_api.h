// SPDX-License-Identifier: Apache-2.0
// What libraries register themselves with: the table of functions that XLA_FFI_GetApi of
// XLA's C header and xla::ffi::GetXlaFfiApi of its C++ header return. Libraries leave both
// undefined, and programs that link this room export them. A library that has one of its
// own, or needs a library that has, gets that: what it registers is not for us.
//
// The functions have no declaration here, since XLA's headers have others.
#ifndef SHARDCALL_KERNELS_FFI_XLA_FFI_API_H_
#define SHARDCALL_KERNELS_FFI_XLA_FFI_API_H_

#include "shardcall/kernels/ffi/abi_table.h"

namespace shardcall {

// The newest table, with a Type_Register that takes the structs of every version: it is
// not known which one the library is of.
const abi::Api* FfiRegistrationApi();

inline constexpr char kGetApiSymbol[] = "XLA_FFI_GetApi";
inline constexpr char kGetXlaFfiApiSymbol[] = "_ZN3xla3ffi12GetXlaFfiApiEv";

// What the function of that name returns to the code at `caller`: the table above, or that
// of the function that the library around it has itself.
const void* FfiApiFor(const char* symbol, const void* caller);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_XLA_FFI_API_H_
