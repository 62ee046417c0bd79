// SPDX-License-Identifier: Apache-2.0
// Inlining by rebuilding the module. There is one explicit stack of frames, each of a computation
// that is being copied. A frame appends either to its caller's computation (an inlined call) or to
// a new one (a loop body, a reducer).
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/annotations.h"
#include "shardcall/partitioner/import/import_internal.h"
#include "shardcall/partitioner/ir/called_computations.h"
#include "shardcall/partitioner/ir/liveness.h"

namespace shardcall::import_internal {
namespace {

// A call that one device runs is not inlined, but stays one op of that device.
bool IsOnOneDevice(const Instruction& i) {
  if (i.sharding == nullptr) return false;
  const auto maximal = [](const HloSharding& s) { return s.kind == HloSharding::Kind::kMaximal; };
  return i.sharding->kind == HloSharding::Kind::kTuple
             ? std::all_of(i.sharding->tuple.begin(), i.sharding->tuple.end(), maximal)
             : maximal(*i.sharding);
}

class Inliner {
 public:
  Inliner(const Module& module, bool inline_calls)
      : old_(module),
        inline_calls_(inline_calls),
        live_(module, EffectsAt::kPartitioning),
        out_(Module(module.shared_context())),
        names_(module, UniqueNames::kInstructions),
        comp_names_(module, UniqueNames::kComputations) {
    CountLive();
    // The first copy of each computation is free; further copies use up the budget.
    budget_ = 3 * static_cast<int64_t>(module.num_instructions()) + 10000;
  }

  bool all_live() const { return all_live_; }

  InlinedModule Run() {
    Module& m = out_.module;
    m.header = old_.header;
    for (const auto& text : old_.texts()) m.KeepText(text);
    m.Reserve(old_.num_instructions(), 2 * old_.num_instructions());
    out_.frame_of.reserve(old_.num_instructions());
    out_.frames.push_back({});
    instances_.resize(old_.num_computations());
    m.set_entry(PushComputation(old_.entry(), /*reducer=*/false, "", 0));
    while (!stack_.empty()) Step();
    return std::move(out_);
  }

  // Copies `inlined`, whose module is the one of this inliner, without dead instructions. It makes
  // no second copies, and keeps the frames.
  InlinedModule Prune(const InlinedModule& inlined) {
    pruned_ = &inlined;
    budget_ = 0;
    now_.resize(old_.num_instructions());
    InlinedModule out = Run();
    out.frames = inlined.frames;
    for (CallFrame& f : out.frames) {
      if (f.value.valid()) f.value = now_[f.value.value];
    }
    return out;
  }

 private:
  // One computation being copied.
  struct Frame {
    CompId old;
    CompId target;
    bool inlined = false;
    bool reducer = false;  // annotations are dropped
    size_t next = 0;
    int frame_id = 0;
    InstrId call;                 // the inlined call, an instruction of the frame below
    std::vector<InstrId> map;     // by position in the old computation
    std::vector<CompId> callees;  // new computations of the instruction at `next`, so far
    std::string prefix;           // prefix of op_name
    const Metadata *last_old = nullptr, *last_new = nullptr;
  };

  // Counts the live instructions of each computation, with those of its fusions, which are copied
  // with it. Also sets the positions.
  void CountLive() {
    position_.resize(old_.num_instructions());
    live_count_.assign(old_.num_computations(), 0);
    for (CompId c : ComputationPostOrder(old_)) {
      const auto& list = old_.comp(c).instructions;
      for (size_t k = 0; k < list.size(); ++k) {
        position_[list[k].value] = static_cast<uint32_t>(k);
        if (!live_.Has(list[k])) {
          all_live_ = false;
          continue;
        }
        ++live_count_[c.value];
        const Instruction& i = old_.instr(list[k]);
        if (i.opcode != Opcode::kFusion) continue;
        for (CompId callee : CalledComputations(old_, i)) {
          live_count_[c.value] += live_count_[callee.value];
        }
      }
    }
  }

  CompId PushComputation(CompId old, bool reducer, std::string prefix, int frame_id) {
    Frame f;
    f.old = old;
    f.target = out_.module.AddComputation(comp_names_.Take(old_.comp(old).name));
    out_.module.mutable_comp(f.target).execution_thread = old_.comp(old).execution_thread;
    f.reducer = reducer;
    f.frame_id = frame_id;
    f.prefix = std::move(prefix);
    f.map.resize(old_.comp(old).instructions.size());
    instances_[old.value] = f.target;
    stack_.push_back(std::move(f));
    return stack_.back().target;
  }

