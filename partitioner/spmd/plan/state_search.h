// SPDX-License-Identifier: Apache-2.0
// For which programs plans are searched further than op by op: StateSearch of options.h.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_STATE_SEARCH_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_STATE_SEARCH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/spmd/plan/options.h"

namespace shardcall {
inline namespace internal {

// A program of more instructions than this is not small.
inline constexpr int kMostInSmallProgram = 350;

absl::string_view StateSearchName(StateSearch search);  // "none", "small", "all"
// E213 for another text.
absl::StatusOr<StateSearch> ParseStateSearch(absl::string_view text);

// Whether the states of such a program are chosen together (states/cheaper_states.h), and more
// candidates are made of each op (rule_chooser.h).
bool LooksAhead(const Program& program, const SpmdOptions& options);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_STATE_SEARCH_H_
