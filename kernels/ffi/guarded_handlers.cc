// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "kernels/ffi/guarded_call.h"
#include "sharding/status.h"

namespace shardcall {

HandlerRegistry GuardedHandlers(const HandlerRegistry& handlers) {
  HandlerRegistry out;
  for (const HandlerEntry* entry : handlers.List()) {
    HandlerEntry copy = *entry;
    if (copy.platform == "Host") {  // others are called through staged copies
      copy.host = [host = entry->host](const HandlerContext& context,
                                       absl::Span<const BufferView> operands,
                                       absl::Span<const BufferView> results) {
        size_t bytes = kGuardBytes;
        for (absl::Span<const BufferView> list : {operands, results}) {
          // A handler that takes elements for wider ones stays within, too.
          for (const BufferView& v : list) {
            bytes += static_cast<size_t>(v.byte_size() + 16 * v.num_elements());
          }
        }
        return CallGuarded(host, context, operands, results, bytes);
      };
    }
    SHARDCALL_CHECK(out.Register(std::move(copy)).ok());  // as it did before
  }
  for (const auto& [type, data] : handlers.user_data()) out.SetUserData(type, data);
  return out;
}

}  // namespace shardcall
