// SPDX-License-Identifier: Apache-2.0
// Sharding propagation over factor rules, forwards and backwards. It decides the sharding of each
// leaf and records where it came from.
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_PROPAGATION_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_PROPAGATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/propagation/conflict_order.h"
#include "shardcall/partitioner/propagation/provenance.h"
#include "shardcall/partitioner/rules/op_rules.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/cost_model.h"

namespace shardcall SHARDCALL_PUBLIC {

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
  ConflictOrder conflicts = ConflictOrder::kWait;
  // For example "argument 0 -> %dot.3 operand 0 -> result".
  std::string Explain(const Program& program, LeafId leaf) const;
};

struct PropagationOptions {
  bool propagate = true;  // false: unannotated values are replicated
  // By which a loop's indexed arrays are kept whole while it runs, or not (indexed_carries.h).
  CostModel cost = {};
  ConflictOrder conflicts = ConflictOrder::kWait;
};

absl::StatusOr<PropagationResult> Propagate(const Program& program, RuleTable& rules,
                                            const PropagationOptions& options);

// The different results of all orders of conflicts, that of ConflictOrder::kWait first. One, at
// the cost of one, for a program without conflicts, which is the usual case. The order in
// `options` is ignored.
absl::StatusOr<std::vector<PropagationResult>> PropagateInEachOrder(
    const Program& program, RuleTable& rules, const PropagationOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_PROPAGATION_H_