  InstrId Mapped(const Frame& f, InstrId old) const { return f.map[position_[old.value]]; }

  const Metadata* MetadataIn(Frame& f, const Metadata* old) {
    if (old == nullptr || f.prefix.empty()) return old;
    if (old == f.last_old) return f.last_new;
    Metadata value = *old;
    const std::string name = JoinNames(f.prefix, old->op_name);
    value.op_name = name;
    f.last_old = old;
    return f.last_new = InternMetadata(out_.module.context(), value);
  }
  // op_names in a function are relative to its caller, but some writers already include the
  // caller's name.
  static std::string JoinNames(absl::string_view prefix, absl::string_view name) {
    if (name.empty()) return std::string(prefix);
    if (prefix.empty() || absl::StartsWith(name, prefix)) return std::string(name);
    return absl::StrCat(prefix, "/", name);
  }

  InstrId Emit(Frame& f, const Instruction& proto, absl::Span<const InstrId> operands) {
    const InstrId id = out_.module.Add(f.target, proto, operands);
    Instruction& made = out_.module.mutable_instr(id);
    // Pruning makes no second copies, so names stay unique.
    if (pruned_ == nullptr && !made.name.empty()) made.name = names_.Take(made.name);
    made.metadata = MetadataIn(f, made.metadata);
    out_.frame_of.push_back(f.frame_id);
    return id;
  }

  // An identity of `value` with the annotation of `from`, a call or a callee's parameter, which
  // inlining removes. `value` itself if there is no annotation.
  InstrId WithAnnotationOf(Frame& f, const Instruction& from, InstrId value) {
    const bool annotated = from.sharding != nullptr || !Attribute(from, kSdySharding).empty();
    if (!annotated || f.reducer || !from.shape->IsArray()) return value;
    Instruction identity = ShardingCallLike(out_.module.context(), from);
    identity.name = from.name;
    return Emit(f, identity, absl::MakeConstSpan(&value, 1));
  }

  void Step() {
    Frame& f = stack_.back();
    const Computation& comp = old_.comp(f.old);
    if (f.next == comp.instructions.size()) return Finish();
    const InstrId id = comp.instructions[f.next];
    const Instruction& i = old_.instr(id);
    if (!live_.Has(id)) {
      ++f.next;
      return;
    }
    if (f.inlined && i.opcode == Opcode::kParameter) {
      const Frame& caller = stack_[stack_.size() - 2];
      const InstrId value =
          Mapped(caller, old_.operand(f.call, static_cast<int>(i.as<ParameterAttrs>().number)));
      f.map[f.next++] = WithAnnotationOf(f, i, value);
      return;
    }
    if (f.reducer && KindOf(i) == AnnotationKind::kIdentity) {
      f.map[f.next++] = Mapped(f, old_.operand(id, 0));
      return;
    }
    if (i.opcode == Opcode::kCall && inline_calls_ && !IsOnOneDevice(i)) {
      const CompId callee = i.as<CallAttrs>().to_apply;
      const bool first = !inlined_once_.contains(callee);
      if (first || Spend(live_count_[callee.value])) {
        inlined_once_.insert(callee);
        PushInlined(id, callee);
        return;
      }
    }
    if (HasTrait(i.opcode, kCallsComputation)) {
      const auto callees = CalledComputations(old_, i);
      if (f.callees.size() < callees.size()) return NextCallee(i, callees[f.callees.size()]);
    }
    Copy(id, i);
  }

  bool Spend(int64_t instructions) {
    if (budget_ < instructions) return false;
    budget_ -= instructions;
    return true;
  }

  void PushInlined(InstrId call, CompId callee) {
    Frame f;
    f.old = callee;
    f.target = stack_.back().target;
    f.inlined = true;
    f.reducer = stack_.back().reducer;
    f.call = call;
    f.frame_id = static_cast<int>(out_.frames.size());
    out_.frames.push_back({stack_.back().frame_id, {}});
    f.map.resize(old_.comp(callee).instructions.size());
    const Metadata* metadata = old_.instr(call).metadata;
    f.prefix = JoinNames(stack_.back().prefix,
                         metadata == nullptr ? absl::string_view() : metadata->op_name);
    stack_.push_back(std::move(f));
  }

