// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/shapes/collective_bytes.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/iota_groups.h"

namespace shardcall {
inline namespace internal {
namespace {

struct CollectiveRow {
  Opcode opcode;
  Collective kind;
};
constexpr CollectiveRow kCollectives[] = {
    {Opcode::kAllGather, Collective::kAllGather},
    {Opcode::kAllReduce, Collective::kAllReduce},
    {Opcode::kReduceScatter, Collective::kReduceScatter},
    {Opcode::kAllToAll, Collective::kAllToAll},
    {Opcode::kCollectivePermute, Collective::kPermute},
    {Opcode::kCollectiveBroadcast, Collective::kBroadcast},
    {Opcode::kRaggedAllToAll, Collective::kRaggedAllToAll},
};
static_assert(std::size(kCollectives) == kNumCollectives);

// Of an op that is none, each part of the operand goes to its device.
Collective KindOf(Opcode opcode) { return CollectiveOf(opcode).value_or(Collective::kAllToAll); }

}  // namespace

std::optional<Collective> CollectiveOf(Opcode opcode) {
  const AsyncForms* const forms = FormsStartedBy(opcode);
  const Opcode whole = forms == nullptr ? opcode : forms->whole;
  for (const CollectiveRow& row : kCollectives) {
    if (row.opcode == whole) return row.kind;
  }
  return std::nullopt;
}

double OperandBytes(const Module& module, const Instruction& collective) {
  double bytes = 0;
  for (InstrId id : module.operands(collective)) {
    const Shape* shape = module.instr(id).shape;
    if (shape->IsArray()) bytes += static_cast<double>(shape->byte_size());
  }
  return bytes;
}

double BytesSent(const Module& module, const Instruction& collective, int64_t group_size,
                 int64_t num_devices) {
  const double bytes = OperandBytes(module, collective);
  if (collective.attrs->kind != AttrKind::kPermute) {
    return CollectiveSends(KindOf(collective.opcode), bytes,
                           static_cast<double>(std::max<int64_t>(group_size, 1)));
  }
  const auto& attrs = collective.as<PermuteAttrs>();
  int64_t senders = 0;
  for (size_t k = 0; k < attrs.sources.size(); ++k) {
    senders += attrs.sources[k] != attrs.targets[k];
  }
  return bytes * static_cast<double>(senders) /
         static_cast<double>(std::max<int64_t>(num_devices, 1));
}

Crossing CrossingOf(const Module& module, const Instruction& collective, int64_t num_devices) {
  const Links& links = module.context().Get<Links>();
  if (links.alike()) return {};
  if (collective.attrs->kind == AttrKind::kPermute) {
    const auto& attrs = collective.as<PermuteAttrs>();
    return links.OfPairs(attrs.sources, attrs.targets);
  }
  std::vector<int64_t> group;  // the first one
  if (collective.attrs->kind == AttrKind::kCollective) {
    const auto lists = ListedGroups(collective.as<CollectiveAttrs>().groups, num_devices);
    if (lists.has_value() && !lists->empty()) group = (*lists)[0];
  }
  if (group.empty()) {
    for (int64_t d = 0; d < num_devices; ++d) group.push_back(d);
  }
  return links.OfGroup(group, KindOf(collective.opcode));
}

}  // namespace internal
}  // namespace shardcall
