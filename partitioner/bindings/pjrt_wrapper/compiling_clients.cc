// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt_wrapper/compiling_clients.h"

#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

void CompilingClients::Enter(abi::Client* client) {
  if (client == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  ++clients_[client].programs;
}

bool CompilingClients::Leave(abi::Client* client) {
  if (client == nullptr) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = clients_.find(client);
  SHARDCALL_CHECK(found != clients_.end());
  if (--found->second.programs > 0) return false;
  const bool destroyed = found->second.destroyed;
  clients_.erase(found);
  return destroyed;
}

bool CompilingClients::Destroy(abi::Client* client) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = clients_.find(client);
  if (found == clients_.end()) return true;
  found->second.destroyed = true;
  return false;
}

absl::Status CompilingClients::Check(abi::Client* client) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = clients_.find(client);
  if (found == clients_.end() || !found->second.destroyed) return absl::OkStatus();
  return ToStatus({.code = "E343",
                   .message = "the client was destroyed while a program was compiled for it",
                   .fix = "Destroy a client after its compilations have returned"},
                  absl::StatusCode::kCancelled);
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
