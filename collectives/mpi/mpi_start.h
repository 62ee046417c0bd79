// SPDX-License-Identifier: Apache-2.0
// Initialises MPI in a process, with a deadline, and handles its shared memory file.
#ifndef SHARDCALL_COLLECTIVES_MPI_MPI_START_H_
#define SHARDCALL_COLLECTIVES_MPI_MPI_START_H_

#include <mpi.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace shardcall {
inline namespace internal {

// Initialises MPI unless the program has; *here tells whether it did. E301 if the other ranks do
// not start in time: the thread that waits for them is then abandoned, and MPI must not be used.
// E307 if MPI fails or is finalised.
absl::Status StartMpi(absl::Duration deadline, bool* here);

// Waits for a request during the start.
absl::Status AwaitAtStart(MPI_Request* request, absl::Duration deadline, absl::string_view what);

// Whether Open MPI itself yields the core when nothing has arrived.
bool MpiYields();

// Open MPI keeps a file in /dev/shm per rank, which stays forever if the launcher is killed. Once
// all ranks of the host have mapped it, it can be unlinked.
class MpiSegment {
 public:
  // Whether this process has mapped the files of all `local` ranks of its host, including its own,
  // that of `rank`.
  bool Find(int rank, int local);
  void DropName();
  // To be called before MPI is finalised, which complains if the name is missing.
  void RestoreName() const;

 private:
  std::string path_;
  bool dropped_ = false;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MPI_START_H_
