// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_EXTENSIONS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_EXTENSIONS_H_

#include "shardcall/partitioner/bindings/xla/pjrt_abi.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// The chain of extensions for the framework: before those of the wrapped plugin it has these,
// which record the framework's registrations and pass them on.
//   partitioners (2), which a plugin need not have: shardcall calls them
//   FFI (5) and custom calls of GPUs (0): shardcall does not register these handlers again
abi::Extension* WrapExtensions(abi::Extension* real);

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_EXTENSIONS_H_
