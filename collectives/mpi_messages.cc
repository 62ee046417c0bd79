// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi_messages.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "collectives/wait_word.h"

namespace shardcall {
namespace {

constexpr absl::Duration kShortPatience = absl::Milliseconds(100);
// A rank that waits lets others have the core at once, and after a while sleeps
// between looks.
constexpr int kLooksBeforeSleep = 2000;
constexpr int kLooksPerPoll = 16;
constexpr auto kSleep = std::chrono::microseconds(50);

}  // namespace

void MpiMessages::Send(int to, int tag, const void* data, int64_t bytes) {
  Post(to, tag, const_cast<void*>(data), bytes, false, 0);
}

void MpiMessages::Receive(int from, int tag, void* data, int64_t bytes, int id) {
  Post(from, tag, data, bytes, true, id);
}

void MpiMessages::Post(int peer, int tag, void* data, int64_t bytes, bool receives, int id) {
  char* at = static_cast<char*>(data);
  do {
    const int piece = static_cast<int>(std::min(bytes, kMaxMessageBytes));
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = receives
                         ? MPI_Irecv(at, piece, MPI_BYTE, peer, tag, session_.comm(), &request)
                         : MPI_Isend(at, piece, MPI_BYTE, peer, tag, session_.comm(), &request);
    if (code != MPI_SUCCESS) {
      post_error_ = MpiStatus(code, receives ? "MPI_Irecv" : "MPI_Isend");
      return;
    }
    requests_.push_back(request);
    records_.push_back({peer, receives, id});
    at += piece;
    bytes -= piece;
  } while (bytes > 0);
}

absl::Status MpiMessages::Await(absl::Duration patience, const Inspect& inspect) {
  if (!post_error_.ok()) return post_error_;
  const int total = static_cast<int>(requests_.size());
  std::vector<int> indices(total);
  std::vector<MPI_Status> statuses(total);
  MonotonicTime deadline = DeadlineAfter(patience);
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
      if (!record.receives || inspect == nullptr) continue;
      int bytes = 0;
      MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
      if (!inspect(record.id, bytes)) patience = std::min(patience, kShortPatience);
    }
    if (done > 0) {
      left -= done;
      idle = 0;
      deadline = DeadlineAfter(patience);
      continue;
    }
    if (++idle % kLooksPerPoll == 0) {
      const absl::Status failure = session_.Poll();
      if (!failure.ok()) {
        CancelReceives();
        return failure;
      }
      if (std::chrono::steady_clock::now() >= deadline) {
        CancelReceives();
        return absl::DeadlineExceededError("");
      }
    }
    if (idle < kLooksBeforeSleep) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kSleep);
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

// The caller's buffers die soon: what has not matched yet never shall. Requests
// keep their handles, for pending_peers().
void MpiMessages::CancelReceives() {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL || !records_[i].receives) continue;
    MPI_Cancel(&requests_[i]);
  }
}

}  // namespace shardcall
