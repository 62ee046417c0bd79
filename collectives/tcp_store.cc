// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/tcp_store.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shardcall/collectives/wait_word.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

enum Kind : uint32_t { kPut = 1, kGet = 2 };
// Sent before key and value, in native byte order, since all ranks run on the same kind of
// machine.
struct Request {
  uint32_t kind;
  uint32_t key_bytes;
  uint32_t value_bytes;
  uint32_t patience_ms;  // of a get
};
constexpr uint32_t kMaxBytes = 1 << 16;
constexpr uint32_t kAbsent = 0xffffffff;  // instead of the reply's size

absl::Status SystemError(absl::string_view what) {
  return ToStatus({.code = "E307",
                   .message = absl::StrCat(what, ": ", std::strerror(errno)),
                   .fix = "See that the address can be reached, and that its port is free"},
                  absl::StatusCode::kInternal);
}

struct Freed {
  void operator()(addrinfo* info) const { freeaddrinfo(info); }
};
absl::StatusOr<std::unique_ptr<addrinfo, Freed>> Resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535) {
    return ToStatus({.code = "E306",
                     .message = "an address is no address",
                     .expected = "host:port",
                     .found = address,
                     .fix = "Write host:port, such as localhost:29500"});
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(),
                               &hints, &found);
  if (code == 0) return std::unique_ptr<addrinfo, Freed>(found);
  return ToStatus({.code = "E306",
                   .message = absl::StrCat("host of ", address, ": ", gai_strerror(code)),
                   .fix = "Give a host that this machine can resolve"});
}

bool SendAll(int socket, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= sent;
  }
  return true;
}

bool ReceiveAll(int socket, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= got;
  }
  return true;
}

// The server's state of one client.
struct Peer {
  int socket;
  std::string received;
  bool waits = false;  // for `key`, until `deadline`
  std::string key;
  MonotonicTime deadline;
};

bool Reply(int socket, uint32_t size, const std::string& value) {
  std::string message(reinterpret_cast<const char*>(&size), sizeof(size));
  return SendAll(socket, (message += value).data(), sizeof(size) + value.size());
}

