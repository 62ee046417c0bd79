// SPDX-License-Identifier: Apache-2.0
// Writes custom calls, collectives and random bits.
#include <algorithm>
#include <string>
#include <vector>

#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/ir/stablehlo/write/module_writer.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

// Minor to major; row-major if the shape has no layout. None for tokens.
uint32_t Layout(ModuleWriter& w, const Shape* s) {
  std::vector<int64_t> order(s->minor_to_major().begin(), s->minor_to_major().end());
  if (s->IsArray() && static_cast<int>(order.size()) != s->rank()) {
    order.resize(static_cast<size_t>(s->rank()));
    for (int d = 0; d < s->rank(); ++d) order[static_cast<size_t>(d)] = s->rank() - 1 - d;
  }
  return w.pool().Index(order);
}

absl::Status AddLayouts(ModuleWriter& w, InstrId id, const CustomCallAttrs& a, Attrs* attributes) {
  const Module& m = w.module();
  std::vector<uint32_t> operands, results;
  const auto add = [&](const Shape* shape, std::vector<uint32_t>* to) {
    for (int k = 0; k < shape->num_leaves(); ++k) {
      if (!shape->leaf(k)->layout_suffix().empty()) return false;
      to->push_back(Layout(w, shape->leaf(k)));
    }
    return true;
  };
  bool plain = add(m.instr(id).shape, &results);
  for (size_t k = 0; k < m.operands(id).size(); ++k) {
    const Shape* s = a.operand_layouts.empty() ? m.instr(m.operand(id, static_cast<int>(k))).shape
                                               : a.operand_layouts[k];
    plain = add(s, &operands) && plain;
  }
  if (!plain) return w.Cannot(id, "a layout with tiles or a memory space");
  attributes->emplace_back("operand_layouts", w.pool().Array(operands));
  attributes->emplace_back("result_layouts", w.pool().Array(results));
  return absl::OkStatus();
}

absl::Status AddAliases(ModuleWriter& w, InstrId id, const CustomCallAttrs& a, Attrs* attributes) {
  std::vector<OutputAlias> parsed;
  if (!ParseOutputAliasing(a.output_to_operand_aliasing, &parsed)) {
    return w.Cannot(id, "aliases that do not parse");
  }
  if (parsed.empty()) return absl::OkStatus();
  std::vector<uint32_t> aliases;
  for (const OutputAlias& alias : parsed) {
    BytecodeSink s(codes::kOutputOperandAlias);
    s.SignedList(alias.output);
    s.SignedVarInt(alias.operand);
    s.SignedList(alias.inner);
    aliases.push_back(w.pool().Stablehlo(s));
  }
  attributes->emplace_back("output_operand_aliases", w.pool().Array(aliases));
  return absl::OkStatus();
}

absl::Status WriteCustomCall(ModuleWriter& w, InstrId id) {
  const Instruction& i = w.module().instr(id);
  const auto& a = i.as<CustomCallAttrs>();
  if (a.literal != nullptr || a.has_window || !a.schedule.empty() || !a.padding_type.empty() ||
      !a.dim_labels.empty() || !a.operand_precision.empty()) {
    return w.Cannot(id, "a custom call with a literal, a window, a precision or a schedule");
  }
  absl::string_view target = a.target, config = i.backend_config;
  int64_t api_version = a.api_version;
  if (const auto it = w.options().typed_calls.find(id.value); it != w.options().typed_calls.end()) {
    target = it->second;
    config = "";
    api_version = kTypedFfiCall;
  }
  Attrs attributes = {{"call_target_name", w.pool().String(target)},
                      {"has_side_effect", w.pool().Bool(a.has_side_effect)},
                      {"api_version", w.pool().I32(api_version)}};
  // The typed interface has a dictionary, which HLO holds as MLIR prints it.
  attributes.emplace_back("backend_config", api_version != kTypedFfiCall
                                                ? w.pool().String(config)
                                                : w.pool().Text(config.empty() ? "{}" : config));
  if (a.has_layout_constraints || w.options().all_call_layouts) {
    SHARDCALL_RETURN_IF_ERROR(AddLayouts(w, id, a, &attributes));
  }
  SHARDCALL_RETURN_IF_ERROR(AddAliases(w, id, a, &attributes));
  std::vector<uint32_t> called;
  for (CompId comp : a.called_computations) called.push_back(w.FunctionOf(comp));
  if (!called.empty()) attributes.emplace_back("called_computations", w.pool().Array(called));
  return w.Emit(id, std::move(attributes));
}

// 0: none. The type of a channel is 1 for one between devices, and 0 if it follows from the op.
uint32_t Channel(ModuleWriter& w, int64_t channel_id) {
  BytecodeSink s(codes::kChannelHandle);
  s.SignedVarInt(std::max<int64_t>(channel_id, 0));
  s.SignedVarInt(channel_id > 0 ? 1 : 0);
  return w.pool().Stablehlo(s);
}

