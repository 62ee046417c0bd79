// SPDX-License-Identifier: Apache-2.0
// The cheapest plan of a small program by exhaustive search: every sharding of every value that the
// program leaves open, over whole axes of its mesh, is planned. What the partitioner chooses by
// itself is compared with it. The search shares with the partitioner how a single op is planned
// between given states, and the cost model, but nothing of how states are chosen.
#ifndef SHARDCALL_TESTS_PLAN_SEARCH_SEARCH_H_
#define SHARDCALL_TESTS_PLAN_SEARCH_SEARCH_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/spmd/plan/options.h"

namespace shardcall {

struct SearchResult {
  double seconds = 0, bytes = 0;            // of the partitioner's plan
  double best_seconds = 0, best_bytes = 0;  // of the cheapest one
  int64_t tried = 0;                        // plans; 0 if there are more than `most`
  std::string best;                         // its shardings where they differ, a line each
};

// `search`: the partitioner's own. Errors: those of parsing and partitioning.
absl::StatusOr<SearchResult> SearchPlans(const std::string& text, int64_t most, StateSearch search);

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PLAN_SEARCH_SEARCH_H_
