// SPDX-License-Identifier: Apache-2.0
// Libraries in memory, looked at without the loader's lock: a thread whose start-up code
// waits for this one may have that.
#ifndef SHARDCALL_KERNELS_FFI_LOADED_OBJECT_H_
#define SHARDCALL_KERNELS_FFI_LOADED_OBJECT_H_

#include <link.h>

#include "absl/functional/function_ref.h"

namespace shardcall {

// The program or library around an address; null where there is none, or where the C
// library cannot tell without its lock.
const link_map* ObjectAround(const void* address);

// The functions and variables that it exports. None where its tables are not understood.
void ForEachExport(const link_map& object,
                   absl::FunctionRef<void(const char* name, void* address)> visit);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_LOADED_OBJECT_H_
