// SPDX-License-Identifier: Apache-2.0
// The fields of each kind of instruction: fields with a row in the schema, and records with fields
// that have none.
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/compare_order.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/ir/proto/message_schema.h"
#include "shardcall/partitioner/ir/proto/text_values.h"
#include "shardcall/partitioner/ir/proto/value_reader.h"
#include "shardcall/partitioner/ir/proto/writer.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {
namespace {

void Set(Ints from, Repeated* to) { to->Add(from.begin(), from.end()); }
std::string Str(Text text) { return std::string(text); }

}  // namespace

bool Writer::Write(const DotAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p) {
  hlo_pb::DotDimensionNumbers* d;
  if (i.opcode == Opcode::kRaggedDot) {
    hlo_pb::RaggedDotDimensionNumbers* ragged = p->mutable_ragged_dot_dimension_numbers();
    Set(a.lhs_ragged, ragged->mutable_lhs_ragged_dimensions());
    Set(a.rhs_group, ragged->mutable_rhs_group_dimensions());
    d = ragged->mutable_dot_dimension_numbers();
  } else {
    d = p->mutable_dot_dimension_numbers();
  }
  Set(a.lhs_batch, d->mutable_lhs_batch_dimensions());
  Set(a.lhs_contracting, d->mutable_lhs_contracting_dimensions());
  Set(a.rhs_batch, d->mutable_rhs_batch_dimensions());
  Set(a.rhs_contracting, d->mutable_rhs_contracting_dimensions());
  return WritePrecision(a.operand_precision, a.algorithm, 2, p->mutable_precision_config());
}

bool Writer::Write(const ConvolutionAttrs& a, const Instruction&, hlo_pb::HloInstructionProto* p) {
  WriteWindow(a.window, p->mutable_window());
  p->set_feature_group_count(a.feature_group_count);
  p->set_batch_group_count(a.batch_group_count);
  const int kind = IndexOf(a.convolution_kind, words::kConvolutionKinds.words);
  if (kind < 0) {
    return Fail("The kind of convolution has no binary form", a.convolution_kind,
                "name fprop, dgrad or wgrad");
  }
  p->set_conv_kind(kind);
  hlo_pb::SparsityConfig* sparsity = p->mutable_sparsity_config();
  if (!a.sparsity_config.empty() && !ParseSparsity(a.sparsity_config, sparsity)) {
    return Fail("The sparsity has no binary form", a.sparsity_config,
                "write {lhs={sparsity=1x4 dimension=1 stride=1}}");
  }
  return WriteDimLabels(a.dim_labels, p->mutable_convolution_dimension_numbers()) &&
         WritePrecision(a.operand_precision, a.algorithm, 2, p->mutable_precision_config());
}

bool Writer::Write(const CustomCallAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p) {
  if (!Utf8(a.target, "custom_call_target", p->mutable_custom_call_target())) return false;
  if (a.has_window) WriteWindow(a.window, p->mutable_window());
  if (!a.dim_labels.empty() &&
      !WriteDimLabels(a.dim_labels, p->mutable_convolution_dimension_numbers())) {
    return false;
  }
  p->set_feature_group_count(a.feature_group_count);
  p->set_batch_group_count(a.batch_group_count);
  p->set_padding_type(std::max(IndexOf(a.padding_type, words::kPaddings.words), 0));
  p->set_custom_call_schedule(std::max(IndexOf(a.schedule, words::kSchedules.words), 0));
  p->set_custom_call_api_version(static_cast<int32_t>(a.api_version));
  p->set_custom_call_has_side_effect(a.has_side_effect);
  if (!options_.typed_calls.empty()) {
    const auto typed = options_.typed_calls.find(at_.value);
    if (typed != options_.typed_calls.end()) {
      p->set_custom_call_target(typed->second);
      p->set_custom_call_api_version(kTypedFfiCall);
      p->clear_backend_config();
    }
  }
  if (a.has_layout_constraints) {
    p->set_constrain_layout(true);
    for (const Shape* shape : a.operand_layouts) {
      *p->add_operand_shapes_with_layout() = ShapeOf(shape);
    }
  }
  if (a.literal != nullptr && !WriteLiteral(*a.literal, p->mutable_literal())) return false;
  return (a.output_to_operand_aliasing.empty() ||
          ParseAliasing(a.output_to_operand_aliasing, p->mutable_output_operand_aliasing())) &&
         WritePrecision(a.operand_precision, "", static_cast<int>(i.operand_count),
                        p->mutable_precision_config());
}

// Writes an iota of groups, or axes of a mesh, as lists.
bool Writer::WriteListedGroups(const ReplicaGroups& g, hlo_pb::HloInstructionProto* p) {
  const auto lists = ListedGroups(g, 0);
  if (!lists.has_value()) {
    return Fail("Groups of devices cannot be spelled out", "an iota of another size",
                "ask VerifyModule, which says what is wrong");
  }
  for (const std::vector<int64_t>& list : *lists) {
    Set(list, p->mutable_collective_device_list()->add_replica_groups()->mutable_replica_ids());
  }
  return true;
}

