// SPDX-License-Identifier: Apache-2.0
// Calls that only name an order (jax.experimental.control_deps) become control dependencies.
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/import_internal.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {
namespace {

bool NamesOrder(const Instruction& i) { return HasTrait(KnownTargetOf(i), kOrders); }

// A copy of a module in which each such call is a control dependency. An instruction stands behind
// what it needs, and otherwise where it stood.
class OrderedModule {
 public:
  explicit OrderedModule(InlinedModule* inlined)
      : inlined_(*inlined),
        old_(inlined->module),
        new_(old_.shared_context()),
        cloner_(old_, &new_),
        is_open_(old_.num_instructions()) {
    for (int c = 0; c < old_.num_computations(); ++c) {
      left_.push_back(old_.comp(CompId(c)).instructions.size());
    }
  }

  absl::Status Run() {
    SHARDCALL_RETURN_IF_ERROR(ReadCalls());
    cloner_.CopyHeader();
    for (int c = 0; c < old_.num_computations(); ++c) cloner_.AddComputation(CompId(c));
    new_.set_entry(cloner_.now(old_.entry()));
    for (int k = 0; k < old_.num_instructions(); ++k) {
      SHARDCALL_RETURN_IF_ERROR(AddWithNeeds(InstrId(k)));
    }
    for (int c = 0; c < old_.num_computations(); ++c) cloner_.SetRoot(CompId(c));
    for (CallFrame& f : inlined_.frames) {
      if (f.value.valid()) f.value = cloner_.now(f.value);
    }
    inlined_.frame_of = std::move(frame_of_);
    inlined_.module = std::move(new_);
    return absl::OkStatus();
  }

 private:
  // An instruction that is being added once all of `needs` are.
  struct Open {
    InstrId id;
    std::vector<InstrId> needs;
    size_t next = 0;
  };

  absl::Status ReadCalls() {
    for (int k = 0; k < old_.num_instructions(); ++k) {
      const Instruction& i = old_.instr(InstrId(k));
      if (!NamesOrder(i)) continue;
      if (i.operand_count != 2 || !i.shape->IsTuple() || i.shape->num_leaves() != 0) {
        return ToStatus(
            {.code = "E165",
             .message = absl::StrCat("the custom call ", Target(i), " names no order"),
             .where = std::string(i.name),
             .expected = "two operands and the result (): the first is computed before the second",
             .found = absl::StrCat(i.operand_count, " operands and the result ",
                                   i.shape->ToString(false)),
             .fix = "Name two values, as jax.experimental.control_deps does"});
      }
      ReadCall(old_.operand(InstrId(k), 0), old_.operand(InstrId(k), 1));
    }
    return absl::OkStatus();
  }

  void ReadCall(InstrId first, InstrId second) {
    const InstrId after = Annotated(second);
    InstrId before = Annotated(first);
    if (before == after && first != second) return;  // two names of one value
    AddEdge(before, after);
    // An element is there when what computes it is done. The element keeps its place in the chain:
    // what is before it is before `after`, too.
    while (old_.instr(before).opcode == Opcode::kGetTupleElement) {
      const InstrId whole = old_.operand(before, 0);
      const size_t index = static_cast<size_t>(old_.instr(before).as<TupleIndexAttrs>().index);
      before = old_.instr(whole).opcode == Opcode::kTuple ? Annotated(old_.operands(whole)[index])
                                                          : whole;
    }
    AddEdge(before, after);
  }

  // A value under its annotations of a sharding, which compute nothing.
  InstrId Annotated(InstrId id) const {
    while (HasTrait(KnownTargetOf(old_.instr(id)), kIsIdentity) &&
           old_.instr(id).operand_count == 1) {
      id = old_.operand(id, 0);
    }
    return id;
  }

  void AddEdge(InstrId before, InstrId after) {
    // Parameters are there from the start. What an instruction uses is computed before it anyway.
    if (old_.instr(before).opcode == Opcode::kParameter ||
        old_.instr(after).opcode == Opcode::kParameter ||
        absl::c_linear_search(old_.operands(after), before)) {
      return;
    }
    std::vector<InstrId>& all = before_[after];
    const RareAttributes* rare = old_.rare(old_.instr(after));
    if (absl::c_linear_search(all, before) ||
        (rare != nullptr && absl::c_linear_search(rare->control_predecessors, before))) {
      return;
    }
    all.push_back(before);
  }

  std::vector<InstrId> NeedsOf(InstrId id) const {
    const Instruction& i = old_.instr(id);
    std::vector<InstrId> needs(old_.operands(i).begin(), old_.operands(i).end());
    const auto add = [&](const std::vector<InstrId>& more) {
      needs.insert(needs.end(), more.begin(), more.end());
    };
    if (const RareAttributes* rare = old_.rare(i)) add(rare->control_predecessors);
    if (const auto it = before_.find(id); it != before_.end()) add(it->second);
    if (HasTrait(i.opcode, kCallsComputation)) {
      for (CompId c : CalledComputations(old_, i)) {
        if (left_[c.value] > 0) add(old_.comp(c).instructions);
      }
    }
    return needs;
  }

  bool Added(InstrId id) const { return cloner_.now(id).valid(); }

  absl::Status AddWithNeeds(InstrId id) {
    if (Added(id)) return absl::OkStatus();
    std::vector<Open> open = {{id, NeedsOf(id)}};
    is_open_[id.value] = true;
    while (!open.empty()) {
      Open& top = open.back();
      while (top.next < top.needs.size() && Added(top.needs[top.next])) ++top.next;
      if (top.next == top.needs.size()) {
        Add(top.id);
        open.pop_back();
        continue;
      }
      const InstrId need = top.needs[top.next];
      if (is_open_[need.value]) return Cycle(open, need);
      is_open_[need.value] = true;
      open.push_back({need, NeedsOf(need)});
    }
    return absl::OkStatus();
  }

  // Each of `open` from `first` on needs the next one, and the last one needs `first`.
  absl::Status Cycle(const std::vector<Open>& open, InstrId first) const {
    constexpr size_t kShown = 8;
    const auto is_first = [first](const Open& o) { return o.id == first; };
    std::string chain;
    size_t shown = 0;
    for (auto it = absl::c_find_if(open, is_first); it != open.end(); ++it) {
      if (shown++ < kShown) absl::StrAppend(&chain, "%", old_.instr(it->id).name, " needs ");
    }
    if (shown > kShown) chain += "others, of which one needs ";
    absl::StrAppend(&chain, "%", old_.instr(first).name);
    return ToStatus({.code = "E165",
                     .message = "custom calls ask for an order that cannot be",
                     .where = absl::StrCat("%", old_.instr(first).name),
                     .expected = "no instruction that has to be computed before itself",
                     .found = std::move(chain),
                     .fix = "Remove one of the calls that order these"});
  }

  void Add(InstrId id) {
    --left_[old_.instr(id).computation.value];
    frame_of_.push_back(inlined_.frame_of[id.value]);
    Instruction copy = cloner_.CopyOf(id);
    if (NamesOrder(copy)) {  // nothing but its empty result remains
      copy.opcode = Opcode::kTuple;
      copy.attrs = nullptr;
      copy.frontend = nullptr;
      copy.sharding = nullptr;
      copy.backend_config = {};
      cloner_.Add(id, copy, {}, cloner_.now(old_.instr(id).computation));
      return;
    }
    const InstrId made = cloner_.Clone(id);
    const auto it = before_.find(id);
    if (it == before_.end()) return;
    for (InstrId p : it->second) {
      new_.mutable_rare(made).control_predecessors.push_back(cloner_.now(p));
    }
  }

  InlinedModule& inlined_;
  const Module& old_;
  Module new_;
  ModuleCloner cloner_;
  absl::flat_hash_map<InstrId, std::vector<InstrId>> before_;  // by what is computed after
  std::vector<bool> is_open_;
  std::vector<size_t> left_;  // instructions of each computation that are not added yet
  std::vector<int32_t> frame_of_;
};

}  // namespace

absl::Status OrderAsCalled(InlinedModule* inlined) {
  const Module& m = inlined->module;
  for (int k = 0; k < m.num_instructions(); ++k) {
    if (NamesOrder(m.instr(InstrId(k)))) return OrderedModule(inlined).Run();
  }
  return absl::OkStatus();
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
