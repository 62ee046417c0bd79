// SPDX-License-Identifier: Apache-2.0
// Sharding propagation over factor rules, forwards and backwards. It decides the sharding of each
// leaf and records where it came from.
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_PROPAGATION_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_PROPAGATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/propagation/conflict_order.h"
#include "shardcall/partitioner/propagation/provenance.h"
#include "shardcall/partitioner/rules/op_rules.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/cost_model.h"

namespace shardcall SHARDCALL_PUBLIC {

// An axis that two factors want in a value, each for a dimension, as they have it in a dimension of
// another value. Ops of one rule are one conflict: this is the first that was met.
struct Conflict {
  struct Side {
    int dim = -1;
    LeafId from;
    int from_dim = -1;
  };
  InstrId op;
  int64_t bytes = 0;  // of the largest value of that op
  LeafId value;
  AxisRef axis;
  Side sides[2];
};
// Ops of the same rule as `op` have this order, whatever that of the others is.
struct ConflictChoice {
  InstrId op;
  ConflictOrder order;
};

struct PropagationResult {
  // By leaf; leaves of one canonical leaf hold the same pointer. Never null for
  // arrays; null for tokens and empty tuples. Its manual axes are those in
  // force at the leaf's instruction.
  std::vector<const Sharding*> sharding;
  ProvenanceTable provenance;
  // By leaf: whether a loop that indexes the value keeps a dimension of it whole.
  std::vector<bool> kept_whole;
  // Shardings of the entry's flat results: the root's own annotation, else the value's sharding if
  // that is annotated or may be set, else replicated. The same value may have another sharding
  // inside the program.
  std::vector<const Sharding*> outputs;
  // The leaves whose shardings were chosen in place of what propagation gave them, which stands
  // here, since the program takes less time so; and what the program sends and takes with each.
  absl::flat_hash_map<LeafId, const Sharding*> propagated;
  double propagated_bytes = 0, propagated_seconds = 0, chosen_bytes = 0, chosen_seconds = 0;
  // By canonical leaf: the state that its value is made in, for all ops to start from, as soon as
  // one op wants another state than the one above. Chosen with these shardings.
  absl::flat_hash_map<LeafId, const Sharding*> common_copies;
  ConflictOrder conflicts = ConflictOrder::kWait;
  std::vector<ConflictChoice> choices;
  std::vector<Conflict> met;  // conflicts, in the order in which they were met
  // For example "argument 0 -> %dot.3 operand 0 -> result".
  std::string Explain(const Program& program, LeafId leaf) const;
};

struct PropagationOptions {
  bool propagate = true;  // false: unannotated values are replicated
  // By which a loop's indexed arrays are kept whole while it runs, or not (indexed_carries.h).
  CostModel cost = {};
  ConflictOrder conflicts = ConflictOrder::kWait;
  std::vector<ConflictChoice> choices = {};
};

absl::StatusOr<PropagationResult> Propagate(const Program& program, RuleTable& rules,
                                            const PropagationOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_PROPAGATION_H_
