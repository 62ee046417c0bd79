// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/shapes/collective_bytes.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

// Which move sends as much. Of other collectives, each part of the operand goes to its device.
MoveKind KindOf(Opcode opcode) {
  const AsyncForms* const forms = FormsStartedBy(opcode);
  const Opcode whole = forms == nullptr ? opcode : forms->whole;
  if (whole == Opcode::kAllGather) return MoveKind::kAllGather;
  return whole == Opcode::kAllReduce ? MoveKind::kAllReduce : MoveKind::kAllToAll;
}

}  // namespace

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
    return CollectiveBytes(KindOf(collective.opcode), bytes,
                           static_cast<double>(std::max<int64_t>(group_size, 1)));
  }
  const auto& attrs = collective.as<PermuteAttrs>();
  int64_t senders = 0;
  for (size_t k = 0; k < attrs.sources.size(); ++k) {
    senders += attrs.sources[k] != attrs.targets[k];
  }
  return CollectiveBytes(MoveKind::kPermute, bytes, /*g=*/2) * static_cast<double>(senders) /
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
  return links.OfGroup(group, PatternOf(KindOf(collective.opcode)));
}

}  // namespace internal
}  // namespace shardcall
