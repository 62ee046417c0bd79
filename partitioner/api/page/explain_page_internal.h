// SPDX-License-Identifier: Apache-2.0
// What the parts of the page's data share.
#ifndef SHARDCALL_PARTITIONER_API_PAGE_EXPLAIN_PAGE_INTERNAL_H_
#define SHARDCALL_PARTITIONER_API_PAGE_EXPLAIN_PAGE_INTERNAL_H_

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/api/partition.h"

namespace shardcall::page {

using Json = nlohmann::json;

// Each text once.
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

// By computation that is run, its events in order: [kind, seconds of all its runs, ..]:
// [0, s, count of ops, text of the longest], [1, s, collective], [2, s, text, [callees]].
// `record_of`: by instruction of the local module its collective, -1 for none. By the cost
// model of the plan, see spmd/options.h.
Json Steps(const LocalProgram& local, const CostModel& cost, const std::vector<int>& record_of,
           Texts* texts);
// id -> [name, opcode, shape, [operands]] of what is a few hops from a collective; *left_out:
// whether some is missing, for there being too much.
Json Nodes(const LocalProgram& local, Texts* texts, bool* left_out);

}  // namespace shardcall::page

#endif  // SHARDCALL_PARTITIONER_API_PAGE_EXPLAIN_PAGE_INTERNAL_H_