bool Writer::WriteGroups(const ReplicaGroups& g, hlo_pb::HloInstructionProto* p) {
  switch (g.form) {
    case ReplicaGroups::Form::kAll: p->mutable_collective_device_list(); return true;
    case ReplicaGroups::Form::kLists:
      for (Ints list : g.lists) {
        Set(list, p->mutable_collective_device_list()->add_replica_groups()->mutable_replica_ids());
      }
      return true;
    case ReplicaGroups::Form::kIota: {
      if (options_.list_groups) return WriteListedGroups(g, p);
      hlo_pb::IotaReplicaGroupListProto* iota = p->mutable_iota_collective_device_list();
      iota->set_num_replica_groups(g.num_groups);
      iota->set_num_devices_per_group(g.group_size);
      Set(g.reshape, iota->mutable_iota_reshape_dims());
      for (size_t k = 0; k < g.reshape.size(); ++k) {
        iota->add_iota_transpose_perm(static_cast<int32_t>(g.perm.empty() ? k : g.perm[k]));
      }
      return true;
    }
    case ReplicaGroups::Form::kMesh:
      if (options_.list_groups) return WriteListedGroups(g, p);
      break;
  }
  // `mesh['a'=2] {'a'}`: read as a sharding of one dimension by these axes.
  const size_t brace = g.mesh_text.rfind('{');
  absl::string_view mesh = g.mesh_text.substr(0, brace == Text::npos ? 0 : brace);
  while (!mesh.empty() && (mesh.back() == ' ' || mesh.back() == ',')) mesh.remove_suffix(1);
  const absl::StatusOr<HloSharding> s = ParseHloSharding(
      absl::StrCat("{", mesh, ", [", brace == Text::npos ? "" : g.mesh_text.substr(brace), "]}"));
  if (!s.ok() || s->kind != HloSharding::Kind::kNamed || s->named.dims.size() != 1) {
    return Fail("The replica groups have no binary form", g.mesh_text,
                "write mesh['a'=2,'b'=4] {'a'}");
  }
  hlo_pb::MeshAxesReplicaGroupListProto* list = p->mutable_mesh_axes_replica_group_list();
  WriteMesh(*s->named.mesh, s->list, list->mutable_mesh());
  WriteAxes(*s->named.mesh, s->named.dims[0].axes, list->mutable_axes());
  return true;
}

bool Writer::WriteChannel(int64_t channel_id, hlo_pb::HloInstructionProto* p) {
  if (channel_id == 0) {
    return Fail("Channel 0 has no binary form", "channel_id=0", "count channels from 1");
  }
  if (channel_id > 0) p->set_channel_id(channel_id);
  return true;
}

bool Writer::Write(const CollectiveAttrs& a, const Instruction&, hlo_pb::HloInstructionProto* p) {
  if (!WriteChannel(a.channel_id, p)) return false;
  p->set_constrain_layout(a.constrain_layout);
  p->set_use_global_device_ids(a.use_global_device_ids);
  if (a.dimension >= 0) p->add_dimensions(a.dimension);
  if (a.has_dynamic_root > 0) p->set_has_dynamic_root(true);
  if (a.has_dynamic_root == 0) p->set_shardcall_written(2);
  return WriteGroups(a.groups, p);
}

bool Writer::Write(const PermuteAttrs& a, const Instruction&, hlo_pb::HloInstructionProto* p) {
  if (!WriteChannel(a.channel_id, p)) return false;
  for (size_t k = 0; k < a.sources.size(); ++k) {
    hlo_pb::SourceTarget* pair = p->add_source_target_pairs();
    pair->set_source(a.sources[k]);
    pair->set_target(a.targets[k]);
  }
  for (Ints sizes : a.slice_sizes) Set(sizes, p->mutable_dynamic_slice_sizes());
  return true;
}

// `{kind="sharding", entry={..}, exit={..}}`. The message's entry is the exit in text, and the
// other way round.
bool Writer::Write(const DomainAttrs& a, const Instruction&, hlo_pb::HloInstructionProto* p) {
  const std::string text(a.domain);
  hlo_text::Lexer lex(text, "");
  std::string storage;
  bool ok = lex.Expect('{');
  while (ok && lex.Peek() != '}') {
    absl::string_view key, value;
    ok = lex.Identifier("a key", &key) && lex.Expect('=');
    if (!ok) break;
    if (key == "kind") {
      ok = lex.String(&value, &storage) && value == "sharding";
    } else {
      ok = (key == "entry" || key == "exit") && lex.Balanced(&value);
      const absl::StatusOr<HloSharding> s = ParseHloSharding(ok ? value : absl::string_view());
      ok = ok && s.ok() &&
           WriteSharding(*s, key == "entry" ? p->mutable_domain_exit_sharding()
                                            : p->mutable_domain_entry_sharding());
    }
    lex.TryChar(',');
  }
  return ok || Fail("The domain has no binary form", a.domain,
                    "write {kind=\"sharding\", entry={..}, exit={..}}");
}

