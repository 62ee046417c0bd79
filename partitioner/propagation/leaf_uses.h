// SPDX-License-Identifier: Apache-2.0
// The uses of each value of a program: by ops, and on its ways into and out of loops, branches and
// calls.
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_LEAF_USES_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_LEAF_USES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/import/program.h"

namespace shardcall {
inline namespace internal {

struct LeafUse {
  LeafId leaf;
  InstrId by;
  CompId at;        // where the value is when it is used or passed
  LeafId to;        // where `by` passes it; invalid for other ops
  int operand = 0;  // of ops
};

class LeafUses {
 public:
  explicit LeafUses(const Program& program) : program_(program) {}
  // Looks at the program, once. The others need it.
  void Collect();
  // In the order of the instructions. Scalars, which are never sharded, have those by loops and
  // branches only.
  absl::Span<const LeafUse> of(LeafId leaf) const { return uses_.at(leaf); }
  // Those that pass another value to the leaf.
  absl::Span<const LeafUse> entries_to(LeafId leaf) const { return entries_.at(leaf); }

 private:
  // Uses by leaf, one after the other.
  struct ByLeaf {
    std::vector<uint32_t> begin;  // by leaf, and the end
    std::vector<LeafUse> uses;
    absl::Span<const LeafUse> at(LeafId leaf) const {
      return absl::MakeConstSpan(uses).subspan(begin[leaf.value],
                                               begin[leaf.value + 1] - begin[leaf.value]);
    }
  };
  ByLeaf Sorted(absl::Span<const LeafUse> all, LeafId LeafUse::* key) const;

  const Program& program_;
  ByLeaf uses_, entries_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_LEAF_USES_H_
