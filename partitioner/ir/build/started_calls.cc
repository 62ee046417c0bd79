// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/started_calls.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/build/async_pair.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/ir/build/moved_blocks.h"
#include "shardcall/partitioner/ir/build/started_config.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// The collective that a call starts; null for other instructions.
const StartedCollective* StartedBy(const Instruction& i) {
  if (i.opcode != Opcode::kCustomCall || i.frontend == nullptr ||
      i.frontend->Find(kAsyncCollectiveConfig).data() == nullptr) {
    return nullptr;
  }
  return FindStarted(i.as<CustomCallAttrs>().target, kStartSuffix);
}

const StartedCollective* DoneBy(const Instruction& i) {
  if (i.opcode != Opcode::kCustomCall || i.operand_count != 1) return nullptr;
  return FindStarted(i.as<CustomCallAttrs>().target, kDoneSuffix);
}

const FrontendAttributes* WithoutConfig(Context& context, const FrontendAttributes& attributes) {
  std::vector<std::pair<absl::string_view, absl::string_view>> kept;
  for (const auto& entry : attributes.entries) {
    if (entry.first != kAsyncCollectiveConfig) kept.push_back(entry);
  }
  return kept.empty() ? nullptr : InternFrontendAttributes(context, kept);
}

class OpsWriter {
 public:
  explicit OpsWriter(const Module& old)
      : old_(old),
        new_(old.shared_context()),
        context_(new_.context()),
        cloner_(old, &new_),
        ends_(old.num_instructions()),
        end_(old.num_instructions()),
        others_(old.num_instructions()) {}

  absl::StatusOr<Module> Run() && {
    FindUsers();
    cloner_.CopyHeader();
    for (CompId c : ComputationPostOrder(old_)) {
      cloner_.AddComputation(c);
      for (InstrId id : old_.comp(c).instructions) {
        const Instruction& i = old_.instr(id);
        if (const StartedCollective* const of = StartedBy(i)) {
          SHARDCALL_RETURN_IF_ERROR(AddStart(id, *of));
        } else if (const InstrId start = StartOf(id); start.valid()) {
          SHARDCALL_RETURN_IF_ERROR(AddDone(id, start));
        } else {
          cloner_.Clone(id);
        }
      }
      cloner_.SetRoot(c);
    }
    new_.set_entry(cloner_.now(old_.entry()));
    return std::move(new_);
  }

 private:
  struct Call {
    const StartedCollective* of;
    StartedConfig config;
    const Shape *from, *to;  // of the operand and the result
  };

  static absl::Status Wrong(const Instruction& i, std::string expected, std::string found) {
    return ToStatus({.code = "E165",
                     .message = absl::StrCat("a call of ", i.as<CustomCallAttrs>().target,
                                             " does not fit what it says it starts"),
                     .where = std::string(i.name),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .fix = "Write it as JAX does"});
  }

  // Calls that only name an order do not use a value.
  void FindUsers() {
    for (int k = 0; k < old_.num_instructions(); ++k) {
      const InstrId id(k);
      const Instruction& i = old_.instr(id);
      if (HasTrait(KnownTargetOf(i), kOrders)) continue;
      const StartedCollective* const done = DoneBy(i);
      for (InstrId o : old_.operands(id)) {
        if (done != nullptr && StartedBy(old_.instr(o)) == done) {
          ++ends_[o.value];
          end_[o.value] = id;
        } else {
          ++others_[o.value];
        }
      }
    }
    for (int c = 0; c < old_.num_computations(); ++c) ++others_[old_.comp(CompId(c)).root.value];
  }
  bool IsPair(InstrId start) const {
    return ends_[start.value] == 1 && others_[start.value] == 0 &&
           old_.instr(start).shape->bare() == old_.instr(end_[start.value]).shape->bare();
  }
  // Of a done; invalid for other instructions. A done behind a barrier names the value there.
  InstrId StartOf(InstrId id) const {
    return DoneBy(old_.instr(id)) == nullptr ? InstrId() : old_.operand(id, 0);
  }

