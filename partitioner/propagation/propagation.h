// SPDX-License-Identifier: Apache-2.0
// Sharding propagation over factor rules, forwards and backwards: what each
// leaf's sharding shall be, and where that came from.
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_PROPAGATION_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_PROPAGATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/rules/op_rules.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Where the sharding of a canonical leaf came from: a constraint (from is
// invalid), or another leaf through instruction `via`. The last step of the
// leaf that brought the most axes; follow `from` back to the origin.
struct Provenance {
  LeafId from;
  InstrId via;
  bool constraint = false;
};

struct PropagationResult {
  // By leaf; leaves of one canonical leaf hold the same pointer. Never null for
  // arrays; null for tokens and empty tuples. Its manual axes are those in
  // force at the leaf's instruction.
  std::vector<const Sharding*> sharding;
  std::vector<Provenance> provenance;
  // The entry's flat results as the caller gets them: what the root's own
  // annotation says, else the value's sharding if that is annotated or may be
  // set, else replicated. A root leaf may alias a value that is kept otherwise.
  std::vector<const Sharding*> outputs;
  // E.g. "argument 0 -> %dot.3 operand 0 -> result".
  std::string Explain(const Program& program, LeafId leaf) const;
};

struct PropagationOptions {
  bool propagate = true;  // false: what is unannotated is replicated
};

absl::StatusOr<PropagationResult> Propagate(const Program& program, RuleTable& rules,
                                            const PropagationOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_PROPAGATION_H_