// Handles the complete requests in what was received; false if the peer's data is invalid.
bool Take(Peer& peer, std::map<std::string, std::string>& values) {
  Request request;
  while (peer.received.size() >= sizeof(request)) {
    std::memcpy(&request, peer.received.data(), sizeof(request));
    if ((request.kind != kPut && request.kind != kGet) || request.key_bytes > kMaxBytes ||
        request.value_bytes > kMaxBytes) {
      return false;
    }
    const size_t whole = sizeof(request) + request.key_bytes + request.value_bytes;
    if (peer.received.size() < whole) return true;
    std::string key = peer.received.substr(sizeof(request), request.key_bytes);
    if (request.kind == kPut) {
      values[key] = peer.received.substr(sizeof(request) + request.key_bytes, request.value_bytes);
    } else {
      peer.waits = true;
      peer.key = std::move(key);
      peer.deadline = DeadlineAfter(absl::Milliseconds(request.patience_ms));
    }
    peer.received.erase(0, whole);
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpStoreServer>> TcpStoreServer::Listen(const std::string& address) {
  SHARDCALL_ASSIGN_OR_RETURN(const auto info, Resolve(address));
  auto server = std::unique_ptr<TcpStoreServer>(new TcpStoreServer);
  server->listener_ = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  if (server->listener_ < 0 ||
      setsockopt(server->listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      bind(server->listener_, info->ai_addr, info->ai_addrlen) != 0 ||
      listen(server->listener_, 1024) != 0) {
    return SystemError(absl::StrCat("cannot listen at ", address));
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (getsockname(server->listener_, reinterpret_cast<sockaddr*>(&bound), &length) != 0 ||
      pipe2(server->wake_, O_CLOEXEC) != 0) {
    return SystemError("cannot start the store");
  }
  server->port_ =
      ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                        : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  server->thread_ = std::thread([raw = server.get()] { raw->Serve(); });
  return server;
}

TcpStoreServer::~TcpStoreServer() {
  if (wake_[1] >= 0) close(wake_[1]);
  if (thread_.joinable()) thread_.join();
  if (wake_[0] >= 0) close(wake_[0]);
  if (listener_ >= 0) close(listener_);
}

void TcpStoreServer::Serve() {
  std::map<std::string, std::string> values;
  std::vector<Peer> peers;
  while (true) {
    std::vector<pollfd> polled = {{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Peer& peer : peers) polled.push_back({peer.socket, POLLIN, 0});
    // Waits end at most some milliseconds late.
    const bool anybody_waits =
        std::any_of(peers.begin(), peers.end(), [](const Peer& peer) { return peer.waits; });
    poll(polled.data(), polled.size(), anybody_waits ? 10 : 1000);
    if (polled[0].revents != 0) break;
    std::vector<bool> gone(peers.size(), false);
    for (size_t i = 0; i < peers.size(); ++i) {
      if (polled[2 + i].revents == 0) continue;
      char buffer[4096];
      const ssize_t got = recv(peers[i].socket, buffer, sizeof(buffer), MSG_DONTWAIT);
      if (got > 0) peers[i].received.append(buffer, got);
      gone[i] =
          got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) || !Take(peers[i], values);
    }
    for (size_t i = 0; i < peers.size(); ++i) {
      Peer& peer = peers[i];
      if (gone[i] || !peer.waits) continue;
      const auto value = values.find(peer.key);
      if (value != values.end()) {
        peer.waits = false;
        gone[i] = !Reply(peer.socket, value->second.size(), value->second);
      } else if (std::chrono::steady_clock::now() >= peer.deadline) {
        peer.waits = false;
        gone[i] = !Reply(peer.socket, kAbsent, "");
      }
    }
    for (size_t i = peers.size(); i-- > 0;) {
      if (!gone[i]) continue;
      close(peers[i].socket);
      peers.erase(peers.begin() + i);
    }
    if (polled[1].revents & POLLIN) {
      const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket >= 0) peers.push_back({socket, {}, false, {}, {}});
    }
  }
  for (const Peer& peer : peers) close(peer.socket);
}

absl::StatusOr<std::unique_ptr<TcpStoreClient>> TcpStoreClient::Connect(const std::string& address,
                                                                        absl::Duration deadline) {
  SHARDCALL_ASSIGN_OR_RETURN(const auto info, Resolve(address));
  const MonotonicTime end = DeadlineAfter(deadline);
  while (true) {
    const int made = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0) return SystemError("cannot make a socket");
    const timeval patience{1, 0};  // per attempt
    setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(made, info->ai_addr, info->ai_addrlen) == 0) {
      const int yes = 1;
      setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
      return std::unique_ptr<TcpStoreClient>(new TcpStoreClient(made));
    }
    close(made);
    if (std::chrono::steady_clock::now() >= end) {
      return ToStatus({.code = "E301",
                       .message = absl::StrCat("no answer from ", address, " within ",
                                               absl::FormatDuration(deadline)),
                       .fix = "See whether rank 0 has started, and listens there"},
                      absl::StatusCode::kDeadlineExceeded);
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
}

TcpStoreClient::~TcpStoreClient() { close(socket_); }

absl::Status TcpStoreClient::Put(const std::string& key, const std::string& value) {
  SHARDCALL_CHECK(key.size() <= kMaxBytes && value.size() <= kMaxBytes);
  const Request request{kPut, static_cast<uint32_t>(key.size()),
                        static_cast<uint32_t>(value.size()), 0};
  std::string message(reinterpret_cast<const char*>(&request), sizeof(request));
  absl::StrAppend(&message, key, value);
  return SendAll(socket_, message.data(), message.size()) ? absl::OkStatus()
                                                          : SystemError("the store is gone");
}

absl::StatusOr<std::string> TcpStoreClient::Get(const std::string& key, absl::Duration patience) {
  SHARDCALL_CHECK(key.size() <= kMaxBytes);
  const int64_t ms = std::clamp<int64_t>(absl::ToInt64Milliseconds(patience), 1, 1 << 30);
  const Request request{kGet, static_cast<uint32_t>(key.size()), 0, static_cast<uint32_t>(ms)};
  std::string message(reinterpret_cast<const char*>(&request), sizeof(request));
  message += key;
  // The server replies in time unless its process is stopped.
  const timeval limit{ms / 1000 + 1, 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  uint32_t size = 0;
  if (!SendAll(socket_, message.data(), message.size()) ||
      !ReceiveAll(socket_, &size, sizeof(size))) {
    return SystemError("the store is gone");
  }
  if (size == kAbsent) return absl::NotFoundError(key);
  std::string value(std::min(size, kMaxBytes), '\0');
  if (!ReceiveAll(socket_, value.data(), value.size())) return SystemError("the store is gone");
  return value;
}

}  // namespace internal
}  // namespace shardcall
