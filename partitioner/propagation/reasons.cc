// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/reasons.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shardcall {
inline namespace internal {
namespace {

// Instructions with more leaves than this have their roles in a table.
constexpr int kFewLeaves = 16;
// A role is the number of an operand leaf, or -1 - the number of a result leaf.
constexpr int64_t kNoRole = INT64_MIN;

std::string Name(const Module& m, InstrId i) {
  const Instruction& instr = m.instr(i);
  return instr.name.empty() ? absl::StrCat(OpcodeText(instr.opcode), "#", i.value)
                            : absl::StrCat("%", instr.name);
}

// Calls visit(leaf, role) for the results and then the operands of an instruction, until it
// returns false.
template <typename Visit>
void VisitRoles(const Program& program, InstrId via, Visit visit) {
  const Module& m = program.module;
  for (int k = 0; k < m.instr(via).shape->num_leaves(); ++k) {
    if (!visit(program.leaves.canonical(via, k), -1 - int64_t{k})) return;
  }
  int64_t flat = 0;
  for (InstrId o : m.operands(via)) {
    for (int k = 0; k < m.instr(o).shape->num_leaves(); ++k, ++flat) {
      if (!visit(program.leaves.canonical(o, k), flat)) return;
    }
  }
}

}  // namespace

Reasons::Place Reasons::Before(Place place) const {
  const Provenance& p = Step(place);
  if (p.from_dim >= 0 || !p.from.valid()) return {p.from, p.from_dim};
  const Sharding& s = *result_.sharding[p.from.value];
  int dim = 0;
  while (dim + 1 < s.rank() && s.dim(dim).empty()) ++dim;
  return {p.from, dim};
}

const Reasons::Chain& Reasons::ChainOf(Place place) {
  if (chains_.empty()) chains_.resize(result_.provenance.num_slots());
  // The places from here back to one whose chain is known, or to an origin.
  std::vector<Place> open;
  for (Place at = place; ChainAt(at).steps < 0;) {
    open.push_back(at);
    // A mark, so that steps that lead in a circle end where they would begin anew.
    ChainAt(at) = {.steps = 0, .origin = at, .head = at};
    const Place from = Before(at);
    if (!from.leaf.valid()) break;
    at = from;
  }
  for (size_t k = open.size(); k-- > 0;) {
    const Place at = open[k];
    const Place from = Before(at);
    if (!from.leaf.valid()) continue;
    // The last of `open` may lead back to one that is still a mark: then it is the origin.
    if (k + 1 == open.size() && std::find(open.begin(), open.end(), from) != open.end()) continue;
    const Chain& before = ChainAt(from);
    Chain& chain = ChainAt(at);
    chain.steps = before.steps + 1;
    chain.origin = before.origin;
    chain.head = chain.steps <= kStepsAtAnEnd ? at : before.head;
  }
  return ChainAt(place);
}

std::string Reasons::Of(LeafId leaf) {
  leaf = program_.leaves.canonical(leaf);
  if (std::string why = WhyChosen(leaf); !why.empty()) return why;
  const Sharding* s = result_.sharding[leaf.value];
  if (s == nullptr || !s->HasShardedDim()) return WhyReplicated(leaf);
  std::vector<std::pair<int, std::string>> of_dims;
  for (int d = 0; d < s->rank(); ++d) {
    if (!s->dim(d).empty()) of_dims.push_back({d, OfDim({leaf, d})});
  }
  const auto same = [&](const auto& of_dim) { return of_dim.second == of_dims[0].second; };
  if (std::all_of(of_dims.begin(), of_dims.end(), same)) return std::move(of_dims[0].second);
  return absl::StrJoin(of_dims, "; ", [](std::string* out, const auto& of_dim) {
    absl::StrAppend(out, "dim ", of_dim.first, ": ", of_dim.second);
  });
}

std::string Reasons::WhyChosen(LeafId leaf) {
  const auto found = result_.propagated.find(leaf);
  if (found == result_.propagated.end()) return "";
  return absl::StrCat("chosen: the program takes less time so than with ",
                      found->second->ToString(), ", which is propagated");
}

std::string Reasons::OfDim(Place place) {
  if (std::string why = WhyChosen(place.leaf); !why.empty()) return why;
  const Chain& chain = ChainOf(place);
  const Place origin = chain.origin;
  const bool all = whole_ || chain.steps <= 2 * kStepsAtAnEnd;
  // From the place backwards, with what is left out between its end and its head.
  std::vector<Place> end, head;
  Place at = place;
  for (int k = 0; k < (all ? chain.steps : kStepsAtAnEnd); ++k) {
    end.push_back(at);
    at = Before(at);
  }
  if (!all) {
    for (at = chain.head; at != origin; at = Before(at)) head.push_back(at);
  }
  std::string out = OriginText(origin);
  for (size_t k = head.size(); k-- > 0;) absl::StrAppend(&out, StepText(head[k]));
  if (!all) {
    absl::StrAppend(&out, " -> (", chain.steps - static_cast<int>(head.size() + end.size()),
                    " more steps)");
  }
  for (size_t k = end.size(); k-- > 0;) absl::StrAppend(&out, StepText(end[k]));
  return out;
}

std::string Reasons::WhyReplicated(LeafId leaf) {
  const Module& m = program_.module;
  const InstrId i = program_.leaves.instr(leaf);
  const Instruction& instr = m.instr(i);
  if (result_.kept_whole[leaf.value]) return "replicated: a loop indexes it, and keeps it whole";
  const ShardingConstraint* c = program_.constraints[leaf.value];
  if (const int result = IsArgument(i) ? -1 : ResultOf(leaf); result >= 0) {
    if (program_.unstated_output[result]) {
      return absl::StrCat("replicated: the program states no sharding for result ", result);
    }
    const LeafId of_root = program_.leaves.leaf(m.comp(m.entry()).root, result);
    const ShardingConstraint* said = program_.constraints[of_root.value];
    if (c == nullptr && said != nullptr && !said->unknown) {
      return absl::StrCat("replicated: annotated so at result ", result);
    }
  }
  if (c != nullptr && !c->unknown) {
    const bool said = instr.sharding != nullptr || instr.frontend != nullptr;
    const std::string where = IsArgument(i) ? ArgumentText(leaf) : Name(m, i);
    return said ? absl::StrCat("replicated: annotated so at ", where)
                : absl::StrCat("replicated: the program states no sharding for ", where);
  }
  if (program_.LeafShape(leaf)->rank() == 0) return "replicated: it has no dimensions";
  FindSharedWith();
  const auto it = sharded_beside_.find(leaf);
  if (it == sharded_beside_.end()) return "replicated: nothing sharded reaches it";
  return absl::StrCat("replicated: ", Name(m, it->second),
                      " has sharded values, and passes none of their axes to it");
}

// Fills in sharded_beside_.
void Reasons::FindSharedWith() {
  if (looked_beside_) return;
  looked_beside_ = true;
  const Module& m = program_.module;
  const auto is_sharded = [&](LeafId l) {
    const Sharding* s = result_.sharding[l.value];
    return s != nullptr && s->HasShardedDim();
  };
  for (int n = 0; n < m.num_instructions(); ++n) {
    const InstrId i(n);
    const int leaves = m.instr(i).shape->num_leaves();
    // Control flow, and ops that only give values other names.
    if (HasTrait(m.instr(i).opcode, kControlFlow) ||
        (leaves > 0 && program_.leaves.canonical(i) != program_.leaves.leaf(i))) {
      continue;
    }
    bool any = false;
    VisitRoles(program_, i, [&](LeafId l, int64_t) { return !(any = is_sharded(l)); });
    if (!any) continue;
    VisitRoles(program_, i, [&](LeafId l, int64_t) {
      if (!is_sharded(l)) sharded_beside_.try_emplace(l, i);
      return true;
    });
  }
}

int Reasons::ResultOf(LeafId leaf) {
  if (result_of_.empty()) {
    const InstrId root = program_.module.comp(program_.module.entry()).root;
    for (int k = 0; k < program_.module.instr(root).shape->num_leaves(); ++k) {
      result_of_.try_emplace(program_.leaves.canonical(root, k), k);
    }
  }
  const auto found = result_of_.find(program_.leaves.canonical(leaf));
  return found == result_of_.end() ? -1 : found->second;
}

bool Reasons::IsArgument(InstrId i) const {
  const Instruction& instr = program_.module.instr(i);
  return instr.opcode == Opcode::kParameter && instr.computation == program_.module.entry();
}

std::string Reasons::ArgumentText(LeafId leaf) {
  const Module& m = program_.module;
  if (first_argument_.empty()) {
    int64_t flat = 0;
    for (InstrId p : m.comp(m.entry()).parameters) {
      first_argument_[p] = flat;
      flat += m.instr(p).shape->num_leaves();
    }
  }
  return absl::StrCat("argument ",
                      first_argument_[program_.leaves.instr(leaf)] + program_.leaves.index(leaf));
}

// Where a chain starts: "argument 0", "constraint at %sharding.3", "%add.1".
std::string Reasons::OriginText(Place place) {
  const LeafId leaf = place.leaf;
  const Module& m = program_.module;
  const InstrId i = program_.leaves.instr(leaf);
  if (IsArgument(i)) return ArgumentText(leaf);
  return absl::StrCat(Step(place).constraint ? "constraint at " : "", Name(m, i));
}

std::string Reasons::StepText(Place place) {
  const Provenance& p = Step(place);
  if (p.like) {
    return absl::StrCat(" -> ", Name(program_.module, p.via),
                        ", a sum in the shape of that, whose sharding is open");
  }
  return absl::StrCat(" -> ", Name(program_.module, p.via), " ", RoleOf(p.via, p.from), " -> ",
                      RoleOf(p.via, place.leaf));
}

int64_t Reasons::RoleNumber(InstrId via, LeafId leaf) {
  const Module& m = program_.module;
  int leaves = m.instr(via).shape->num_leaves();
  for (InstrId o :
       m.operands(via).first(std::min<size_t>(m.operands(via).size(), kFewLeaves + 1))) {
    leaves += m.instr(o).shape->num_leaves();
  }
  if (leaves <= kFewLeaves) {
    int64_t found = kNoRole;
    VisitRoles(program_, via, [&](LeafId l, int64_t role) {
      if (l == leaf) found = role;
      return found == kNoRole;
    });
    return found;
  }
  const auto [table, is_new] = roles_.try_emplace(via);
  if (is_new) {
    VisitRoles(program_, via, [&, &places = table->second](LeafId l, int64_t role) {
      places.try_emplace(l, role);
      return true;
    });
  }
  const auto it = table->second.find(leaf);
  return it == table->second.end() ? kNoRole : it->second;
}

std::string Reasons::RoleOf(InstrId via, LeafId leaf) {
  const Module& m = program_.module;
  const int64_t role = RoleNumber(via, leaf);
  if (role == kNoRole) return Name(m, program_.leaves.instr(leaf));
  if (role >= 0) return absl::StrCat("operand ", role);
  return m.instr(via).shape->num_leaves() > 1 ? absl::StrCat("result ", -1 - role) : "result";
}

}  // namespace internal
}  // namespace shardcall