bool Writer::Write(const ParameterAttrs& a, const Instruction&, hlo_pb::HloInstructionProto* p) {
  p->set_parameter_number(a.number);
  for (bool b : a.replication) {
    p->mutable_parameter_replication()->add_replicated_at_leaf_buffers(b);
  }
  return true;
}

bool Writer::Write(const ConstantAttrs& a, const Instruction&, hlo_pb::HloInstructionProto* p) {
  return WriteLiteral(*a.literal, p->mutable_literal());
}

bool Writer::Write(const SliceAttrs& a, const Instruction&, hlo_pb::HloInstructionProto* p) {
  for (size_t k = 0; k < a.starts.size(); ++k) {
    auto* d = p->add_slice_dimensions();
    d->set_start(a.starts[k]);
    d->set_limit(a.limits[k]);
    d->set_stride(a.strides[k]);
  }
  return true;
}

bool Writer::Write(const PadAttrs& a, const Instruction&, hlo_pb::HloInstructionProto* p) {
  hlo_pb::PaddingConfig* config = p->mutable_padding_config();
  for (size_t k = 0; k < a.low.size(); ++k) {
    auto* d = config->add_dimensions();
    d->set_edge_padding_low(a.low[k]);
    d->set_edge_padding_high(a.high[k]);
    d->set_interior_padding(a.interior[k]);
  }
  return true;
}

// XLA reads the order since jaxlib 0.12, and the type before that.
bool Writer::Write(const CompareAttrs& a, const Instruction&, hlo_pb::HloInstructionProto* p) {
  const auto order = static_cast<size_t>(CompareOrderOf(a.type));
  p->set_comparison_order(Str(words::kCompareOrders.words[order]));
  return WriteFields(a, p);
}

bool Writer::Write(const TopKAttrs& a, const Instruction&, hlo_pb::HloInstructionProto* p) {
  // Since jaxlib 0.12, a message must say that top-k is stable; before that, it always was.
  p->set_is_stable(a.is_stable != 0);
  if (a.is_stable == 0) p->set_shardcall_written(1);
  return WriteFields(a, p);
}

bool Writer::Write(const OutfeedAttrs& a, const Instruction&, hlo_pb::HloInstructionProto* p) {
  p->set_outfeed_config(Str(a.config));
  if (a.shape != nullptr) *p->mutable_outfeed_shape() = ShapeOf(a.shape);
  return true;
}

bool Writer::Write(const AsyncAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p) {
  if (i.opcode == Opcode::kAsyncStart) p->set_async_execution_thread(Str(a.execution_thread));
  return a.aliasing.empty() || ParseAliasing(a.aliasing, p->mutable_output_operand_aliasing());
}

template <typename Row, typename Message, typename T>
bool Writer::WriteField(const Row& row, const Message& message, const T& value,
                        hlo_pb::HloInstructionProto* p) {
  using Form = decltype(row.form);
  if constexpr (std::is_same_v<Message, OnlyDimension>) {
    if (row.presence == hlo_text::Presence::kRequired || value >= 0) p->add_dimensions(value);
  } else if constexpr (std::is_same_v<Message, Channel>) {
    return WriteChannel(value, p);
  } else if constexpr (std::is_same_v<Message, OperandAliasing>) {
    return value.empty() || ParseAliasing(value, p->mutable_output_operand_aliasing());
  } else if constexpr (std::is_same_v<Message, Own> || std::is_same_v<Message, Called>) {
    // Called computations are written with the instruction itself.
  } else if constexpr (requires { message.has(*p); }) {
    if (value >= 0) return WriteField(row, message.field, value, p);
  } else if constexpr (std::is_same_v<Form, field_forms::Word>) {
    const Words words = row.form.list.words;
    using Kept = std::decay_t<decltype(message.get(*p))>;
    if constexpr (std::is_enum_v<T> && std::is_same_v<Kept, std::string>) {
      message.set(p, words[static_cast<int>(value)]);
    } else if constexpr (std::is_enum_v<T> || std::is_same_v<Kept, std::string>) {
      message.set(p, value);
    } else {
      message.set(p, std::max(IndexOf(value, words), 0));
    }
  } else if constexpr (std::is_same_v<Form, field_forms::TriState>) {
    message.set(p, value < 0 ? 0 : value > 0 ? 1 : 2);
  } else if constexpr (std::is_same_v<T, Field<int64_t>>) {
    Set(value, message.mutable_field(p));
  } else if constexpr (std::is_same_v<T, Window>) {
    WriteWindow(value, message.mutable_field(p));
  } else {
    message.set(p, value);
  }
  return true;
}

template <typename Record>
bool Writer::WriteFields(const Record& record, hlo_pb::HloInstructionProto* p) {
  return MessageSchema<Record>::Visit([&](const auto& row, const auto& message) {
    return WriteField(row, message, record.*row.member, p);
  });
}

template <typename Record>
bool Writer::Write(const Record& record, const Instruction&, hlo_pb::HloInstructionProto* p) {
  return WriteFields(record, p);
}

bool Writer::WriteAttributes(const Instruction& i, hlo_pb::HloInstructionProto* p) {
  return ForRecord(*i.attrs, [&](const auto& record) { return Write(record, i, p); });
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
