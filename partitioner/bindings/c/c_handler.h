// SPDX-License-Identifier: Apache-2.0
// Converts handlers of the C interface (shardcall_c.h) to registry entries.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_C_HANDLER_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_C_HANDLER_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/bindings/c/shardcall_c.h"

namespace shardcall {
inline namespace internal {

// The handler's code and message become a status (E317); so does a throw.
HandlerEntry MakeCEntry(absl::string_view target, absl::string_view platform,
                        Shardcall_Handler* handler, void* data, absl::string_view source,
                        std::shared_ptr<const void> library);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_C_C_HANDLER_H_
