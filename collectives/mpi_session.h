// SPDX-License-Identifier: Apache-2.0
// What a process has of MPI: its initialisation and end, the communicators, and
// the one failure that ends its use. A rank that fails tells all others by a
// notice, which they look for while they wait and whenever they call; after a
// failure MPI is not called again, so a peer that is gone can block nobody.
#ifndef SHARDCALL_COLLECTIVES_MPI_SESSION_H_
#define SHARDCALL_COLLECTIVES_MPI_SESSION_H_

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "collectives/flight_recorder.h"

namespace shardcall {

class MpiSession {
 public:
  // The session of this process, opened by the first call; it is never freed,
  // since after a failure MPI may still hold its buffers.
  static absl::StatusOr<MpiSession*> Open(absl::Duration deadline);

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm comm() const { return comm_; }
  FlightRecorder& recorder() { return recorder_; }

  // Held during every call, as MPI may allow one thread at a time.
  std::mutex& call_mutex() { return call_mutex_; }

  // With call_mutex held: looks for notices; the failure if there is one.
  absl::Status Poll();
  // With call_mutex held: makes `status` the failure, unless there is one, tells
  // all ranks, and returns the failure.
  absl::Status Fail(const absl::Status& status);
  // From any thread.
  void Abort(const absl::Status& reason);

  // Memory that outlives every message. Contents last until the next call of
  // the same method.
  char* SendArea(int64_t bytes) { return Area(send_area_, bytes); }
  char* ReceiveArea(int64_t bytes) { return Area(receive_area_, bytes); }
  char* Scratch(int64_t bytes) { return Area(scratch_, bytes); }

 private:
  static constexpr int kNoticeBytes = 2048;
  struct Notice {
    int32_t code;
    char text[kNoticeBytes - sizeof(int32_t)];
  };

  MpiSession() = default;
  absl::Status Start(absl::Duration deadline);
  absl::Status Duplicate(MPI_Comm* copy, absl::Duration deadline);
  absl::Status failure() const;
  void SetFailure(const absl::Status& status);
  void SendNotices();
  void ReceiveNotice();
  void Finish();
  static char* Area(std::vector<char>& area, int64_t bytes);

  bool initialised_here_ = false;
  int rank_ = 0;
  int size_ = 1;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Comm control_ = MPI_COMM_NULL;
  MPI_Request notice_request_ = MPI_REQUEST_NULL;
  Notice incoming_{};
  Notice outgoing_{};
  std::vector<MPI_Request> outgoing_requests_;
  FlightRecorder recorder_;
  std::vector<char> send_area_, receive_area_, scratch_;

  std::mutex call_mutex_;
  mutable std::mutex failure_mutex_;
  absl::Status failure_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> must_tell_{false};
};

// OK for MPI_SUCCESS, else E307 with MPI's text.
absl::Status MpiStatus(int code, absl::string_view what);

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_SESSION_H_
