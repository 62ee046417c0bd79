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
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/analysis/liveness.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/ir/iota_groups.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {
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
        cloner_(module, &out_.module),
        names_(module, UniqueNames::kInstructions),
        comp_names_(module, UniqueNames::kComputations) {
    CountLive();
    // The first copy of each computation is free; further copies use up the budget.
    budget_ = 3 * static_cast<int64_t>(module.num_instructions()) + 10000;
  }

  InlinedModule Run() {
    cloner_.CopyHeader();
    out_.frame_of.reserve(old_.num_instructions());
    out_.frames.push_back({});
    out_.module.set_entry(PushComputation(old_.entry(), /*reducer=*/false, "", 0));
    while (!stack_.empty()) Step();
    return std::move(out_);
  }

 private:
  // One computation being copied. Computations do not call themselves, so each is in at most one
  // frame at a time, and the cloner has its instructions in the latest copy.
  struct Frame {
    CompId old;
    CompId target;
    bool inlined = false;
    bool reducer = false;  // annotations are dropped
    size_t next = 0;
    int frame_id = 0;
    InstrId call;  // the inlined call, an instruction of the frame below
    // The computations that the instruction at `next` calls, and the new ones so far.
    absl::InlinedVector<CompId, 2> called;
    std::vector<CompId> callees;
    std::string prefix;  // prefix of op_name
    const Metadata *last_old = nullptr, *last_new = nullptr;
  };

  // Counts the live instructions of each computation, with those of its fusions, which are copied
  // with it.
  void CountLive() {
    live_count_.assign(old_.num_computations(), 0);
    for (CompId c : ComputationPostOrder(old_)) {
      for (InstrId id : old_.comp(c).instructions) {
        if (!live_.Has(id)) continue;
        ++live_count_[c.value];
        if (old_.instr(id).opcode != Opcode::kFusion) continue;
        for (CompId callee : CalledComputations(old_, old_.instr(id))) {
          live_count_[c.value] += live_count_[callee.value];
        }
      }
    }
  }

  void Push(Frame f) {
    for (InstrId id : old_.comp(f.old).instructions) cloner_.Set(id, InstrId());
    stack_.push_back(std::move(f));
  }

  CompId PushComputation(CompId old, bool reducer, std::string prefix, int frame_id) {
    Frame f;
    f.old = old;
    f.target = cloner_.AddComputation(old, comp_names_.Take(old_.comp(old).name));
    f.reducer = reducer;
    f.frame_id = frame_id;
    f.prefix = std::move(prefix);
    Push(std::move(f));
    return stack_.back().target;
  }

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
    if (!made.name.empty()) made.name = names_.Take(made.name);
    made.metadata = MetadataIn(f, made.metadata);
    out_.frame_of.push_back(f.frame_id);
    return id;
  }

  // The attributes of a collective, with groups that every reader of the output understands.
  static const Attributes* WithPlainGroups(Context& context, const Instruction& i) {
    const auto& attrs = i.as<CollectiveAttrs>();
    if (attrs.groups.form != ReplicaGroups::Form::kMesh) return i.attrs;
    const absl::optional<ReplicaGroups> groups = WithoutMeshAxes(attrs.groups, context.arena());
    if (!groups.has_value()) return i.attrs;  // the verifier refuses them
    CollectiveAttrs plain = attrs;
    plain.groups = *groups;
    return InternAttributes(context, plain);
  }

  // An identity of `value` with the annotation of `from`, a call or a callee's parameter, which
  // inlining removes. `value` itself if there is no annotation.
  InstrId WithAnnotationOf(Frame& f, const Instruction& from, InstrId value) {
    if (!IsAnnotated(from) || f.reducer || !from.shape->IsArray()) return value;
    Instruction identity = ShardingCallLike(out_.module.context(), from);
    if (identity.sharding != nullptr && !identity.sharding->named.manual.empty()) {
      // The call of a region's body: its manual axes are those of the region.
      if (identity.sharding->named.dims.empty()) return value;
      HloSharding free = *identity.sharding;
      free.named.manual.clear();
      identity.sharding = InternHloSharding(out_.module.context(), std::move(free));
    }
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
      const InstrId value =
          cloner_.now(old_.operand(f.call, static_cast<int>(i.as<ParameterAttrs>().number)));
      cloner_.Set(id, WithAnnotationOf(f, i, value));
      ++f.next;
      return;
    }
    if (f.reducer && KindOf(i) == AnnotationKind::kIdentity) {
      cloner_.Set(id, cloner_.now(old_.operand(id, 0)));
      ++f.next;
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
      if (f.callees.empty()) f.called = CalledComputations(old_, i);
      if (f.callees.size() < f.called.size()) return NextCallee(i, f.called[f.callees.size()]);
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
    const Metadata* metadata = old_.instr(call).metadata;
    f.prefix = JoinNames(stack_.back().prefix,
                         metadata == nullptr ? absl::string_view() : metadata->op_name);
    Push(std::move(f));
  }

  // Loops, branches and fusions get a copy per caller (a fusion must have a computation of its
  // own); other computations are shared.
  void NextCallee(const Instruction& i, CompId callee) {
    Frame& f = stack_.back();
    const bool own = i.opcode == Opcode::kWhile || i.opcode == Opcode::kConditional;
    const CompId known = cloner_.now(callee);  // its latest copy
    if (known.valid() && i.opcode != Opcode::kFusion &&
        !(own && Spend(live_count_[callee.value]))) {
      f.callees.push_back(known);
      return;
    }
    const CompId made = PushComputation(callee, f.reducer || !CarriesRegion(i.opcode),
                                        own ? f.prefix : std::string(), f.frame_id);
    // PushComputation may have reallocated the stack, so `f` is invalid.
    stack_[stack_.size() - 2].callees.push_back(made);
  }

  static bool IsAnnotated(const Instruction& i) {
    return i.sharding != nullptr || !Attribute(i, kSdySharding).empty();
  }

  // The element of a tuple that an inlined call gives back, which `i` takes out of it; invalid for
  // all else. What uses it is so seen to use that value, and the tuple is often dead.
  InstrId ElementOfCall(InstrId id, const Instruction& i) const {
    if (i.opcode != Opcode::kGetTupleElement || IsAnnotated(i)) return InstrId();
    if (old_.instr(old_.operand(id, 0)).opcode == Opcode::kTuple) return InstrId();
    const InstrId tuple = cloner_.now(old_.operand(id, 0));
    const Instruction& made = out_.module.instr(tuple);
    if (made.opcode != Opcode::kTuple || IsAnnotated(made)) return InstrId();
    return out_.module.operand(tuple, static_cast<int>(i.as<TupleIndexAttrs>().index));
  }

  void Copy(InstrId id, const Instruction& i) {
    Frame& f = stack_.back();
    if (const InstrId element = ElementOfCall(id, i); element.valid()) {
      cloner_.Set(id, element);
      ++f.next;
      return;
    }
    const InstrId made = Emit(f, i, cloner_.OperandsOf(id));
    if (!f.callees.empty()) {
      out_.module.mutable_instr(made).attrs = WithComputations(out_.module.context(), i, f.callees);
      f.callees.clear();
    }
    if (HasTrait(KnownTargetOf(i), kManualBoundaryTarget) &&
        HasTrait(KnownTargetOf(i), kOfShardy)) {
      // Inlining removes the call that an exit has its manual axes from.
      out_.module.mutable_instr(made).frontend = WithBoundary(
          out_.module.context(), i.frontend, IsManualEntry(i), ManualBoundaryOf(old_, i));
    }
    if (i.attrs->kind == AttrKind::kCollective) {
      Instruction& collective = out_.module.mutable_instr(made);
      collective.attrs = WithPlainGroups(out_.module.context(), collective);
    }
    cloner_.Set(id, made);
    cloner_.CopyRare(id, made, [&](InstrId before) {
      const Opcode opcode = old_.instr(before).opcode;
      return opcode != Opcode::kParameter && opcode != Opcode::kCall;
    });
    ++f.next;
  }

  void Finish() {
    Frame& f = stack_.back();
    const InstrId root = cloner_.now(old_.comp(f.old).root);
    if (!f.inlined) {
      out_.module.SetRoot(f.target, root);
      stack_.pop_back();
      return;
    }
    // The tuple may be dead once its elements are taken.
    const bool taken = root.valid() && out_.module.instr(root).opcode == Opcode::kTuple &&
                       !out_.module.operands(root).empty();
    out_.frames[f.frame_id].value = taken ? out_.module.operand(root, 0) : root;
    const InstrId call = f.call;
    stack_.pop_back();
    Frame& caller = stack_.back();
    cloner_.Set(call, WithAnnotationOf(caller, old_.instr(call), root));
    ++caller.next;
  }

  const Module& old_;
  const bool inline_calls_;
  const Liveness live_;
  InlinedModule out_;
  ModuleCloner cloner_;
  UniqueNames names_, comp_names_;
  std::vector<int64_t> live_count_;  // by computation
  absl::flat_hash_set<CompId> inlined_once_;
  std::vector<Frame> stack_;
  int64_t budget_ = 0;
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

absl::StatusOr<InlinedModule> InlineCalls(const Module& module, bool inline_calls) {
  InlinedModule inlined = Inliner(module, inline_calls).Run();
  SHARDCALL_RETURN_IF_ERROR(OrderAsCalled(&inlined));
  // Instructions of a callee whose result the caller does not use are dead only after inlining.
  return WithoutDeadCode(std::move(inlined));
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
