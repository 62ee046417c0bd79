// SPDX-License-Identifier: Apache-2.0
// What `explain`, `propagate --trace` and the report tell of conflicts over axes: what was tried,
// and what each was about. And of shardings that were chosen in place of propagated ones.
#ifndef SHARDCALL_PARTITIONER_API_CONFLICTS_H_
#define SHARDCALL_PARTITIONER_API_CONFLICTS_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "shardcall/partitioner/api/partition.h"

namespace shardcall {
inline namespace internal {

// "" for a program whose propagation is the same in all orders of conflicts. Of the conflicts, the
// first `most`; `explain` has these, and `propagate --trace` has all.
inline constexpr size_t kMostConflictsTold = 10;
std::string ConflictsText(const PropagatedProgram& p, bool whole_reasons, size_t most);
// Null likewise.
nlohmann::ordered_json ConflictsJson(const PropagatedProgram& p);

// "" for a program that has what was propagated. `plan`: with the chosen shardings.
std::string ChosenText(const PropagatedProgram& p);
// Null likewise.
nlohmann::ordered_json ChosenJson(const PropagatedProgram& p);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_CONFLICTS_H_
