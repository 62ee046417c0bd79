// SPDX-License-Identifier: Apache-2.0
// Shardings and meshes. They are converted to text first, whose parser checks and canonicalises
// them.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/proto/text_values.h"
#include "shardcall/partitioner/ir/proto/value_reader.h"
#include "shardcall/sharding/base/text_cursor.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {
namespace {

enum OpShardingType { kReplicated, kMaximal, kTuple, kOther, kManual, kUnknown, kUnreduced };

void AppendMetadata(const google::protobuf::RepeatedPtrField<hlo_pb::OpMetadata>& metadata,
                    absl::string_view before, bool always_list, std::string* out) {
  if (metadata.empty()) return;
  const bool list = always_list || metadata.size() > 1;
  absl::StrAppend(out, before, list ? "{" : "");
  for (int k = 0; k < metadata.size(); ++k) {
    absl::StrAppend(out, k > 0 ? ", " : "", MetadataText(metadata[k]));
  }
  if (list) out->push_back('}');
}

}  // namespace

bool ValueReader::ReadSharding(const hlo_pb::OpSharding& p, absl::string_view field,
                               const HloSharding** out) {
  const HloSharding*& found = sharding_memo_[p.SerializeAsString()];
  if (found == nullptr) {
    std::string text;
    if (p.type() == kTuple) {
      text = "{";
      for (int k = 0; k < p.tuple_shardings_size(); ++k) {
        std::string one;
        if (!ShardingText(p.tuple_shardings(k), &one)) return false;
        absl::StrAppend(&text, k > 0 ? ", " : "", one);
      }
      text.push_back('}');
    } else if (!ShardingText(p, &text)) {
      return false;
    }
    absl::string_view checked;
    if (!IsUtf8(text)) return Utf8(text, field, &checked);
    absl::StatusOr<HloSharding> sharding = ParseHloSharding(text);
    if (!sharding.ok()) {
      const absl::string_view message = sharding.status().message();
      return faults_.Fail(
          "E016", absl::StrCat("Invalid sharding (", message.substr(0, message.find('\n')), ")"),
          field);
    }
    found = InternHloSharding(context_, *std::move(sharding));
  }
  *out = found;
  return true;
}

bool ValueReader::ShardingText(const hlo_pb::OpSharding& p, std::string* out) {
  if (p.shard_group_type() < 0 || p.shard_group_type() > 1) {
    return faults_.Fail("E016", "Unknown kind of a group of shardings", "sharding.shard_group_type",
                        "as (0) or like (1)", absl::StrCat(p.shard_group_type()));
  }
  if (p.has_named_sharding()) return NamedText(p.named_sharding(), out);
  *out = "{";
  switch (p.type()) {
    case kReplicated: *out += "replicated"; break;
    case kManual: *out += "manual"; break;
    case kUnknown: *out += "unknown"; break;
    case kUnreduced: *out += "unreduced"; break;
    case kMaximal:
      if (p.tile_assignment_devices_size() != 1) {
        return faults_.Fail("E016", "A maximal sharding has one device", "sharding", "1",
                            absl::StrCat(p.tile_assignment_devices_size()));
      }
      absl::StrAppend(out, "maximal device=", p.tile_assignment_devices(0));
      break;
    case kOther: {
      absl::StrAppend(out, "devices=[", absl::StrJoin(p.tile_assignment_dimensions(), ","), "]");
      if (p.iota_reshape_dims_size() > 0) {
        absl::StrAppend(out, "<=[", absl::StrJoin(p.iota_reshape_dims(), ","), "]");
        if (p.iota_reshape_dims_size() > 1) {
          absl::StrAppend(out, "T(", absl::StrJoin(p.iota_transpose_perm(), ","), ")");
        }
      } else {
        absl::StrAppend(out, absl::StrJoin(p.tile_assignment_devices(), ","));
      }
      if (p.replicate_on_last_tile_dim()) *out += " last_tile_dim_replicate";
      if (p.last_tile_dims_size() == 0) break;
      *out += " last_tile_dims={";
      for (int k = 0; k < p.last_tile_dims_size(); ++k) {
        const int type = p.last_tile_dims(k);
        if (type != kManual && type != kUnreduced && type != kReplicated) {
          return faults_.Fail("E016", "Unknown kind of subgroup", "sharding.last_tile_dims",
                              "manual (4), unreduced (6) or replicated (0)", absl::StrCat(type));
        }
        absl::StrAppend(out, k > 0 ? ", " : "",
                        type == kManual      ? "manual"
                        : type == kUnreduced ? "unreduced"
                                             : "replicated");
      }
      out->push_back('}');
      break;
    }
    default:
      return faults_.Fail("E016", "Unknown kind of sharding", "sharding.type",
                          p.type() == kTuple ? "no tuple within a tuple" : "0 to 6",
                          absl::StrCat(p.type()));
  }
  if (p.is_shard_group()) {
    absl::StrAppend(out, p.shard_group_type() == 1 ? " shard_like " : " shard_as ",
                    p.shard_group_id());
  }
  AppendMetadata(p.metadata(), " metadata=", false, out);
  out->push_back('}');
  return true;
}

