// SPDX-License-Identifier: Apache-2.0
// A small key-value store over TCP: Put sets a key, Get waits for it. Its server is a thread of
// one process. It is for the start of jobs, not for data; there is no encryption and no
// authentication, so use it only on a private network.
#ifndef SHARDCALL_COLLECTIVES_TCP_STORE_H_
#define SHARDCALL_COLLECTIVES_TCP_STORE_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace shardcall {
inline namespace internal {

class TcpStoreServer {
 public:
  // Listens at "host:port"; port 0 selects a free one.
  static absl::StatusOr<std::unique_ptr<TcpStoreServer>> Listen(const std::string& address);
  ~TcpStoreServer();

  int port() const { return port_; }

 private:
  TcpStoreServer() = default;
  void Serve();

  int listener_ = -1;
  int wake_[2] = {-1, -1};  // a pipe that ends Serve
  int port_ = 0;
  std::thread thread_;
};

class TcpStoreClient {
 public:
  // Tries until the deadline, since the server may start later.
  static absl::StatusOr<std::unique_ptr<TcpStoreClient>> Connect(const std::string& address,
                                                                 absl::Duration deadline);
  ~TcpStoreClient();

  absl::Status Put(const std::string& key, const std::string& value);
  // kNotFound if no one has put the key within `patience`.
  absl::StatusOr<std::string> Get(const std::string& key, absl::Duration patience);

 private:
  explicit TcpStoreClient(int socket) : socket_(socket) {}
  const int socket_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_TCP_STORE_H_
