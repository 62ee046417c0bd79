// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/mpi/mpi_session.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/collectives/call.h"
#include "shardcall/collectives/mpi/mpi.h"
#include "shardcall/collectives/wait_word.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/whole_file.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kControlTag = 1;
// How long a rank that has failed sends its notices, and how long it stays before it exits: a
// launcher kills the job when the first rank exits with an error.
constexpr auto kTellTime = std::chrono::milliseconds(20);
constexpr auto kStayTime = std::chrono::milliseconds(500);

std::atomic<int> waiting{0};  // Waiting objects, plus 1 after a failure
std::atomic<bool> was_terminated{false};
std::atomic<int> rank_of_process{-1};  // if the job has a launcher, once MPI has started
constexpr size_t kTextBytes = 512;
static_assert(std::atomic<int>::is_always_lock_free);

// Runs in a signal handler. The name stays valid while its instruction runs.
void SayWhatThisRankDoes() {
  const std::string* const name = ComputingOverMpi().load(std::memory_order_relaxed);
  char text[kTextBytes];
  const int length = std::snprintf(
      text, sizeof(text),
      "E304 the launcher ends this job (SIGTERM) while rank %d %s%.200s. Fix: See why another "
      "rank ended: its own error says so\n",
      rank_of_process.load(), name == nullptr ? "is in no collective" : "computes %",
      name == nullptr ? "" : name->c_str());
  // If the write fails, nothing else can be done.
  if (length > 0) (void)!write(STDERR_FILENO, text, length);
}

void OnTerminate(int signal_number) {
  signal(signal_number, SIG_DFL);
  if (waiting.load(std::memory_order_relaxed) > 0) {
    was_terminated.store(true, std::memory_order_relaxed);
  } else {
    if (rank_of_process.load() >= 0) {
      SayWhatThisRankDoes();
      // Open MPI waits a second between SIGTERM and SIGKILL, but the end of a rank cuts its wait
      // short: the first rank to end would silence those that have not run since.
      timespec rest = {.tv_sec = 0, .tv_nsec = kStayTime / std::chrono::nanoseconds(1)};
      while (nanosleep(&rest, &rest) != 0 && errno == EINTR) continue;
    }
    RemovePartFiles();
    raise(signal_number);
  }
}

}  // namespace

MpiSession::Waiting::Waiting() { waiting.fetch_add(1, std::memory_order_relaxed); }
MpiSession::Waiting::~Waiting() { waiting.fetch_sub(1, std::memory_order_relaxed); }
bool MpiSession::terminated() { return was_terminated.load(std::memory_order_relaxed); }

absl::Status MpiStatus(int code, absl::string_view what) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return ToStatus(
      {.code = "E307",
       .message = absl::StrCat("MPI failed in ", what, ": ", absl::string_view(text, length)),
       .fix = "See the manual of Open MPI for its error, and the state of the ranks"},
      absl::StatusCode::kInternal);
}

absl::StatusOr<MpiSession*> MpiSession::Open(absl::Duration deadline) {
  static std::mutex mutex;
  static MpiSession* session = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  static absl::Status start;  // a failure is final
  SHARDCALL_RETURN_IF_ERROR(start);
  if (session == nullptr) {
    auto* opened = new MpiSession;
    start = opened->Start(deadline);
    SHARDCALL_RETURN_IF_ERROR(start);
    session = opened;
    std::atexit([] { session->Finish(); });
  }
  std::lock_guard<std::mutex> call(session->call_mutex_);
  SHARDCALL_RETURN_IF_ERROR(session->Poll());
  return session;
}

absl::Status MpiSession::Start(absl::Duration deadline) {
  // A rank whose launcher is killed would run forever.
  if (LaunchedByMpi()) prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (EndsTheProcess(SIGTERM)) signal(SIGTERM, OnTerminate);
  const Waiting waiting;
  SHARDCALL_RETURN_IF_ERROR(StartMpi(deadline, &initialised_here_));
  SHARDCALL_RETURN_IF_ERROR(Duplicate(&comm_, deadline));
  SHARDCALL_RETURN_IF_ERROR(Duplicate(&control_, deadline));
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
  heard_.assign(size_, MpiHeader{});
  met_.assign(size_, MpiHeader{});
  meetings_.assign(size_, 0);
  SHARDCALL_RETURN_IF_ERROR(ExchangeIdentities(deadline));
  mpi_yields_ = MpiYields();
  if (LaunchedByMpi()) rank_of_process.store(rank_);
  return PostControl();
}