bool ValueReader::MeshText(const hlo_pb::MeshProto& p, absl::string_view field, std::string* out) {
  *out += "mesh[";
  for (int k = 0; k < p.axes_size(); ++k) {
    absl::string_view checked;
    if (!IsUtf8(p.axes(k).name())) return Utf8(p.axes(k).name(), field, &checked);
    absl::StrAppend(out, k > 0 ? "," : "", QuotedText(p.axes(k).name(), '\''), "=",
                    p.axes(k).size());
  }
  out->push_back(']');
  if (p.device_ids_size() > 0) {
    absl::StrAppend(out, ", device_ids=(", absl::StrJoin(p.device_ids(), ","), ")");
  } else if (p.iota_transform().reshape_dims_size() > 0) {
    const auto& iota = p.iota_transform();
    if (iota.transpose_perm_size() != iota.reshape_dims_size()) {
      return faults_.Fail("E016", "A mesh's transposition does not fit its dimensions", field,
                          absl::StrCat(iota.reshape_dims_size()),
                          absl::StrCat(iota.transpose_perm_size()));
    }
    absl::StrAppend(out, ", device_ids=([", absl::StrJoin(iota.reshape_dims(), ","), "]T(",
                    absl::StrJoin(iota.transpose_perm(), ","), "))");
  }
  return true;
}

bool ValueReader::AxesText(const hlo_pb::MeshProto& mesh,
                           const google::protobuf::RepeatedPtrField<hlo_pb::AxisRefProto>& axes,
                           std::string* out) {
  for (int k = 0; k < axes.size(); ++k) {
    const int64_t index = axes[k].mesh_axis_index();
    if (index < 0 || index >= mesh.axes_size()) {
      return faults_.Fail("E016", "There is no such mesh axis", "mesh_axis_index",
                          absl::StrCat("0 to ", mesh.axes_size() - 1), absl::StrCat(index));
    }
    absl::StrAppend(out, k > 0 ? ", " : "",
                    QuotedText(mesh.axes(static_cast<int>(index)).name(), '\''));
    if (axes[k].has_sub_axis_info()) {
      absl::StrAppend(out, ":(", axes[k].sub_axis_info().pre_size(), ")",
                      axes[k].sub_axis_info().size());
    }
  }
  return true;
}

bool ValueReader::NamedText(const hlo_pb::NamedShardingProto& p, std::string* out) {
  *out = "{";
  const bool lists = p.dim_shardings_size() + p.replicated_axes_size() + p.unreduced_axes_size() +
                         p.manual_axes_size() >
                     0;
  if (p.mesh().axes_size() == 0 && p.mesh().device_ids_size() == 1 && !lists) {
    absl::StrAppend(out, "maximal_mesh[device_id=", p.mesh().device_ids(0), "]");
  } else {
    if (!MeshText(p.mesh(), "sharding.named_sharding.mesh", out)) return false;
    *out += ", [";
    for (int k = 0; k < p.dim_shardings_size(); ++k) {
      const auto& dim = p.dim_shardings(k);
      *out += k > 0 ? ", {" : "{";
      if (!AxesText(p.mesh(), dim.axes(), out)) return false;
      if (!dim.is_closed()) *out += dim.axes_size() > 0 ? ", ?" : "?";
      out->push_back('}');
    }
    out->push_back(']');
    if (p.reduction_op() < 0 || p.reduction_op() > 2) {
      return faults_.Fail("E016", "Unknown reduction", "sharding.named_sharding.reduction_op",
                          "sum (0), max (1) or min (2)", absl::StrCat(p.reduction_op()));
    }
    const auto axes = [&](absl::string_view key, const auto& refs) {
      if (refs.empty()) return true;
      absl::StrAppend(out, ", ", key, "{");
      if (!AxesText(p.mesh(), refs, out)) return false;
      out->push_back('}');
      return true;
    };
    static constexpr absl::string_view kUnreducedKeys[] = {"unreduced=", "unreduced=max",
                                                           "unreduced=min"};
    if (!axes("replicated=", p.replicated_axes()) ||
        !axes(kUnreducedKeys[p.reduction_op()], p.unreduced_axes()) ||
        !axes("manual=", p.manual_axes())) {
      return false;
    }
  }
  AppendMetadata(p.metadata(), ", metadata=", true, out);
  out->push_back('}');
  return true;
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
