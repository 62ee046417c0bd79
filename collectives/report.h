// SPDX-License-Identifier: Apache-2.0
// The statuses of a collective that fails, the same for every backend: E301 for a deadline that
// has passed and E305 for members whose calls differ.
#ifndef SHARDCALL_COLLECTIVES_REPORT_H_
#define SHARDCALL_COLLECTIVES_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shardcall/collectives/call.h"

namespace shardcall {
inline namespace internal {

struct LateReport {
  CallSignature signature;
  int64_t number = 0;  // of the call, at the rank that reports
  absl::string_view name;
  std::vector<int> waiting;  // ranks
  std::vector<int> absent;   // ranks
  absl::Duration waited;
  std::vector<std::string> last;  // by absent rank: its last calls; may be empty
  std::string programs;           // whether all ranks run the same program; may be empty
  std::string history;            // flight records, one line each; may be empty
};
// "E301 all-reduce(sum, f32[8]) #14 (%ar.2): ranks 0,2-7 have waited 20 s;
//  rank 1 last completed ... and is in no collective".
absl::Status LateStatus(const LateReport& report);

struct MemberText {
  int rank;
  std::string text;  // its call
};
// "E305 members of one collective call different things: rank 0 calls ...;
//  ranks 1-3 call ...".
absl::Status MismatchStatus(const std::vector<MemberText>& members,
                            const std::string& history = "");

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_REPORT_H_
