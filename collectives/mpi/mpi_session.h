// SPDX-License-Identifier: Apache-2.0
// The MPI state of a process: its initialisation and end, the communicators, and the one failure
// that ends its use. A rank that fails sends all others a notice, which they look for while they
// wait and in every call. After a failure MPI is not called again, so a peer that is gone cannot
// block anyone. It is one class, because every wait, of whatever call, has to look for notices and
// to send them.
#ifndef SHARDCALL_COLLECTIVES_MPI_MPI_SESSION_H_
#define SHARDCALL_COLLECTIVES_MPI_MPI_SESSION_H_

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shardcall/collectives/flight_recorder.h"
#include "shardcall/collectives/mpi/mpi_header.h"
#include "shardcall/collectives/mpi/mpi_peers.h"
#include "shardcall/collectives/mpi/mpi_start.h"

namespace shardcall {
inline namespace internal {

class MpiSession {
 public:
  // The session of this process, opened by the first call; it is never freed,
  // since after a failure MPI may still hold its buffers.
  static absl::StatusOr<MpiSession*> Open(absl::Duration deadline);

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm comm() const { return comm_; }
  FlightRecorder& recorder() { return recorder_; }

  // See MpiOptions; holds from the next end of the process on.
  void set_end_deadline(absl::Duration deadline) { end_deadline_ = deadline; }

  // Held during every call, since MPI may permit only one thread at a time.
  std::mutex& call_mutex() { return call_mutex_; }

  // With call_mutex held: receives notices and headers; returns the failure if there is one.
  absl::Status Poll();
  // Polls only every 64th time: polling costs as much as a short message, and a rank that waits
  // polls anyway.
  absl::Status PollNowAndThen();
  // With call_mutex held: makes `status` the failure, unless there is one already, sends it to all
  // ranks, and returns the failure.
  absl::Status Fail(const absl::Status& status);
  // May be called from any thread.
  void Abort(const absl::Status& reason);

  // With call_mutex held: sends a rank the header of this rank's call.
  void Tell(int to, const MpiHeader& header);
  // The last header that a rank sent, and how many headers were received from all ranks.
  const MpiHeader& heard(int rank) const { return heard_[rank]; }
  int64_t heard_count() const { return heard_count_; }

  // Whether MPI itself yields the core when it polls.
  bool mpi_yields() const { return mpi_yields_; }
  // With call_mutex held, by the other rank: how many calls both have begun, over all
  // communicators, and the header of the last finished one.
  int64_t& meetings(int rank) { return meetings_[rank]; }
  MpiHeader& met(int rank) { return met_[rank]; }

  const MpiPeers& peers() const { return peers_; }
  // Whether all ranks run the same program, for reports of failures.
  const std::string& program_note() const { return program_note_; }
  void set_program_note(std::string note) { program_note_ = std::move(note); }

  // Exists while a rank waits for others. A SIGTERM, unless the program handles it, then ends the
  // wait, so that the rank can report which ranks it waited for. At any other time, and on the
  // second signal, it ends the process.
  class Waiting {
   public:
    Waiting();
    ~Waiting();
  };
  static bool terminated();

  // Memory that outlives every message. Its contents are valid until the next call of the same
  // method.
  char* SendArea(int64_t bytes) { return Area(send_area_, bytes); }
  char* ReceiveArea(int64_t bytes) { return Area(receive_area_, bytes); }
  char* Scratch(int64_t bytes) { return Area(scratch_, bytes); }

 private:
  enum class ControlKind : int32_t { kNotice, kHeader };
  struct Control {
    ControlKind kind;
    int32_t from;
    int32_t code;  // notice: of the status
    MpiHeader header;
    char text[2048];  // notice; last, so that headers are short messages
  };
  struct Telling {
    Control message;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  MpiSession() = default;
  absl::Status Start(absl::Duration deadline);
  absl::Status Duplicate(MPI_Comm* copy, absl::Duration deadline);
  absl::Status ExchangeIdentities(absl::Duration deadline);
  absl::Status PostControl();
  absl::Status failure() const;
  void SetFailure(const absl::Status& status);
  void SendNotices();
  absl::Status ReceiveControl();
  void Finish();
  [[noreturn]] void EndAlone();
  static char* Area(std::vector<char>& area, int64_t bytes);

  bool initialised_here_ = false;
  absl::Duration end_deadline_;
  bool mpi_yields_ = false;
  int rank_ = 0;
  int size_ = 1;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Comm control_ = MPI_COMM_NULL;
  MPI_Request notice_request_ = MPI_REQUEST_NULL;
  Control incoming_{};
  Control outgoing_{};
  std::vector<MPI_Request> outgoing_requests_;
  std::list<Telling> tellings_;
  std::vector<MpiHeader> heard_, met_;  // by rank
  std::vector<int64_t> meetings_;
  int64_t heard_count_ = 0;
  uint32_t calls_ = 0;
  MpiPeers peers_;
  MpiSegment segment_;
  std::string program_note_ = "programs were not compared";
  FlightRecorder recorder_;
  std::vector<char> send_area_, receive_area_, scratch_;

  std::mutex call_mutex_;
  mutable std::mutex failure_mutex_;
  absl::Status failure_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> must_tell_{false};
  std::atomic<bool> own_reason_{false};  // failure_ is a reason of Abort on this rank
};

// OK for MPI_SUCCESS, else E307 with MPI's error text.
absl::Status MpiStatus(int code, absl::string_view what);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MPI_SESSION_H_
