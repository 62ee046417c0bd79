// SPDX-License-Identifier: Apache-2.0
// Ranks that run different programs hang in their collectives. This check detects it at the start,
// where it can still be reported.
#ifndef SHARDCALL_COLLECTIVES_PROGRAM_CHECK_H_
#define SHARDCALL_COLLECTIVES_PROGRAM_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/collectives/communicator.h"

namespace shardcall::inline internal {

struct ProgramIdentity {
  uint64_t program_hash = 0;  // of the partitioned program
  int world_size = 0;         // devices that it is partitioned for
  absl::string_view version;  // of shardcall; the first 47 characters are compared
};

// Collective over all ranks. If any rank differs, every rank gets E308, which lists the ranks'
// values; E051 if the program is for another number of devices.
absl::Status CheckProgram(Communicator& communicator, const ProgramIdentity& identity);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_COLLECTIVES_PROGRAM_CHECK_H_
