// SPDX-License-Identifier: Apache-2.0
// Shared by the functions that make the page's data.
#ifndef SHARDCALL_PARTITIONER_PAGE_EXPLAIN_PAGE_INTERNAL_H_
#define SHARDCALL_PARTITIONER_PAGE_EXPLAIN_PAGE_INTERNAL_H_

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/spmd/localize/localize.h"
#include "shardcall/sharding/cost_model.h"

namespace shardcall {
inline namespace internal {
namespace page {

using Json = nlohmann::json;

// Stores each distinct text once.
class Texts {
 public:
  size_t Of(std::string text) {
    const auto [it, is_new] = known_.try_emplace(text, all_.size());
    if (is_new) all_.push_back(std::move(text));
    return it->second;
  }
  std::vector<std::string> Take() { return std::move(all_); }

 private:
  std::vector<std::string> all_;
  absl::flat_hash_map<std::string, size_t> known_;
};

// For each computation that runs, its events in order, as [kind, seconds over all its runs, ..]:
// [0, s, number of ops, text of the longest], [1, s, collective], [2, s, text, [callees]].
// `record_of` gives for each instruction of the local module the index of its collective, or -1.
// Times follow the plan's cost model, see sharding/cost_model.h.
Json Steps(const LocalProgram& local, const CostModel& cost, const std::vector<int>& record_of,
           Texts* texts);
// id -> [name, opcode, shape, [operands]] for the ops within a few hops of a collective; sets
// *left_out if there are too many to list.
Json Nodes(const LocalProgram& local, Texts* texts, bool* left_out);

}  // namespace page
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PAGE_EXPLAIN_PAGE_INTERNAL_H_
