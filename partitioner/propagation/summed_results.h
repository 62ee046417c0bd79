// SPDX-License-Identifier: Apache-2.0
// Open results of the entry that are sums over devices, such as the gradients of weights where a
// batch is sharded. Propagation leaves them whole on every device, as no operand has the axes of
// the sum in another dimension. A result that has the shape of a parameter is better sharded as
// that one, as a weight's gradient is used with the weight: it is reduce-scattered then, with half
// the bytes of an all-reduce.
//
// Example: x f32[4096,512] and w f32[512,512], both [{"d"}, {}], and the open result x^T (x w): the
// sum over the batch leaves nothing for "d", and the result gets [{"d"}, {}] from w. Had w no
// sharding, the result would have none.
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_SUMMED_RESULTS_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_SUMMED_RESULTS_H_

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/propagation/leaf_uses.h"
#include "shardcall/partitioner/propagation/provenance.h"
#include "shardcall/partitioner/rules/op_rules.h"

namespace shardcall {
inline namespace internal {

class SummedResults {
 public:
  // `sharding`, by canonical leaf, and its provenance are changed. `constraints`: what annotations
  // say, by canonical leaf.
  SummedResults(const Program& program, RuleTable& rules, LeafUses& uses,
                absl::Span<const ShardingConstraint* const> constraints,
                std::vector<const Sharding*>* sharding, ProvenanceTable* provenance)
      : program_(program),
        rules_(rules),
        uses_(uses),
        constraints_(constraints),
        sharding_(*sharding),
        provenance_(*provenance) {}
  // Shards what can be, from the last op back to the sum through ops that pass its dimensions on,
  // as long as nothing else uses these values.
  void Shard();

 private:
  // Whether some value from `leaf` back is a sum over the axes that it gains by the sharding `to`.
  // Those from there on have it then.
  bool Give(LeafId leaf, const Sharding* to, LeafId like, int depth);
  bool IsFree(LeafId leaf, size_t uses) const;
  // The sharding of operand t of an op with this rule whose result has the sharding `to`; null if
  // there is none.
  const Sharding* OfOperand(const ShardingRule& rule, int t, LeafId operand,
                            const Sharding& to) const;
  void Set(LeafId leaf, const Sharding* to, LeafId like);

  const Program& program_;
  RuleTable& rules_;
  LeafUses& uses_;
  const absl::Span<const ShardingConstraint* const> constraints_;
  std::vector<const Sharding*>& sharding_;
  ProvenanceTable& provenance_;
  absl::flat_hash_set<LeafId> results_;  // of the entry
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_SUMMED_RESULTS_H_
