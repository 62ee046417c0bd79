// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/mpi/mpi_start.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/collectives/mpi/mpi_session.h"
#include "shardcall/collectives/wait_word.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status LateStart(absl::Duration deadline) {
  return ToStatus({.code = "E301",
                   .message = absl::StrCat("not all ranks have connected over MPI within ",
                                           absl::FormatDuration(deadline)),
                   .fix = "See which rank did not start, and why"},
                  absl::StatusCode::kDeadlineExceeded);
}

absl::Status EndedByLauncher() {
  return ToStatus({.code = "E304",
                   .message = "the launcher ends this job (SIGTERM) while its ranks connect",
                   .fix = "See which rank ended, and what it printed"},
                  absl::StatusCode::kUnavailable);
}

// The result of the thread that initialises MPI; it may outlive the caller.
struct Initialisation {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int code = MPI_SUCCESS;
};

}  // namespace

absl::Status StartMpi(absl::Duration deadline, bool* here) {
  *here = false;
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalised) {
    return ToStatus({.code = "E307",
                     .message = "MPI is finalised already",
                     .fix = "Make communicators before MPI_Finalize, and once in a process"},
                    absl::StatusCode::kFailedPrecondition);
  }
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (!initialised) {
    // MPI_Init would wait for all ranks forever.
    auto shared = std::make_shared<Initialisation>();
    std::thread([shared] {
      int level = 0;
      const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
      std::lock_guard<std::mutex> lock(shared->mutex);
      shared->code = code;
      shared->done = true;
      shared->changed.notify_all();
    }).detach();
    std::unique_lock<std::mutex> lock(shared->mutex);
    const MonotonicTime end = DeadlineAfter(deadline);
    while (!shared->done) {
      // A signal does not wake this wait, so it polls.
      shared->changed.wait_for(lock, std::chrono::milliseconds(20));
      if (shared->done) break;
      if (MpiSession::terminated()) return EndedByLauncher();
      if (std::chrono::steady_clock::now() >= end) return LateStart(deadline);
    }
    SHARDCALL_RETURN_IF_ERROR(MpiStatus(shared->code, "MPI_Init"));
    *here = true;
  }
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level >= MPI_THREAD_SERIALIZED) return absl::OkStatus();
  return ToStatus({.code = "E307",
                   .message = "MPI does not let several threads call it",
                   .expected = "MPI_THREAD_SERIALIZED",
                   .found = absl::StrCat("level ", level),
                   .fix = "Call MPI_Init_thread with MPI_THREAD_SERIALIZED, or leave it out"},
                  absl::StatusCode::kUnavailable);
}

absl::Status AwaitAtStart(MPI_Request* request, absl::Duration deadline, absl::string_view what) {
  const MonotonicTime end = DeadlineAfter(deadline);
  for (int done = 0; !done;) {
    SHARDCALL_RETURN_IF_ERROR(MpiStatus(MPI_Test(request, &done, MPI_STATUS_IGNORE), what));
    if (done) break;
    if (MpiSession::terminated()) return EndedByLauncher();
    if (std::chrono::steady_clock::now() >= end) return LateStart(deadline);
    std::this_thread::yield();
  }
  return absl::OkStatus();
}

bool MpiYields() {
  int level = 0;
  if (MPI_T_init_thread(MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) return false;
  bool yields = false;
  int index = 0;
  int count = 0;
  MPI_T_cvar_handle handle;
  if (MPI_T_cvar_get_index("mpi_yield_when_idle", &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    int value[16] = {};
    yields = count <= 16 && MPI_T_cvar_read(handle, value) == MPI_SUCCESS && value[0] > 0;
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return yields;
}

bool MpiSegment::Find(int rank, int local) {
  std::set<std::string> mapped;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find("/dev/shm/vader_segment.");
    if (at != std::string::npos) mapped.insert(line.substr(at));
  }
  const std::string suffix = absl::StrCat(".", rank);
  for (const std::string& path : mapped) {
    if (absl::EndsWith(path, suffix)) path_ = path;
  }
  return !path_.empty() && static_cast<int>(mapped.size()) == local;
}

void MpiSegment::DropName() { dropped_ = unlink(path_.c_str()) == 0; }

void MpiSegment::RestoreName() const {
  if (!dropped_) return;
  const int file = open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
}

}  // namespace internal
}  // namespace shardcall
