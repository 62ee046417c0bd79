// SPDX-License-Identifier: Apache-2.0
// The table of functions that typed-FFI handlers call back, one for each minor version of the ABI:
// 0.1 and 0.2 have other structs for states.
#ifndef SHARDCALL_KERNELS_FFI_XLA_FFI_TABLE_H_
#define SHARDCALL_KERNELS_FFI_XLA_FFI_TABLE_H_

#include "shardcall/kernels/ffi/abi_table.h"

namespace shardcall::inline internal {

// The table for a handler of version 0.`minor`, within the supported ones.
const abi::Api* FfiTable(int minor);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_FFI_XLA_FFI_TABLE_H_