  absl::StatusOr<Call> Read(InstrId id, const StartedCollective& of) const {
    const Instruction& i = old_.instr(id);
    if (i.operand_count != 1 || !old_.instr(old_.operand(id, 0)).shape->IsArray() ||
        !i.shape->IsArray()) {
      return Wrong(
          i, "one array as operand and one as result",
          absl::StrCat(i.operand_count, " operands and the result ", i.shape->ToString(false)));
    }
    Call call = {&of, {}, old_.instr(old_.operand(id, 0)).shape, i.shape};
    SHARDCALL_ASSIGN_OR_RETURN(
        call.config, ParseStartedConfig(of, i.frontend->Find(kAsyncCollectiveConfig), i.name));
    const size_t reducers = of.op == Opcode::kAllReduce || of.op == Opcode::kReduceScatter ? 1 : 0;
    if (CalledComputations(old_, i).size() != reducers) {
      return Wrong(i, absl::StrCat(reducers, " called computations"),
                   absl::StrCat(CalledComputations(old_, i).size()));
    }
    if (of.op == Opcode::kAllToAll) SHARDCALL_RETURN_IF_ERROR(CheckAllToAll(i, call));
    return call;
  }

  static absl::Status CheckAllToAll(const Instruction& i, const Call& call) {
    const StartedConfig& c = call.config;
    const int rank = call.from->rank();
    const auto wrong = [&](const char* expected) {
      return Wrong(i, expected, std::string(i.frontend->Find(kAsyncCollectiveConfig)));
    };
    if (c.dimension >= rank || c.concat_dimension >= rank || c.split_count < 1 ||
        call.from->dim(static_cast<int>(c.dimension)) % c.split_count != 0) {
      return wrong("dimensions of the operand, of which split_count divides the one that is split");
    }
    for (const std::vector<int64_t>& group : c.lists) {
      if (static_cast<int64_t>(group.size()) != c.split_count) {
        return wrong("as many devices in each group as split_count says");
      }
    }
    std::vector<int64_t> dims(call.from->dims().begin(), call.from->dims().end());
    dims[c.dimension] /= c.split_count;
    dims[c.concat_dimension] *= c.split_count;
    if (absl::MakeConstSpan(dims) != call.to->dims()) {
      return Wrong(i, absl::StrCat("a result of dimensions ", absl::StrJoin(dims, ",")),
                   call.to->ToString(false));
    }
    return absl::OkStatus();
  }

  const Attributes* AttributesOf(InstrId id, const Call& call) const {
    const StartedConfig& c = call.config;
    if (call.of->op == Opcode::kCollectivePermute) {
      PermuteAttrs attrs;
      attrs.channel_id = c.channel_id;
      std::vector<int64_t> sources, targets;
      for (const std::vector<int64_t>& pair : c.lists) {
        sources.push_back(pair[0]);
        targets.push_back(pair[1]);
      }
      attrs.sources = sources;
      attrs.targets = targets;
      return InternAttributes(context_, attrs);
    }
    CollectiveAttrs attrs;
    attrs.channel_id = c.channel_id;
    attrs.dimension = c.dimension;
    attrs.use_global_device_ids = c.use_global_device_ids;
    const std::vector<Ints> lists(c.lists.begin(), c.lists.end());
    if (!lists.empty()) attrs.groups.form = ReplicaGroups::Form::kLists;
    attrs.groups.lists = lists;
    const auto called = CalledComputations(old_, old_.instr(id));
    if (!called.empty()) attrs.to_apply = cloner_.now(called[0]);
    return InternAttributes(context_, attrs);
  }

