// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_EXTENSIONS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_EXTENSIONS_H_

#include "shardcall/partitioner/bindings/pjrt/pjrt_abi.h"

namespace shardcall::pjrt {

// The chain of extensions that the framework is given: before those of the wrapped plugin
// stand ours, which note what the framework registers, and pass it on.
//   partitioners (2), which a plugin need not have: those of targets are asked by us
//   FFI (5) and custom calls of GPUs (0): handlers, which are then not registered by us
abi::Extension* WrapExtensions(abi::Extension* real);

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_EXTENSIONS_H_
