// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_COMPILING_CLIENTS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_COMPILING_CLIENTS_H_

#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_abi.h"

namespace shardcall::pjrt {

// Clients for which programs are being compiled. One that a framework destroys meanwhile,
// which PJRT leaves undefined, is left alone until the last of its programs has returned:
// destroying it neither waits, since what compiles may need a lock that the framework holds,
// nor takes it away from under the compiler. Any thread.
class CompilingClients {
 public:
  // Of one program's compilation; null is no client.
  void Enter(abi::Client* client);
  // True for the last one of a client that was to be destroyed: it is now for the caller to
  // destroy.
  bool Leave(abi::Client* client);

  // Whether the client is for the caller to destroy, since nothing is compiled for it.
  // Otherwise the last Leave() says so.
  bool Destroy(abi::Client* client);
  // E343 from Destroy() on.
  absl::Status Check(abi::Client* client) const;

 private:
  struct State {
    int programs = 0;
    bool destroyed = false;
  };
  mutable std::mutex mutex_;
  absl::flat_hash_map<abi::Client*, State> clients_;
};

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_COMPILING_CLIENTS_H_
