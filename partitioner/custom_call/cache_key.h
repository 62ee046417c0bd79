// SPDX-License-Identifier: Apache-2.0
// A key for caches of results that depend on a rule, such as a compiled program. It covers the
// target, its rule with the version of its callbacks, the attributes of the call and the mesh. No
// address, hash seed or order of registration enters it, so two processes, and two builds, get the
// same key.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_CACHE_KEY_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_CACHE_KEY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// 32 hexadecimal digits: FNV-1a of 128 bits over the key's text. `frontend` may be null. Of its
// annotations (xla.sdy.*) only xla.sdy.sharding_rule is part of the key.
std::string RuleCacheKey(const TargetRule& rule, absl::string_view backend_config,
                         const FrontendAttributes* frontend, const BaseMesh& mesh);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_CACHE_KEY_H_
