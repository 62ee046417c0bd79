// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/propagation/engine.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

absl::StatusOr<PropagationResult> Propagate(const Program& program, RuleTable& rules,
                                            const PropagationOptions& options) {
  PropagationEngine engine(program, rules);
  SHARDCALL_RETURN_IF_ERROR(rules.status());
  return engine.Run(options);
}

namespace {

std::string Name(const Module& m, InstrId i) {
  const Instruction& instr = m.instr(i);
  return instr.name.empty() ? absl::StrCat(OpcodeText(instr.opcode), "#", i.value)
                            : absl::StrCat("%", instr.name);
}

// Where a chain starts: "argument 0", "constraint at %sharding.3", "%add.1".
std::string Origin(const Program& program, LeafId leaf, bool constraint) {
  const Module& m = program.module;
  const InstrId i = program.leaves.instr(leaf);
  const Instruction& instr = m.instr(i);
  if (instr.opcode == Opcode::kParameter && instr.computation == m.entry()) {
    int64_t flat = program.leaves.index(leaf);
    for (InstrId p : m.comp(m.entry()).parameters) {
      if (p == i) break;
      flat += m.instr(p).shape->num_leaves();
    }
    return absl::StrCat("argument ", flat);
  }
  return absl::StrCat(constraint ? "constraint at " : "", Name(m, i));
}

// "operand 1", "result" or "result 2": the place of `leaf` in `via`.
std::string Place(const Program& program, InstrId via, LeafId leaf) {
  const Module& m = program.module;
  const Shape* shape = m.instr(via).shape;
  for (int k = 0; k < shape->num_leaves(); ++k) {
    if (program.leaves.canonical(via, k) == leaf) {
      return shape->num_leaves() > 1 ? absl::StrCat("result ", k) : "result";
    }
  }
  int flat = 0;
  for (InstrId o : m.operands(via)) {
    for (int k = 0; k < m.instr(o).shape->num_leaves(); ++k, ++flat) {
      if (program.leaves.canonical(o, k) == leaf) return absl::StrCat("operand ", flat);
    }
  }
  return Name(m, program.leaves.instr(leaf));
}

}  // namespace

std::string PropagationResult::Explain(const Program& program, LeafId leaf) const {
  std::vector<LeafId> chain = {program.leaves.canonical(leaf)};
  while (true) {
    const Provenance& p = provenance[chain.back().value];
    if (!p.from.valid() || std::find(chain.begin(), chain.end(), p.from) != chain.end()) break;
    chain.push_back(p.from);
  }
  const LeafId origin = chain.back();
  const Sharding* s = sharding[origin.value];
  if (chain.size() == 1 && !provenance[origin.value].constraint) {
    if (s == nullptr || !s->HasShardedDim()) {
      return kept_whole[origin.value] ? "replicated: a loop indexes it, and keeps it whole"
                                      : "replicated: nothing sharded reaches it";
    }
  }
  std::string out = Origin(program, origin, provenance[origin.value].constraint);
  for (size_t k = chain.size() - 1; k-- > 0;) {
    const InstrId via = provenance[chain[k].value].via;
    absl::StrAppend(&out, " -> ", Name(program.module, via), " ", Place(program, via, chain[k + 1]),
                    " -> ", Place(program, via, chain[k]));
  }
  return out;
}

}  // namespace shardcall