absl::Status WriteCollective(ModuleWriter& w, InstrId id, absl::string_view dimension) {
  const Module& m = w.module();
  const auto& a = m.instr(id).as<CollectiveAttrs>();
  const auto rows = ListedGroups(a.groups, m.header.num_partitions);
  if (!rows.has_value()) return w.Cannot(id, "groups of an unknown form");
  std::vector<int64_t> ids;
  const size_t size = rows->empty() ? 0 : rows->front().size();
  for (const auto& row : *rows) {
    if (row.size() != size) return w.Cannot(id, "groups of several sizes");
    ids.insert(ids.end(), row.begin(), row.end());
  }
  const bool one = m.instr(id).shape->IsArray() && m.operands(id).size() == 1;
  if (!one && m.instr(id).opcode != Opcode::kAllReduce) {
    return w.Cannot(id, "a collective of several arrays");
  }
  if (a.constrain_layout || a.has_dynamic_root > 0) {
    return w.Cannot(id, "a collective with a layout, or with a root that is computed");
  }
  Attrs attributes = {{"replica_groups", w.pool().Matrix(ids, static_cast<int64_t>(size))}};
  if (a.channel_id >= 0) attributes.emplace_back("channel_handle", Channel(w, a.channel_id));
  if (a.use_global_device_ids) attributes.emplace_back("use_global_device_ids", w.pool().Unit());
  if (!dimension.empty()) attributes.emplace_back(dimension, w.pool().I64(a.dimension));
  if (m.instr(id).opcode == Opcode::kAllToAll) {
    attributes.emplace_back("concat_dimension", w.pool().I64(a.dimension));
    attributes.emplace_back("split_count", w.pool().I64(static_cast<int64_t>(size)));
  }
  std::vector<WrittenRegion> regions;
  if (a.to_apply.valid()) {
    SHARDCALL_ASSIGN_OR_RETURN(regions.emplace_back(), w.RegionOf(id, a.to_apply));
  }
  return w.Emit(id, std::move(attributes), std::move(regions));
}
absl::Status WriteAllReduce(ModuleWriter& w, InstrId id) { return WriteCollective(w, id, ""); }
absl::Status WriteReduceScatter(ModuleWriter& w, InstrId id) {
  return WriteCollective(w, id, "scatter_dimension");
}
absl::Status WriteAllGather(ModuleWriter& w, InstrId id) {
  return WriteCollective(w, id, "all_gather_dim");
}
absl::Status WriteAllToAll(ModuleWriter& w, InstrId id) {
  if (w.module().instr(id).as<CollectiveAttrs>().dimension < 0) {
    return w.Cannot(id, "an all-to-all of tuples");
  }
  return WriteCollective(w, id, "split_dimension");
}
absl::Status WriteCollectiveBroadcast(ModuleWriter& w, InstrId id) {
  return WriteCollective(w, id, "");
}

absl::Status WritePermute(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<PermuteAttrs>();
  if (w.module().operands(id).size() != 1) return w.Cannot(id, "a collective-permute of parts");
  std::vector<int64_t> pairs;
  for (size_t k = 0; k < a.sources.size(); ++k) {
    pairs.push_back(a.sources[k]);
    pairs.push_back(a.targets[k]);
  }
  Attrs attributes = {{"source_target_pairs", w.pool().Matrix(pairs, 2)}};
  if (a.channel_id >= 0) attributes.emplace_back("channel_handle", Channel(w, a.channel_id));
  return w.Emit(id, std::move(attributes));
}

absl::Status WriteRngBits(ModuleWriter& w, InstrId id) {
  const Instruction& i = w.module().instr(id);
  const int algorithm =
      IndexOf(i.as<RngBitGeneratorAttrs>().algorithm, words::kRngAlgorithms.words);
  if (algorithm < 0 || !i.shape->IsTuple()) {
    return w.Cannot(id, "random bits by an algorithm that StableHLO lacks");
  }
  return w.Emit(id, {{"rng_algorithm",
                      w.pool().Enum(codes::kRngAlgorithm, static_cast<uint64_t>(algorithm))}});
}

constexpr WriteRow kRows[] = {
    {Opcode::kCustomCall, WriteCustomCall},
    {Opcode::kAllReduce, WriteAllReduce},
    {Opcode::kReduceScatter, WriteReduceScatter},
    {Opcode::kAllGather, WriteAllGather},
    {Opcode::kAllToAll, WriteAllToAll},
    {Opcode::kCollectiveBroadcast, WriteCollectiveBroadcast},
    {Opcode::kCollectivePermute, WritePermute},
    {Opcode::kRngBitGenerator, WriteRngBits},
};

}  // namespace

absl::Span<const WriteRow> WriteCallRows() { return kRows; }

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
