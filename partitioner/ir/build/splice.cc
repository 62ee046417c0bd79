// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/splice.h"

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/attribute_records.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
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
        cloner_(from, to) {}

  // Copies callees before callers. The entry comes last, and is copied into `computation`.
  SpliceResult Run(absl::Span<const InstrId> operands, CompId computation) {
    for (CompId c : ComputationPostOrder(from_)) {
      if (c == from_.entry()) continue;
      Copy(c, cloner_.AddComputation(c, to_.context().Intern(from_.comp(c).name)));
      cloner_.SetRoot(c);
    }
    const Computation& entry = from_.comp(from_.entry());
    for (size_t k = 0; k < operands.size(); ++k) cloner_.Set(entry.parameters[k], operands[k]);
    collectives_.clear();
    Copy(from_.entry(), computation);
    return {cloner_.now(entry.root), std::move(collectives_)};
  }

 private:
  void Copy(CompId comp, CompId to) {
    for (InstrId id : from_.comp(comp).instructions) {
      if (cloner_.now(id).valid()) continue;  // a parameter of the entry
      Instruction copy = cloner_.CopyOf(id);
      copy.name = {};
      copy.sharding = nullptr;
      copy.metadata = metadata_;
      copy.attrs = WithNewChannel(to_.context(), copy.attrs, &channels_, &next_channel_);
      const InstrId added = cloner_.Add(id, copy, cloner_.OperandsOf(id), to);
      cloner_.CopyOrder(id, added);
      if (HasTrait(copy.opcode, kCollectiveOp)) collectives_.push_back(added);
    }
  }

  const Module& from_;
  const Metadata* metadata_;
  int64_t& next_channel_;
  Module& to_;
  ModuleCloner cloner_;
  absl::flat_hash_map<int64_t, int64_t> channels_;
  std::vector<InstrId> collectives_;
};

}  // namespace

const Attributes* WithNewChannel(Context& context, const Attributes* attrs,
                                 absl::flat_hash_map<int64_t, int64_t>* channels,
                                 int64_t* next_channel) {
  return ForRecordType(attrs->kind, [&](auto type) -> const Attributes* {
    using Record = typename decltype(type)::Record;
    if constexpr (requires(Record r) { r.channel_id; }) {
      return Renumbered<Record>(context, attrs, channels, next_channel);
    } else {
      return attrs;
    }
  });
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

}  // namespace internal
}  // namespace shardcall
