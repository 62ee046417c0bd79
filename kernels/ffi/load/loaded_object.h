// SPDX-License-Identifier: Apache-2.0
// Libraries in memory. The first two functions do not take the loader's lock: it may be held by a
// thread whose start-up code waits for this one.
#ifndef SHARDCALL_KERNELS_FFI_LOAD_LOADED_OBJECT_H_
#define SHARDCALL_KERNELS_FFI_LOAD_LOADED_OBJECT_H_

#include <link.h>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

// The program or library that contains an address; null if there is none, or if the C library
// cannot tell without its lock.
const link_map* ObjectAround(const void* address);

// Visits the functions and variables that it exports; none if its tables cannot be read.
void ForEachExport(const link_map& object,
                   absl::FunctionRef<void(const char* name, void* address)> visit);

// Takes the loader's lock. The handle of the library that contains an address. It is the same
// however often the library is opened, and must not be closed. Null for the program.
void* HandleAround(const void* address);
// Takes the loader's lock. Whether `bytes` occur in memory that was loaded from the library or
// program that contains an address.
bool ObjectHolds(const void* address, absl::string_view bytes);
// Whether both addresses are in the same library or program.
bool InOneObject(const void* a, const void* b);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_LOAD_LOADED_OBJECT_H_
