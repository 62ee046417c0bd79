// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt_wrapper/own_errors.h"

#include <utility>

namespace shardcall {
inline namespace internal {
namespace pjrt {

abi::Error* OwnErrors::Make(absl::Status status) {
  if (status.ok()) return nullptr;
  auto kept = std::make_unique<absl::Status>(std::move(status));
  auto* const error = reinterpret_cast<abi::Error*>(kept.get());
  const std::lock_guard<std::mutex> lock(mutex_);
  errors_.emplace(error, std::move(kept));
  return error;
}

const absl::Status* OwnErrors::Find(const abi::Error* error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = errors_.find(error);
  return found == errors_.end() ? nullptr : found->second.get();
}

bool OwnErrors::Destroy(const abi::Error* error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return errors_.erase(error) > 0;
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
