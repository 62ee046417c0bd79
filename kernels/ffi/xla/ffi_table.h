// SPDX-License-Identifier: Apache-2.0
// The table of functions that typed-FFI handlers call back, one for each minor version of the ABI:
// 0.1 and 0.2 have other structs for states.
#ifndef SHARDCALL_KERNELS_FFI_XLA_FFI_TABLE_H_
#define SHARDCALL_KERNELS_FFI_XLA_FFI_TABLE_H_

#include "shardcall/kernels/ffi/abi_table.h"

namespace shardcall {
inline namespace internal {

// The table for a handler of version 0.`minor`, within the supported ones.
const abi::Api* FfiTable(int minor);

// Handler_Register of every table; it is in load/self_registration.cc, as it registers what the
// start-up code of a library under load calls it with. Returns an error of the ABI for a struct
// that is too small, a missing name, platform or `execute`, or a call while Library::Open loads no
// library; the last one is reported nowhere else.
abi::Error* RegisterHandlerOfLibrary(abi::HandlerRegisterArgs* args);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_XLA_FFI_TABLE_H_