absl::Status MpiSession::PostControl() {
  return MpiStatus(MPI_Irecv(&incoming_, sizeof(incoming_), MPI_BYTE, MPI_ANY_SOURCE, kControlTag,
                             control_, &notice_request_),
                   "MPI_Irecv");
}

absl::Status MpiSession::Duplicate(MPI_Comm* copy, absl::Duration deadline) {
  MPI_Request request;
  SHARDCALL_RETURN_IF_ERROR(
      MpiStatus(MPI_Comm_idup(MPI_COMM_WORLD, copy, &request), "MPI_Comm_idup"));
  SHARDCALL_RETURN_IF_ERROR(AwaitAtStart(&request, deadline, "MPI_Comm_idup"));
  return MpiStatus(MPI_Comm_set_errhandler(*copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

absl::Status MpiSession::ExchangeIdentities(absl::Duration deadline) {
  static_assert(std::is_trivially_copyable_v<MpiPeers::Identity>);
  constexpr int kBytes = sizeof(MpiPeers::Identity);
  const MpiPeers::Identity mine = MpiPeers::Mine(recorder_.log());
  std::vector<MpiPeers::Identity> all(size_);
  MPI_Request request;
  SHARDCALL_RETURN_IF_ERROR(MpiStatus(
      MPI_Iallgather(&mine, kBytes, MPI_BYTE, all.data(), kBytes, MPI_BYTE, control_, &request),
      "MPI_Iallgather"));
  SHARDCALL_RETURN_IF_ERROR(AwaitAtStart(&request, deadline, "MPI_Iallgather"));
  peers_.Set(all, rank_);
  if (!initialised_here_) return absl::OkStatus();
  const int local = static_cast<int>(std::count_if(
      all.begin(), all.end(), [&](const auto& peer) { return peer.host == mine.host; }));
  int mapped = segment_.Find(rank_, local) ? 1 : 0;
  int all_mapped = 0;
  SHARDCALL_RETURN_IF_ERROR(
      MpiStatus(MPI_Iallreduce(&mapped, &all_mapped, 1, MPI_INT, MPI_MIN, control_, &request),
                "MPI_Iallreduce"));
  SHARDCALL_RETURN_IF_ERROR(AwaitAtStart(&request, deadline, "MPI_Iallreduce"));
  if (all_mapped) segment_.DropName();
  return absl::OkStatus();
}

absl::Status MpiSession::failure() const {
  std::lock_guard<std::mutex> lock(failure_mutex_);
  return failure_;
}

void MpiSession::SetFailure(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(failure_mutex_);
  if (!failure_.ok()) return;
  failure_ = status;
  waiting.fetch_add(1);  // a SIGTERM must not come before the report
  failed_.store(true, std::memory_order_release);
}

absl::Status MpiSession::Poll() {
  if (must_tell_.exchange(false)) SendNotices();
  if (!failed_.load(std::memory_order_acquire)) {
    for (int arrived = 1; arrived && !failed_.load(std::memory_order_relaxed);) {
      SHARDCALL_RETURN_IF_ERROR(
          MpiStatus(MPI_Test(&notice_request_, &arrived, MPI_STATUS_IGNORE), "MPI_Test"));
      if (arrived) SHARDCALL_RETURN_IF_ERROR(ReceiveControl());
    }
  }
  return failed_.load(std::memory_order_acquire) ? failure() : absl::OkStatus();
}

absl::Status MpiSession::PollNowAndThen() {
  const bool due = ++calls_ % 64 == 0 || must_tell_.load() || failed_.load();
  return due ? Poll() : absl::OkStatus();
}

absl::Status MpiSession::Fail(const absl::Status& status) {
  if (failed_.load(std::memory_order_acquire)) return Poll();
  SetFailure(status);
  SendNotices();
  return failure();
}

void MpiSession::Abort(const absl::Status& reason) {
  if (failed_.load(std::memory_order_acquire)) return;
  SetFailure(AbortedStatus(reason));
  own_reason_.store(true);
  must_tell_.store(true);
  // If another thread is in a call, it sends the notices, else this one does.
  std::unique_lock<std::mutex> lock(call_mutex_, std::try_to_lock);
  if (lock.owns_lock() && must_tell_.exchange(false)) SendNotices();
}

void MpiSession::SendNotices() {
  const absl::Status status = failure();
  // What went wrong on this rank alone, others would take for theirs.
  const std::string text =
      absl::StrCat(status.message(), own_reason_.load() ? absl::StrCat("\n  on rank ", rank_) : "");
  outgoing_.kind = ControlKind::kNotice;
  outgoing_.from = rank_;
  outgoing_.code = static_cast<int32_t>(status.code());
  const size_t length = std::min(text.size(), sizeof(outgoing_.text) - 1);
  std::memcpy(outgoing_.text, text.data(), length);
  outgoing_.text[length] = '\0';
  for (int to = 0; to < size_; ++to) {
    if (to == rank_) continue;
    MPI_Request request;
    if (MPI_Isend(&outgoing_, sizeof(outgoing_), MPI_BYTE, to, kControlTag, control_, &request) ==
        MPI_SUCCESS) {
      outgoing_requests_.push_back(request);
    }
  }
  const auto end = std::chrono::steady_clock::now() + kTellTime;
  for (int done = 0; !done && std::chrono::steady_clock::now() < end;) {
    if (MPI_Testall(static_cast<int>(outgoing_requests_.size()), outgoing_requests_.data(), &done,
                    MPI_STATUSES_IGNORE) != MPI_SUCCESS) {
      return;
    }
    if (!done) std::this_thread::yield();
  }
}

absl::Status MpiSession::ReceiveControl() {
  if (incoming_.kind == ControlKind::kHeader) {
    if (incoming_.from >= 0 && incoming_.from < size_) {
      heard_[incoming_.from] = incoming_.header;
      ++heard_count_;
    }
    return PostControl();
  }
  incoming_.text[sizeof(incoming_.text) - 1] = '\0';
  SetFailure(absl::Status(static_cast<absl::StatusCode>(incoming_.code), incoming_.text));
  return absl::OkStatus();
}

void MpiSession::Tell(int to, const MpiHeader& header) {
  for (auto it = tellings_.begin(); it != tellings_.end();) {
    int done = 0;
    MPI_Test(&it->request, &done, MPI_STATUS_IGNORE);
    it = done ? tellings_.erase(it) : std::next(it);
  }
  Telling& telling = tellings_.emplace_back();
  telling.message.kind = ControlKind::kHeader;
  telling.message.from = rank_;
  telling.message.code = 0;
  telling.message.header = header;
  // If this message cannot be sent, only the report has less detail.
  MPI_Isend(&telling.message, offsetof(Control, text), MPI_BYTE, to, kControlTag, control_,
            &telling.request);
}

void MpiSession::Finish() {
  std::lock_guard<std::mutex> lock(call_mutex_);
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (!initialised_here_ || finalised) return;
  // MPI_Finalize would wait for all ranks forever. This waits first, and stops when a rank reports
  // a failure.
  const MonotonicTime end = DeadlineAfter(
      end_deadline_ > absl::ZeroDuration() ? end_deadline_ : absl::InfiniteDuration());
  MPI_Request everybody;
  absl::Status status = Poll();
  if (status.ok()) status = MpiStatus(MPI_Ibarrier(control_, &everybody), "MPI_Ibarrier");
  for (int done = 0, idle = 0; status.ok() && !done; ++idle) {
    status = MpiStatus(MPI_Test(&everybody, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done) break;
    if (status.ok()) status = Poll();
    if (status.ok() && std::chrono::steady_clock::now() >= end) EndAlone();
    if (idle < 1000) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  if (!status.ok()) {
    std::this_thread::sleep_for(kStayTime);
    return;
  }
  MPI_Cancel(&notice_request_);
  MPI_Wait(&notice_request_, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm_);
  MPI_Comm_free(&control_);
  segment_.RestoreName();
  MPI_Finalize();
}

void MpiSession::EndAlone() {
  std::vector<int> stopped;
  for (int r = 0; r < size_; ++r) {
    if (r != rank_ && peers_.StateOf(r) == MpiPeers::State::kStopped) stopped.push_back(r);
  }
  const absl::Status status = ToStatus(
      {.code = "E301",
       .message = absl::StrCat("this rank has done its work and waited ",
                               absl::FormatDuration(end_deadline_), " for the others to end"),
       .found = stopped.empty()
                    ? std::string("ranks that did not end")
                    : absl::StrCat("stopped processes: rank ", absl::StrJoin(stopped, ", ")),
       .fix = "See what the other ranks do, or allow more time with --deadline"},
      absl::StatusCode::kDeadlineExceeded);
  std::fprintf(stderr, "rank %d: %s\n", rank_, std::string(status.message()).c_str());
  std::fflush(nullptr);
  std::_Exit(1);
}

char* MpiSession::Area(std::vector<char>& area, int64_t bytes) {
  if (static_cast<int64_t>(area.size()) < bytes) area.resize(bytes);
  return area.data();
}

}  // namespace internal
}  // namespace shardcall
