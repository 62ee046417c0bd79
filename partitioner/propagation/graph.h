// SPDX-License-Identifier: Apache-2.0
// The graph that propagation walks: nodes (ops, data-flow edges, boundaries, groups) over
// canonical leaves. Each node has a rule and the leaves it applies to.
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_GRAPH_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_GRAPH_H_

#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/propagation/step.h"
#include "shardcall/partitioner/rules/block_list.h"
#include "shardcall/partitioner/rules/op_rules.h"
#include "shardcall/sharding/base/intern_table.h"

namespace shardcall {
inline namespace internal {

enum class NodeKind : uint8_t { kRule, kBoundary, kCallbacks };

// The rule of equal ops.
struct OpRule {
  const StepRule* step;                   // that of all rules whose steps are the same
  absl::InlinedVector<int64_t, 4> bytes;  // by tensor
};

struct Node {
  NodeKind kind = NodeKind::kRule;
  InstrId instr;
  const OpRule* rule = nullptr;  // kRule
  uint32_t leaf_begin = 0, leaf_count = 0;
  int32_t index = 0;  // operand of a boundary; number of operand leaves of callbacks
};

class PropagationGraph {
 public:
  PropagationGraph(const Program& program, RuleTable& rules);

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  const Node& node(uint32_t n) const { return nodes_[n]; }
  absl::Span<const LeafId> leaves(const Node& n) const {
    return absl::MakeConstSpan(leaf_pool_).subspan(n.leaf_begin, n.leaf_count);
  }
  // Nodes that a canonical leaf occurs in.
  absl::Span<const uint32_t> nodes_of(LeafId leaf) const {
    return absl::MakeConstSpan(adjacent_).subspan(
        adjacent_begin_[leaf.value], adjacent_begin_[leaf.value + 1] - adjacent_begin_[leaf.value]);
  }
  // The node with callbacks that produces a leaf, or -1.
  int callbacks_of(LeafId leaf) const {
    auto it = callbacks_.find(leaf);
    return it == callbacks_.end() ? -1 : it->second;
  }
  // Canonical leaves of each shard_as and shard_like group.
  absl::Span<const std::vector<LeafId>> shard_as() const { return shard_as_; }

  // CanonicalOrder of the instructions.
  absl::Span<const uint32_t> order() const { return order_; }
  // The same of the nodes: by the order of their instructions, then by number.
  uint32_t place_of(uint32_t node) const { return place_of_[node]; }
  uint32_t node_at(uint32_t place) const { return node_at_[place]; }
  // Whether the instruction is a constant expression of cheap ops: elementwise ones and ones that
  // move data.
  bool is_cheap(InstrId i) const { return cheap_[i.value]; }

 private:
  void AddRuleNode(InstrId i, const ShardingRule* rule);
  void AddEdge(InstrId via, LeafId a, LeafId b);
  void AddEdges(InstrId via, InstrId from, InstrId to);
  void AddControlFlow(InstrId i);
  void AddGroups();
  void FindCheap();
  void BuildAdjacency();
  void OrderNodes();
  uint32_t Push(Node node, absl::Span<const LeafId> leaves);
  const OpRule* Identity(const Shape* shape, int tensors, bool group);
  const OpRule* MakeRule(const ShardingRule* rule, Opcode opcode, absl::Span<const int64_t> bytes,
                         KnownTarget target);

  const Program& program_;
  const Module& module_;
  RuleTable& rules_;
  std::vector<Node> nodes_;
  std::vector<LeafId> leaf_pool_;
  std::vector<uint32_t> adjacent_begin_, adjacent_, order_, place_of_, node_at_;
  std::vector<bool> cheap_;
  absl::flat_hash_map<LeafId, int> callbacks_;
  std::vector<std::vector<LeafId>> shard_as_;
  BlockList<StepRule> step_rules_;
  BlockList<OpRule> op_rules_;
  std::deque<ShardingRule> identity_rules_;
  std::vector<const OpRule*> by_rule_;  // by RuleTable::rule_number
  absl::flat_hash_map<const Shape*, const OpRule*> identities_;
  struct Signed {
    absl::Span<const int64_t> signature;
    StepRule* step;
  };
  InternTable<Signed> by_signature_;  // in the Context's arena
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_GRAPH_H_
