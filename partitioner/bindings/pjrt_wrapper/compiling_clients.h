// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_COMPILING_CLIENTS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_COMPILING_CLIENTS_H_

#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "shardcall/partitioner/bindings/xla/pjrt_abi.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// Clients for which programs are being compiled. PJRT leaves it undefined to destroy such a
// client. Here its destruction is deferred until the last of its compilations has returned.
// Destroying it neither waits, since a compilation may need a lock that the framework holds, nor
// removes the client while the compiler uses it. Thread-safe.
class CompilingClients {
 public:
  // At the start of a compilation; null means no client.
  void Enter(abi::Client* client);
  // At its end. True if it was the last one of a client to be destroyed: the caller must then
  // destroy it.
  bool Leave(abi::Client* client);

  // Whether the caller must destroy the client, since no compilation uses it. Otherwise the last
  // Leave() returns true.
  bool Destroy(abi::Client* client);
  // E343 after Destroy().
  absl::Status Check(abi::Client* client) const;

 private:
  struct State {
    int programs = 0;
    bool destroyed = false;
  };
  mutable std::mutex mutex_;
  absl::flat_hash_map<abi::Client*, State> clients_;
};

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_COMPILING_CLIENTS_H_
