// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/reasons.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shardcall::inline internal {
namespace {

// Instructions with more leaves than this have their places in a table.
constexpr int kFewLeaves = 16;
// A place is the number of an operand leaf, or -1 - the number of a result leaf.
constexpr int64_t kNoPlace = INT64_MIN;

std::string Name(const Module& m, InstrId i) {
  const Instruction& instr = m.instr(i);
  return instr.name.empty() ? absl::StrCat(OpcodeText(instr.opcode), "#", i.value)
                            : absl::StrCat("%", instr.name);
}

// Calls visit(leaf, place) for the results and then the operands of an instruction, until it
// returns false.
template <typename Visit>
void VisitPlaces(const Program& program, InstrId via, Visit visit) {
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

const Reasons::Chain& Reasons::ChainOf(LeafId leaf) {
  if (chains_.empty()) chains_.resize(program_.leaves.num_leaves());
  // The leaves from here back to one whose chain is known, or to an origin.
  std::vector<LeafId> open;
  for (LeafId at = leaf; chains_[at.value].steps < 0;) {
    open.push_back(at);
    // A mark, so that steps that lead in a circle end where they would begin anew.
    chains_[at.value] = {.steps = 0, .origin = at, .head = at};
    const LeafId from = result_.provenance[at.value].from;
    if (!from.valid()) break;
    at = from;
  }
  for (size_t k = open.size(); k-- > 0;) {
    const LeafId at = open[k];
    const LeafId from = result_.provenance[at.value].from;
    if (!from.valid()) continue;
    // The last of `open` may lead back to one that is still a mark: then it is the origin.
    if (k + 1 == open.size() && std::find(open.begin(), open.end(), from) != open.end()) continue;
    const Chain& before = chains_[from.value];
    Chain& chain = chains_[at.value];
    chain.steps = before.steps + 1;
    chain.origin = before.origin;
    chain.head = chain.steps <= kStepsAtAnEnd ? at : before.head;
  }
  return chains_[leaf.value];
}

std::string Reasons::Of(LeafId leaf) {
  leaf = program_.leaves.canonical(leaf);
  const Chain& chain = ChainOf(leaf);
  const LeafId origin = chain.origin;
  const Sharding* s = result_.sharding[origin.value];
  if (chain.steps == 0 && !result_.provenance[origin.value].constraint) {
    if (s == nullptr || !s->HasShardedDim()) {
      return result_.kept_whole[origin.value] ? "replicated: a loop indexes it, and keeps it whole"
                                              : "replicated: nothing sharded reaches it";
    }
  }
  const bool all = whole_ || chain.steps <= 2 * kStepsAtAnEnd;
  // From the leaf backwards, with what is left out between its end and its head.
  std::vector<LeafId> end, head;
  LeafId at = leaf;
  for (int k = 0; k < (all ? chain.steps : kStepsAtAnEnd); ++k) {
    end.push_back(at);
    at = result_.provenance[at.value].from;
  }
  if (!all) {
    for (at = chain.head; at != origin; at = result_.provenance[at.value].from) head.push_back(at);
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

// Where a chain starts: "argument 0", "constraint at %sharding.3", "%add.1".
std::string Reasons::OriginText(LeafId leaf) {
  const Module& m = program_.module;
  const InstrId i = program_.leaves.instr(leaf);
  const Instruction& instr = m.instr(i);
  if (instr.opcode == Opcode::kParameter && instr.computation == m.entry()) {
    if (first_argument_.empty()) {
      int64_t flat = 0;
      for (InstrId p : m.comp(m.entry()).parameters) {
        first_argument_[p] = flat;
        flat += m.instr(p).shape->num_leaves();
      }
    }
    return absl::StrCat("argument ", first_argument_[i] + program_.leaves.index(leaf));
  }
  return absl::StrCat(result_.provenance[leaf.value].constraint ? "constraint at " : "",
                      Name(m, i));
}

std::string Reasons::StepText(LeafId leaf) {
  const Provenance& p = result_.provenance[leaf.value];
  return absl::StrCat(" -> ", Name(program_.module, p.via), " ", Place(p.via, p.from), " -> ",
                      Place(p.via, leaf));
}

int64_t Reasons::PlaceNumber(InstrId via, LeafId leaf) {
  const Module& m = program_.module;
  int leaves = m.instr(via).shape->num_leaves();
  for (InstrId o :
       m.operands(via).first(std::min<size_t>(m.operands(via).size(), kFewLeaves + 1))) {
    leaves += m.instr(o).shape->num_leaves();
  }
  if (leaves <= kFewLeaves) {
    int64_t found = kNoPlace;
    VisitPlaces(program_, via, [&](LeafId l, int64_t place) {
      if (l == leaf) found = place;
      return found == kNoPlace;
    });
    return found;
  }
  const auto [table, is_new] = places_.try_emplace(via);
  if (is_new) {
    VisitPlaces(program_, via, [&, &places = table->second](LeafId l, int64_t place) {
      places.try_emplace(l, place);
      return true;
    });
  }
  const auto it = table->second.find(leaf);
  return it == table->second.end() ? kNoPlace : it->second;
}

std::string Reasons::Place(InstrId via, LeafId leaf) {
  const Module& m = program_.module;
  const int64_t place = PlaceNumber(via, leaf);
  if (place == kNoPlace) return Name(m, program_.leaves.instr(leaf));
  if (place >= 0) return absl::StrCat("operand ", place);
  return m.instr(via).shape->num_leaves() > 1 ? absl::StrCat("result ", -1 - place) : "result";
}

}  // namespace shardcall::inline internal