  // Loops, branches and fusions get a copy per caller (a fusion must have a computation of its
  // own); other computations are shared.
  void NextCallee(const Instruction& i, CompId callee) {
    Frame& f = stack_.back();
    const bool own = i.opcode == Opcode::kWhile || i.opcode == Opcode::kConditional;
    const CompId known = instances_[callee.value];
    if (known.valid() && i.opcode != Opcode::kFusion &&
        !(own && Spend(live_count_[callee.value]))) {
      f.callees.push_back(known);
      return;
    }
    const bool structural = own || i.opcode == Opcode::kCall || i.opcode == Opcode::kAsyncStart;
    const CompId made = PushComputation(callee, f.reducer || !structural,
                                        own ? f.prefix : std::string(), f.frame_id);
    // PushComputation may have reallocated the stack, so `f` is invalid.
    stack_[stack_.size() - 2].callees.push_back(made);
  }

  void Copy(InstrId id, const Instruction& i) {
    Frame& f = stack_.back();
    absl::InlinedVector<InstrId, 8> operands;
    for (InstrId operand : old_.operands(i)) operands.push_back(Mapped(f, operand));
    const InstrId made = Emit(f, i, operands);
    if (!f.callees.empty()) {
      out_.module.mutable_instr(made).attrs = WithComputations(out_.module.context(), i, f.callees);
      f.callees.clear();
    }
    if (const RareAttributes* rare = old_.rare(i); rare != nullptr) CopyRare(f, *rare, made);
    f.map[f.next++] = made;
    if (pruned_ != nullptr) {
      out_.frame_of.back() = pruned_->frame_of[id.value];
      now_[id.value] = made;
    }
  }

  void CopyRare(const Frame& f, const RareAttributes& rare, InstrId made) {
    RareAttributes copy = rare;
    copy.control_predecessors.clear();
    for (InstrId before : rare.control_predecessors) {
      const Opcode opcode = old_.instr(before).opcode;
      if (opcode == Opcode::kParameter || opcode == Opcode::kCall) continue;
      if (const InstrId now = Mapped(f, before); now.valid()) {
        copy.control_predecessors.push_back(now);
      }
    }
    out_.module.mutable_rare(made) = std::move(copy);
  }

  void Finish() {
    Frame& f = stack_.back();
    const InstrId root = Mapped(f, old_.comp(f.old).root);
    if (!f.inlined) {
      out_.module.SetRoot(f.target, root);
      stack_.pop_back();
      return;
    }
    out_.frames[f.frame_id].value = root;
    const InstrId call = f.call;
    stack_.pop_back();
    Frame& caller = stack_.back();
    caller.map[caller.next++] = WithAnnotationOf(caller, old_.instr(call), root);
  }

  const Module& old_;
  const bool inline_calls_;
  const Liveness live_;
  InlinedModule out_;
  UniqueNames names_, comp_names_;
  std::vector<uint32_t> position_;   // in its computation
  std::vector<int64_t> live_count_;  // by computation
  std::vector<CompId> instances_;    // by old computation: its latest copy
  absl::flat_hash_set<CompId> inlined_once_;
  std::vector<Frame> stack_;
  int64_t budget_ = 0;
  bool all_live_ = true;
  const InlinedModule* pruned_ = nullptr;
  std::vector<InstrId> now_;  // when pruning: the new instruction, by old instruction
};

}  // namespace

AnnotationKind KindOf(const Instruction& i) {
  if (i.opcode != Opcode::kCustomCall) return AnnotationKind::kNone;
  const KnownTarget target = KnownTargetOf(i);
  if (HasTrait(target, kSaysSharding)) return AnnotationKind::kIdentity;
  if (target == KnownTarget::kShardingGroup) return AnnotationKind::kGroup;
  if (HasTrait(target, kManualBoundaryTarget)) return AnnotationKind::kManualBoundary;
  return AnnotationKind::kNone;
}

InlinedModule InlineCalls(const Module& module, bool inline_calls) {
  InlinedModule out = Inliner(module, inline_calls).Run();
  // Instructions of a callee whose result the caller does not use are dead only after inlining.
  Inliner pruner(out.module, /*inline_calls=*/false);
  return pruner.all_live() ? std::move(out) : pruner.Prune(out);
}

}  // namespace shardcall::import_internal
