// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/splice.h"

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/called_computations.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

template <typename T>
const Attributes* Renumbered(Context& context, const Attributes* attrs,
                             absl::flat_hash_map<int64_t, int64_t>* channels,
                             int64_t* next_channel) {
  T now = *static_cast<const T*>(attrs);
  if (now.channel_id < 0) return attrs;
  auto [it, fresh] = channels->try_emplace(now.channel_id, *next_channel);
  if (fresh) ++*next_channel;
  now.channel_id = it->second;
  return InternAttributes(context, now);
}

class Splicing {
 public:
  Splicing(const Module& from, const Metadata* metadata, int64_t* next_channel, Module* to)
      : from_(from),
        metadata_(metadata),
        next_channel_(*next_channel),
        to_(*to),
        now_(from.num_instructions()),
        comps_(from.num_computations()) {}

  // Callees before callers, the entry last and into `computation`.
  SpliceResult Run(absl::Span<const InstrId> operands, CompId computation) {
    for (CompId c : ComputationPostOrder(from_)) {
      if (c == from_.entry()) continue;
      const Computation& comp = from_.comp(c);
      comps_[c.value] = to_.AddComputation(to_.context().Intern(comp.name));
      to_.mutable_comp(comps_[c.value]).execution_thread = comp.execution_thread;
      Copy(c, comps_[c.value]);
      to_.SetRoot(comps_[c.value], now_[comp.root.value]);
    }
    const Computation& entry = from_.comp(from_.entry());
    for (size_t k = 0; k < operands.size(); ++k) now_[entry.parameters[k].value] = operands[k];
    collectives_.clear();
    Copy(from_.entry(), computation);
    return {now_[entry.root.value], std::move(collectives_)};
  }

 private:
  void Copy(CompId comp, CompId to) {
    absl::InlinedVector<InstrId, 8> operands;
    for (InstrId id : from_.comp(comp).instructions) {
      if (now_[id.value].valid()) continue;  // a parameter of the entry
      const Instruction& instr = from_.instr(id);
      Instruction copy = instr;
      copy.name = {};
      copy.sharding = nullptr;
      copy.metadata = metadata_;
      copy.extra = -1;
      copy.attrs = WithNewChannel(
          to_.context(), MapComputations(from_, instr, [&](CompId c) { return comps_[c.value]; }),
          &channels_, &next_channel_);
      operands.clear();
      for (InstrId o : from_.operands(id)) operands.push_back(now_[o.value]);
      const InstrId added = to_.Add(to, copy, operands);
      now_[id.value] = added;
      if (HasTrait(instr.opcode, kCollectiveOp)) collectives_.push_back(added);
      if (const RareAttributes* rare = from_.rare(instr)) {
        for (InstrId p : rare->control_predecessors) {
          const InstrId before = now_[p.value];
          if (before.valid() && to_.instr(before).computation == to) {
            to_.mutable_rare(added).control_predecessors.push_back(before);
          }
        }
      }
    }
  }

  const Module& from_;
  const Metadata* metadata_;
  int64_t& next_channel_;
  Module& to_;
  std::vector<InstrId> now_;
  std::vector<CompId> comps_;
  absl::flat_hash_map<int64_t, int64_t> channels_;
  std::vector<InstrId> collectives_;
};

}  // namespace

const Attributes* WithNewChannel(Context& context, const Attributes* attrs,
                                 absl::flat_hash_map<int64_t, int64_t>* channels,
                                 int64_t* next_channel) {
  switch (attrs->kind) {
    case AttrKind::kCollective:
      return Renumbered<CollectiveAttrs>(context, attrs, channels, next_channel);
    case AttrKind::kPermute:
      return Renumbered<PermuteAttrs>(context, attrs, channels, next_channel);
    case AttrKind::kSendRecv:
      return Renumbered<SendRecvAttrs>(context, attrs, channels, next_channel);
    default: return attrs;
  }
}

absl::StatusOr<SpliceResult> Splice(const Module& from, absl::Span<const InstrId> operands,
                                    const Metadata* metadata, int64_t* next_channel, Module* to,
                                    CompId computation) {
  const std::vector<InstrId>& parameters = from.comp(from.entry()).parameters;
  bool fits = parameters.size() == operands.size();
  std::string have, given;
  for (InstrId p : parameters) absl::StrAppend(&have, " ", from.instr(p).shape->ToString(false));
  for (size_t k = 0; k < operands.size(); ++k) {
    const Shape* shape = to->instr(operands[k]).shape;
    absl::StrAppend(&given, " ", shape->ToString(false));
    fits = fits && from.instr(parameters[k]).shape->bare() == shape->bare();
  }
  if (!fits) {
    return ToStatus({.code = "E021",
                     .message = "the parameters of the program do not fit the values given",
                     .expected = absl::StrCat("parameters", given),
                     .found = absl::StrCat("parameters", have),
                     .fix = "give one parameter per value, of its local shape"});
  }
  return Splicing(from, metadata, next_channel, to).Run(operands, computation);
}

}  // namespace shardcall
