// SPDX-License-Identifier: Apache-2.0
// Custom calls and collectives.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/bindings/xla/stablehlo_writer.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/ir/output_aliasing.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::stablehlo {
namespace {

// Rows of equal length as dense elements.
std::string Dense(const std::vector<std::vector<int64_t>>& rows) {
  const size_t columns = rows.empty() ? 0 : rows[0].size();
  std::vector<std::string> parts;
  for (const auto& row : rows) parts.push_back(List(row));
  const std::string type = absl::StrCat("tensor<", rows.size(), "x", columns, "xi64>");
  if (rows.empty() || columns == 0) return absl::StrCat("dense<> : ", type);
  return absl::StrCat("dense<[", absl::StrJoin(parts, ", "), "]> : ", type);
}

}  // namespace

absl::Status Writer::WriteCustomCall(InstrId id, int) {
  const Instruction& i = m_.instr(id);
  const auto& a = i.as<CustomCallAttrs>();
  if (!a.called_computations.empty() || a.literal != nullptr || a.has_window) {
    return Cannot(id, "a custom call with computations, a literal or a window");
  }
  const auto layout = [](const Shape* s) {
    std::vector<int64_t> order(s->minor_to_major().begin(), s->minor_to_major().end());
    if (static_cast<int>(order.size()) != s->rank()) {
      order.resize(s->rank());
      for (int d = 0; d < s->rank(); ++d) order[d] = s->rank() - 1 - d;
    }
    const std::string type = absl::StrCat(" : tensor<", order.size(), "xindex>");
    return order.empty() ? absl::StrCat("dense<>", type)
                         : absl::StrCat("dense<", List(order), ">", type);
  };
  std::vector<std::string> operands, results, aliases;
  for (size_t k = 0; k < m_.operands(id).size(); ++k) {
    const Shape* s = a.operand_layouts.empty() ? m_.instr(m_.operand(id, static_cast<int>(k))).shape
                                               : a.operand_layouts[k];
    for (int l = 0; l < s->num_leaves(); ++l) operands.push_back(layout(s->leaf(l)));
  }
  for (int l = 0; l < i.shape->num_leaves(); ++l) results.push_back(layout(i.shape->leaf(l)));
  std::vector<OutputAlias> parsed;
  if (!ParseOutputAliasing(a.output_to_operand_aliasing, &parsed)) {
    return Cannot(id, "aliases that do not parse");
  }
  for (const OutputAlias& alias : parsed) {
    aliases.push_back(absl::StrCat(
        "#stablehlo.output_operand_alias<output_tuple_indices = ", List(alias.output),
        ", operand_index = ", alias.operand, ", operand_tuple_indices = ", List(alias.inner), ">"));
  }
  const bool typed = a.api_version == 4;
  const std::string config = typed
                                 ? (i.backend_config.empty() ? "{}" : std::string(i.backend_config))
                                 : MlirString(i.backend_config);
  return Emit(id, "stablehlo.custom_call",
              absl::StrCat("call_target_name = ", MlirString(a.target),
                           ", has_side_effect = ", a.has_side_effect ? "true" : "false",
                           ", backend_config = ", config, ", api_version = ", a.api_version,
                           " : i32, operand_layouts = [", absl::StrJoin(operands, ", "),
                           "], result_layouts = [", absl::StrJoin(results, ", "), "]",
                           aliases.empty() ? ""
                                           : absl::StrCat(", output_operand_aliases = [",
                                                          absl::StrJoin(aliases, ", "), "]")));
}

absl::StatusOr<std::string> Writer::Groups(InstrId id, const CollectiveAttrs& attrs) const {
  const auto rows = ListedGroups(attrs.groups, m_.header.num_partitions);
  if (!rows.has_value()) return Cannot(id, "groups that name mesh axes");
  for (const auto& row : *rows) {
    if (row.size() != rows->front().size()) return Cannot(id, "groups of several sizes");
  }
  return absl::StrCat("replica_groups = ", Dense(*rows));
}

absl::Status Writer::WriteCollective(InstrId id, int depth) {
  const Instruction& i = m_.instr(id);
  const auto& a = i.as<CollectiveAttrs>();
  SHARDCALL_ASSIGN_OR_RETURN(std::string attributes, Groups(id, a));
  // Channel type 1: from device to device.
  absl::StrAppend(&attributes, ", channel_handle = #stablehlo.channel_handle<handle = ",
                  std::max<int64_t>(a.channel_id, 1), ", type = 1>");
  if (i.opcode != Opcode::kAllToAll) {
    if (!a.use_global_device_ids) return Cannot(id, "a collective over replicas");
    absl::StrAppend(&attributes, ", use_global_device_ids");
  }
  std::string region;
  if (a.to_apply.valid()) {
    SHARDCALL_ASSIGN_OR_RETURN(region, Region(id, a.to_apply, depth));
  }
  const bool one = m_.operands(id).size() == 1 && i.shape->IsArray();
  if (i.opcode == Opcode::kAllReduce) return Emit(id, "stablehlo.all_reduce", attributes, region);
  if (!one) return Cannot(id, "a collective of several arrays");
  if (i.opcode == Opcode::kAllGather) {
    absl::StrAppend(&attributes, ", all_gather_dim = ", a.dimension, " : i64");
    return Emit(id, "stablehlo.all_gather", attributes);
  }
  if (i.opcode == Opcode::kReduceScatter) {
    absl::StrAppend(&attributes, ", scatter_dimension = ", a.dimension, " : i64");
    return Emit(id, "stablehlo.reduce_scatter", attributes, region);
  }
  SHARDCALL_CHECK(i.opcode == Opcode::kAllToAll);
  const int64_t n = a.groups.form == ReplicaGroups::Form::kIota ? a.groups.group_size
                    : a.groups.form == ReplicaGroups::Form::kAll
                        ? m_.header.num_partitions
                        : static_cast<int64_t>(a.groups.lists[0].size());
  absl::StrAppend(&attributes, ", split_dimension = ", a.dimension,
                  " : i64, concat_dimension = ", a.dimension, " : i64, split_count = ", n,
                  " : i64");
  return Emit(id, "stablehlo.all_to_all", attributes);
}

absl::Status Writer::WritePermute(InstrId id, int) {
  const auto& a = m_.instr(id).as<PermuteAttrs>();
  if (m_.operands(id).size() != 1) return Cannot(id, "a collective-permute of parts");
  std::vector<std::vector<int64_t>> pairs;
  for (size_t k = 0; k < a.sources.size(); ++k) pairs.push_back({a.sources[k], a.targets[k]});
  std::string text = Dense(pairs);
  if (pairs.empty()) text = "dense<> : tensor<0x2xi64>";
  return Emit(id, "stablehlo.collective_permute",
              absl::StrCat("source_target_pairs = ", text,
                           ", channel_handle = #stablehlo.channel_handle<handle = ",
                           std::max<int64_t>(a.channel_id, 1), ", type = 1>"));
}

}  // namespace shardcall::stablehlo
