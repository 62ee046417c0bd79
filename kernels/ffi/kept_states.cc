// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/kept_states.h"

#include "shardcall/sharding/base/status.h"

namespace shardcall {

absl::StatusOr<std::shared_ptr<void>> KeptStates::GetOrMake(const void* owner, Maker make) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [known, kept] : kept_) {
    if (known == owner) return kept;
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<void> made, make());
  kept_.emplace_back(owner, made);
  return made;
}

}  // namespace shardcall