  absl::Status AddStart(InstrId id, const StartedCollective& of) {
    SHARDCALL_ASSIGN_OR_RETURN(const Call call, Read(id, of));
    const CompId comp = cloner_.now(old_.instr(id).computation);
    const InstrId x = cloner_.now(old_.operand(id, 0));
    Instruction copy = cloner_.CopyOf(id);
    copy.frontend = WithoutConfig(context_, *copy.frontend);
    copy.opcode = of.op;
    copy.attrs = AttributesOf(id, call);
    // HLO's all-to-all has the shape of its operand.
    if (of.op == Opcode::kAllToAll) copy.shape = call.from;
    if (!IsPair(id)) {
      const InstrId made = cloner_.Add(id, copy, {x}, comp);
      cloner_.CopyRare(id, made);
      cloner_.Set(id, Moved(call, made));
      return absl::OkStatus();
    }
    copy = AsyncStartOf(copy, {call.from}, &new_);
    cloner_.CopyRare(id, cloner_.Add(id, copy, {x}, comp));
    calls_.emplace(id, call);
    return absl::OkStatus();
  }

  absl::Status AddDone(InstrId id, InstrId start) {
    const auto found = calls_.find(start);
    if (found == calls_.end()) {  // it is done already
      const Instruction& i = old_.instr(id);
      const Shape* const given = new_.instr(cloner_.now(start)).shape;
      if (given->bare() != i.shape->bare()) {
        return Wrong(i, given->ToString(false), i.shape->ToString(false));
      }
      cloner_.Set(id, cloner_.now(start));
      return absl::OkStatus();
    }
    const Call& call = found->second;
    const InstrId begun = cloner_.now(start);
    Instruction copy = cloner_.CopyOf(id);
    const Shape* const shape = call.of->op == Opcode::kAllToAll ? call.from : copy.shape;
    const Instruction done = AsyncDoneOf(new_.instr(begun), shape);
    copy.opcode = done.opcode;
    copy.attrs = done.attrs;
    copy.shape = shape;
    const InstrId made = cloner_.Add(id, copy, {begun}, cloner_.now(old_.instr(id).computation));
    cloner_.CopyRare(id, made);
    cloner_.Set(id, Moved(call, made));
    return absl::OkStatus();
  }

  // What an all-to-all gives, from what HLO's gives.
  InstrId Moved(const Call& call, InstrId exchanged) {
    const StartedConfig& c = call.config;
    if (call.of->op != Opcode::kAllToAll || c.dimension == c.concat_dimension) return exchanged;
    const MovedBlocks blocks = MoveBlocks(call.from->dims(), static_cast<int>(c.dimension),
                                          static_cast<int>(c.concat_dimension), c.split_count);
    std::vector<int64_t> moved;
    for (int64_t d : blocks.permutation) moved.push_back(blocks.dims[d]);
    const auto array = [&](absl::Span<const int64_t> sizes) {
      return context_.WithDefaultLayout(context_.MakeArray(call.from->element_type(), sizes));
    };
    const auto add = [&](Opcode op, const Shape* shape, InstrId x, const Attributes* attrs) {
      Instruction i;
      i.opcode = op;
      i.shape = shape;
      i.attrs = attrs;
      i.metadata = new_.instr(exchanged).metadata;
      return new_.Add(new_.instr(exchanged).computation, i, {x});
    };
    const Attributes* const reshape = InternAttributes(context_, ReshapeAttrs());
    DimensionsAttrs transpose;
    transpose.dimensions = blocks.permutation;
    InstrId x = add(Opcode::kReshape, array(blocks.dims), exchanged, reshape);
    x = add(Opcode::kTranspose, array(moved), x, InternAttributes(context_, transpose));
    return add(Opcode::kReshape, call.to, x, reshape);
  }

  const Module& old_;
  Module new_;
  Context& context_;
  ModuleCloner cloner_;
  std::vector<int> ends_;                     // per instruction: the dones that use it
  std::vector<InstrId> end_;                  // the last of them
  std::vector<int> others_;                   // its other uses
  absl::flat_hash_map<InstrId, Call> calls_;  // of the starts of pairs
};

}  // namespace

absl::StatusOr<Module> WithStartedOps(Module module) {
  for (int k = 0; k < module.num_instructions(); ++k) {
    if (StartedBy(module.instr(InstrId(k))) != nullptr) return OpsWriter(module).Run();
  }
  return module;
}

}  // namespace internal
}  // namespace shardcall
