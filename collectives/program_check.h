// SPDX-License-Identifier: Apache-2.0
// Ranks that run different programs hang in their collectives; with different inputs or handlers
// they compute a mixture. This check detects both at the start, where they can still be reported.
#ifndef SHARDCALL_COLLECTIVES_PROGRAM_CHECK_H_
#define SHARDCALL_COLLECTIVES_PROGRAM_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/collectives/communicator.h"

namespace shardcall {
inline namespace internal {

// What must be equal on all ranks that have it, beside the program.
struct SharedValue {
  std::string what;   // "input 0, f32[4,8]"; the same on all ranks, and unique
  std::string value;  // as messages show it, such as a hash
  std::string fix;    // what makes it equal
};

struct ProgramIdentity {
  uint64_t program_hash = 0;  // of the partitioned program
  int world_size = 0;         // devices that it is partitioned for
  absl::string_view version;  // of shardcall; the first 47 characters are compared
  std::vector<SharedValue> values = {};
};

// Collective over all ranks. If any rank differs, every rank gets E308, which lists the ranks'
// values; E051 if the program is for another number of devices. Ranks that agree exchange one
// short message each, however many values there are.
absl::Status CheckProgram(Communicator& communicator, const ProgramIdentity& identity);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_PROGRAM_CHECK_H_
