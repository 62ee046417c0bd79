// SPDX-License-Identifier: Apache-2.0
// Equivalence classes of a program's dimensions: dimensions that ops map to the same factor have
// the same size. A dimension that a reshape splits consists of several atoms.
//
//   x = f32[6,4] parameter(0)         x: a b    (a = 6, b = 4)
//   y = f32[24] reshape(x)            y: (a b)
//   s = f32[6] reduce(x, 0), {1}      s: a
#ifndef SHARDCALL_PARTITIONER_RULES_DIMENSION_CLASSES_H_
#define SHARDCALL_PARTITIONER_RULES_DIMENSION_CLASSES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/rules/op_rules.h"

namespace shardcall {
inline namespace internal {

class DimensionClasses {
 public:
  // Takes linear time except for the splits by reshapes. `program` must outlive it.
  DimensionClasses(const Program& program, RuleTable& rules);

  // Ids of the atoms of a dimension, major to minor; a single atom of size 1 for size 1.
  std::vector<int> Atoms(LeafId leaf, int dim) const;
  int64_t size(int atom) const { return nodes_[Root(atom)].size; }
  // Whether an op gives the atom another extent elsewhere (slice, pad, dynamic-slice), or splits
  // it inside: its size cannot change, nor can it be sharded.
  bool fixed(int atom) const { return nodes_[Root(atom)].fixed; }

 private:
  struct Node {
    int64_t size = 1;
    int parent = -1;
    int major = -1, minor = -1;  // set once it is split
    bool fixed = false;
  };
  int NewNode(int64_t size);
  int Root(int n) const;
  void Expand(int n, std::vector<int>* out) const;
  std::vector<int> Expanded(absl::Span<const int> nodes) const;
  void Fix(absl::Span<const int> nodes);
  void Split(int n, int64_t major_size);
  void Unify(absl::Span<const int> a, absl::Span<const int> b);
  void UnifyLeaves(LeafId a, LeafId b);
  void AddRule(InstrId id, const ShardingRule& rule);
  void AddStructural(InstrId id);
  int NodeOf(LeafId leaf, int dim) const {
    return first_[program_.leaves.canonical(leaf).value] + dim;
  }

  const Program& program_;
  std::vector<Node> nodes_;
  std::vector<int> first_;  // by canonical leaf: the node of its first dimension
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RULES_DIMENSION_CLASSES_H_
