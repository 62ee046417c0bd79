// SPDX-License-Identifier: Apache-2.0
// The start of MPI in a process, bounded by a deadline, and its shared memory.
#ifndef SHARDCALL_COLLECTIVES_MPI_MPI_START_H_
#define SHARDCALL_COLLECTIVES_MPI_MPI_START_H_

#include <mpi.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace shardcall {

// Initialises MPI unless the program has; *here says whether it did. E301 if
// the other ranks do not start in time: the thread that waits for them is then
// left behind, and MPI must not be used. E307 if MPI fails or is finalised.
absl::Status StartMpi(absl::Duration deadline, bool* here);

// Awaits a request of the start.
absl::Status AwaitAtStart(MPI_Request* request, absl::Duration deadline, absl::string_view what);

// Whether Open MPI itself yields the core when it finds nothing to do.
bool MpiYields();

// Open MPI keeps a file in /dev/shm per rank, which stays for ever when the
// launcher is killed. Once all ranks of the host have it mapped the name can go.
class MpiSegment {
 public:
  // Whether this process has the files of all `local` ranks of its host mapped,
  // its own, that of `rank`, among them.
  bool Find(int rank, int local);
  void DropName();
  // Before MPI is finalised, which complains if the name is gone.
  void RestoreName() const;

 private:
  std::string path_;
  bool dropped_ = false;
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_MPI_MPI_START_H_
