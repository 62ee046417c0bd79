// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/lower_calls.h"

#include <string>

namespace shardcall {

LoweringFunction LowerToHandlers(const HandlerRegistry* handlers, const TargetRegistry* targets) {
  return [handlers, targets](const LoweringRequest& call) -> LoweringAnswer {
    if (!call.composite || !handlers->Find(call.name, call.platform).ok()) return Skip();
    if (targets != nullptr && targets->Find(call.name, call.attributes) == nullptr) return Skip();
    const HandlerEntry* entry = *handlers->Find(call.name, call.platform);
    LoweredCall out;
    out.target = std::string(call.name);
    out.api_version = entry->api_version == 0 ? 1 : entry->api_version;
    out.backend_config = std::string(call.attributes);
    return out;
  };
}

}  // namespace shardcall
