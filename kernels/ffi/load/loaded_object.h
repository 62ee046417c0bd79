// SPDX-License-Identifier: Apache-2.0
// Libraries in memory. The first two functions look without the loader's lock: a thread
// whose start-up code waits for this one may have that.
#ifndef SHARDCALL_KERNELS_FFI_LOAD_LOADED_OBJECT_H_
#define SHARDCALL_KERNELS_FFI_LOAD_LOADED_OBJECT_H_

#include <link.h>

#include "absl/functional/function_ref.h"

namespace shardcall::inline internal {

// The program or library around an address; null where there is none, or where the C
// library cannot tell without its lock.
const link_map* ObjectAround(const void* address);

// The functions and variables that it exports. None where its tables are not understood.
void ForEachExport(const link_map& object,
                   absl::FunctionRef<void(const char* name, void* address)> visit);

// With the loader's lock.
// The handle of the library around an address: that of a library is one, however often it
// is opened, and is not to be closed. Null for the program.
void* HandleAround(const void* address);
// Whether both lie in one library or program.
bool InOneObject(const void* a, const void* b);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_FFI_LOAD_LOADED_OBJECT_H_
