// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/mpi/mpi_messages.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "shardcall/collectives/wait_word.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// A rank that waits yields the core immediately, and after a while sleeps between polls. It sleeps
// earlier where ranks share cores, since polling then delays the ranks that it waits for.
constexpr absl::Duration kSleepAfter = absl::Milliseconds(5);
constexpr absl::Duration kSleepAfterWhenShared = absl::Milliseconds(1);
constexpr int kLooksPerWatch = 64;
constexpr auto kSleep = std::chrono::microseconds(50);

}  // namespace

void MpiMessages::Send(int to, int tag, const void* data, int64_t bytes, bool synchronous) {
  Post(synchronous ? Kind::kSynchronousSend : Kind::kSend, to, tag, const_cast<void*>(data), bytes);
}

void MpiMessages::Receive(int from, int tag, void* data, int64_t bytes) {
  Post(Kind::kReceive, from, tag, data, bytes);
}

void MpiMessages::Post(Kind kind, int peer, int tag, void* data, int64_t bytes) {
  char* at = static_cast<char*>(data);
  do {
    const int piece = static_cast<int>(std::min(bytes, kMaxMessageBytes));
    const MPI_Comm comm = session_.comm();
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;
    switch (kind) {
      case Kind::kSend: code = MPI_Isend(at, piece, MPI_BYTE, peer, tag, comm, &request); break;
      case Kind::kSynchronousSend:
        code = MPI_Issend(at, piece, MPI_BYTE, peer, tag, comm, &request);
        break;
      case Kind::kReceive: code = MPI_Irecv(at, piece, MPI_BYTE, peer, tag, comm, &request); break;
    }
    if (code != MPI_SUCCESS) {
      post_error_ = MpiStatus(code, kind == Kind::kReceive ? "MPI_Irecv" : "MPI_Isend");
      return;
    }
    requests_.push_back(request);
    records_.push_back({peer, kind == Kind::kReceive, piece});
    at += piece;
    bytes -= piece;
  } while (bytes > 0);
}

absl::Status MpiMessages::Await(const Watch& watch) {
  if (!post_error_.ok()) return post_error_;
  const int total = static_cast<int>(requests_.size());
  absl::InlinedVector<int, 16> indices(total);
  absl::InlinedVector<MPI_Status, 16> statuses(total);
  MonotonicTime progress = std::chrono::steady_clock::now();
  // MPI yields if it has detected more ranks than cores.
  const absl::Duration sleep_after = session_.mpi_yields() ? kSleepAfterWhenShared : kSleepAfter;
  bool sleepy = false;
  int left = total;
  for (int idle = 0; left > 0;) {
    int done = 0;
    const int code = MPI_Testsome(total, requests_.data(), &done, indices.data(), statuses.data());
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return MpiStatus(code, "MPI_Testsome");
    for (int i = 0; i < done; ++i) {
      if (code == MPI_ERR_IN_STATUS && statuses[i].MPI_ERROR != MPI_SUCCESS) {
        return MpiStatus(statuses[i].MPI_ERROR, "a message");
      }
      const Record& record = records_[indices[i]];
      if (!record.receives) continue;
      int bytes = 0;
      MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
      if (bytes != record.bytes) {
        return ToStatus({.code = "E307",
                         .message = absl::StrCat("a message of rank ", record.peer,
                                                 " has another size than agreed"),
                         .expected = absl::StrCat(record.bytes, " bytes"),
                         .found = absl::StrCat(bytes),
                         .fix = "Run one program with one library on all ranks"},
                        absl::StatusCode::kInternal);
      }
    }
    if (done > 0) {
      left -= done;
      idle = 0;
      continue;
    }
    if (idle == 0) {
      progress = std::chrono::steady_clock::now();
      sleepy = false;
    }
    if (++idle % kLooksPerWatch == 0) {
      const absl::Duration waited = absl::FromChrono(std::chrono::steady_clock::now() - progress);
      const absl::Status status = watch(waited);
      if (!status.ok()) {
        CancelReceives();
        return status;
      }
      sleepy = waited >= sleep_after;
    }
    if (sleepy) {
      std::this_thread::sleep_for(kSleep);
    } else if (!session_.mpi_yields()) {
      std::this_thread::yield();
    }
  }
  return absl::OkStatus();
}

std::vector<int> MpiMessages::pending_peers() const {
  std::vector<int> peers;
  for (bool receives : {true, false}) {
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] != MPI_REQUEST_NULL && records_[i].receives == receives) {
        peers.push_back(records_[i].peer);
      }
    }
    if (!peers.empty()) break;
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

// The caller's buffers will be freed, so cancel receives that have not matched yet. Requests keep
// their handles, for pending_peers().
void MpiMessages::CancelReceives() {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL || !records_[i].receives) continue;
    MPI_Cancel(&requests_[i]);
  }
}

}  // namespace internal
}  // namespace shardcall
