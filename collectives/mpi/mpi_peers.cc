// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/mpi/mpi_peers.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/stable_hash.h"

namespace shardcall {
inline namespace internal {
namespace {

uint64_t HashText(const std::string& text) { return StableHash().Add(text).value(); }

}  // namespace

MpiPeers::Identity MpiPeers::Mine(const FlightLog* log) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char space[64] = "";
  const ssize_t length = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
  Identity identity;
  if (!boot.empty() && length > 0) identity.host = HashText(absl::StrCat(boot, " ", space));
  identity.process = getpid();
  identity.log = reinterpret_cast<uint64_t>(log);
  return identity;
}

void MpiPeers::Set(absl::Span<const Identity> by_rank, int me) {
  peers_.assign(by_rank.begin(), by_rank.end());
  me_ = me;
}

bool MpiPeers::Visible(int rank) const {
  return rank < static_cast<int>(peers_.size()) && peers_[me_].host != 0 &&
         peers_[rank].host == peers_[me_].host;
}

MpiPeers::State MpiPeers::StateOf(int rank) const {
  if (!Visible(rank)) return State::kUnknown;
  std::ifstream file(absl::StrCat("/proc/", peers_[rank].process, "/stat"));
  std::string line;
  if (!std::getline(file, line)) return State::kEnded;
  // "pid (name) S ...", where the name may contain any characters.
  const size_t end = line.rfind(')');
  if (end == std::string::npos || end + 2 >= line.size()) return State::kUnknown;
  switch (line[end + 2]) {
    case 'Z':
    case 'X': return State::kEnded;
    case 'T':
    case 't': return State::kStopped;
    default: return State::kRuns;
  }
}

bool MpiPeers::ReadLog(int rank, FlightLog* log) const {
  if (!Visible(rank)) return false;
  iovec local{log, sizeof(*log)};
  iovec remote{reinterpret_cast<void*>(peers_[rank].log), sizeof(*log)};
  const ssize_t got =
      process_vm_readv(static_cast<pid_t>(peers_[rank].process), &local, 1, &remote, 1, 0);
  return got == static_cast<ssize_t>(sizeof(*log)) && log->IsLog();
}

}  // namespace internal
}  // namespace shardcall
