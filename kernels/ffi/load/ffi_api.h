// SPDX-License-Identifier: Apache-2.0
// The FFI API for libraries that register their own handlers: the table of functions that
// XLA_FFI_GetApi of XLA's C header and xla::ffi::GetXlaFfiApi of its C++ header return. Libraries
// leave both undefined, and programs that link this library export them. A library that defines
// them itself, or links one that does, uses those, and its registrations do not arrive here.
//
// These functions are not declared here, since XLA's headers declare them with other types.
#ifndef SHARDCALL_KERNELS_FFI_LOAD_FFI_API_H_
#define SHARDCALL_KERNELS_FFI_LOAD_FFI_API_H_

#include "shardcall/kernels/ffi/abi_table.h"

namespace shardcall {
inline namespace internal {

// The newest table, with a Type_Register that accepts the structs of every version, since the
// library's version is not known.
const abi::Api* FfiRegistrationApi();

inline constexpr char kGetApiSymbol[] = "XLA_FFI_GetApi";
inline constexpr char kGetXlaFfiApiSymbol[] = "_ZN3xla3ffi12GetXlaFfiApiEv";

// The result of the function of that name for the code at `caller`: the table above, or, if the
// library around `caller` has such a function itself, that function's result.
const void* FfiApiFor(const char* symbol, const void* caller);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_LOAD_FFI_API_H_
