// SPDX-License-Identifier: Apache-2.0
// What the programs of run_mpi_faults.py share: which rank of the launcher's this
// process is, and the file in which it says what it got.
#ifndef SHARDCALL_TESTS_COLLECTIVES_FAULT_LOG_H_
#define SHARDCALL_TESTS_COLLECTIVES_FAULT_LOG_H_

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace shardcall::testing {

inline int RankOfLauncher() {
  const char* const text = std::getenv("OMPI_COMM_WORLD_RANK");
  return text == nullptr ? 0 : std::atoi(text);
}
inline int SizeOfLauncher() {
  const char* const text = std::getenv("OMPI_COMM_WORLD_SIZE");
  return text == nullptr ? 1 : std::atoi(text);
}

struct Log {
  std::string dir;
  int rank = 0;

  std::string Path(int r) const { return absl::StrCat(dir, "/rank.", r); }
  void Write(const absl::Status& status, absl::Duration after, const std::string& complaint) const {
    // Whole at once, for others look whether it is there.
    const std::string draft = Path(rank) + ".draft";
    std::ofstream(draft) << absl::FormatDuration(absl::Trunc(after, absl::Milliseconds(1))) << " "
                         << status.message() << "\n"
                         << (complaint.empty() ? "pass" : "FAIL: " + complaint) << "\n";
    std::rename(draft.c_str(), Path(rank).c_str());
  }
  // The launcher kills the job as soon as a rank ends; so all stay until the
  // others have written, or are not going to.
  void AwaitOthers(int size, absl::Duration patience) const {
    const absl::Time end = absl::Now() + patience;
    for (int r = 0; r < size; ++r) {
      while (r != 1 && access(Path(r).c_str(), F_OK) != 0 && absl::Now() < end) {
        absl::SleepFor(absl::Milliseconds(20));
      }
    }
  }
};

}  // namespace shardcall::testing

#endif  // SHARDCALL_TESTS_COLLECTIVES_FAULT_LOG_H_
