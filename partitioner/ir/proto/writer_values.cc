// SPDX-License-Identifier: Apache-2.0
// Shapes, literals, shardings and other values.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/ir/proto/literal_data.h"
#include "shardcall/partitioner/ir/proto/text_values.h"
#include "shardcall/partitioner/ir/proto/value_reader.h"
#include "shardcall/partitioner/ir/proto/writer.h"
#include "shardcall/partitioner/ir/shapes/dim_labels.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

bool Writer::Utf8(absl::string_view text, absl::string_view what, std::string* out) {
  out->assign(text.data(), text.size());
  return IsUtf8(text) ||
         Fail(absl::StrCat("Text that is not UTF-8 in ", what, " has no binary form"), "",
              "write the module as text, or mend the bytes");
}

const hlo_pb::ShapeProto& Writer::ShapeOf(const Shape* shape) {
  std::unique_ptr<hlo_pb::ShapeProto>& p = shapes_[shape];
  if (p == nullptr) {
    p = std::make_unique<hlo_pb::ShapeProto>();
    WriteShape(*module_.context().WithDefaultLayout(shape), 0, p.get());
  }
  return *p;
}

void Writer::WriteShape(const Shape& shape, int depth, hlo_pb::ShapeProto* p) {
  // Readers reject deeper messages; the shape itself is inside some levels.
  if (depth > kMaxMessageDepth - 16) {
    Fail("A shape is nested too deeply for a message",
         absl::StrCat("more than ", kMaxMessageDepth - 16, " levels"), "write the module as text");
    return;
  }
  p->set_element_type(static_cast<int32_t>(shape.element_type()));
  for (const Shape* element : shape.tuple()) {
    WriteShape(*element, depth + 1, p->add_tuple_shapes());
  }
  if (!shape.IsArray()) return;
  p->mutable_dimensions()->Add(shape.dims().begin(), shape.dims().end());
  for (int d = 0; d < shape.rank(); ++d) p->add_is_dynamic_dimension(shape.IsDynamicDim(d));
  WriteLayout(shape, p->mutable_layout());
}

void Writer::WriteLayout(const Shape& shape, hlo_pb::LayoutProto* p) {
  p->mutable_minor_to_major()->Add(shape.minor_to_major().begin(), shape.minor_to_major().end());
  p->set_tail_padding_alignment_in_elements(1);
  if (shape.layout_suffix().empty()) return;
  // Canonical text, as in "T(8,128)(2,1)L(4)S(1)".
  const std::string text(shape.layout_suffix());
  hlo_text::Lexer lex(text, "");
  const auto number = [&] {
    int64_t value = 0;
    lex.TryChar('(');
    lex.NonNegative(&value);
    lex.TryChar(')');
    return value;
  };
  const auto type = [&] {
    lex.TryChar('(');
    const ElementType t = ElementTypeFromName(lex.TryIdentifier());
    lex.TryChar(')');
    return static_cast<int32_t>(t);
  };
  if (lex.TryChar('T')) {
    while (lex.TryChar('(')) {
      hlo_pb::TileProto* tile = p->add_tiles();
      while (!lex.TryChar(')') && !lex.failed()) {
        int64_t d = INT64_MIN;  // "*"
        if (!lex.TryChar('*') && !lex.NonNegative(&d)) return;
        tile->add_dimensions(d);
        lex.TryChar(',');
      }
    }
  }
  if (lex.TryChar('L')) p->set_tail_padding_alignment_in_elements(number());
  if (lex.TryChar('#')) p->set_index_primitive_type(type());
  if (lex.TryChar('*')) p->set_pointer_primitive_type(type());
  if (lex.TryChar('E')) p->set_element_size_in_bits(number());
  if (lex.Peek() == 'S' && lex.at()[1] != 'C') {
    lex.TryChar('S');
    p->set_memory_space(number());
  }
  if (lex.TryText("SC")) {
    while (lex.TryChar('(')) {
      hlo_pb::SplitConfigProto* split = p->add_split_configs();
      int64_t value = 0;
      lex.NonNegative(&value);
      split->set_dimension(value);
      lex.TryChar(':');
      do {
        if (!lex.NonNegative(&value)) return;
        split->add_split_indices(value);
      } while (lex.TryChar(','));
      lex.TryChar(')');
    }
  }
  if (lex.TryChar('M')) p->set_dynamic_shape_metadata_prefix_bytes(number());
}

void Writer::WriteWindow(const Window& w, hlo_pb::Window* p) {
  for (size_t k = 0; k < w.size.size(); ++k) {
    hlo_pb::WindowDimension* d = p->add_dimensions();
    d->set_size(w.size[k]);
    d->set_stride(w.stride[k]);
    d->set_padding_low(w.pad_low[k]);
    d->set_padding_high(w.pad_high[k]);
    d->set_base_dilation(w.lhs_dilate[k]);
    d->set_window_dilation(w.rhs_dilate[k]);
    d->set_window_reversal(w.reversal[k] != 0);
  }
}

// `b01f_01io->b01f`
bool Writer::WriteDimLabels(Text labels, hlo_pb::ConvolutionDimensionNumbers* p) {
  DimLabels dims;
  if (!ParseDimLabels(labels, &dims)) {
    return Fail("The dimension labels have no binary form", labels, "write b01f_01io->b01f");
  }
  const auto add = [](absl::Span<const int64_t> spatial, Repeated* to) {
    for (int64_t d : spatial) to->Add(d);
  };
  p->set_input_batch_dimension(dims.lhs.batch);
  p->set_input_feature_dimension(dims.lhs.feature);
  add(dims.lhs.spatial, p->mutable_input_spatial_dimensions());
  p->set_kernel_input_feature_dimension(dims.rhs.batch);
  p->set_kernel_output_feature_dimension(dims.rhs.feature);
  add(dims.rhs.spatial, p->mutable_kernel_spatial_dimensions());
  p->set_output_batch_dimension(dims.out.batch);
  p->set_output_feature_dimension(dims.out.feature);
  add(dims.out.spatial, p->mutable_output_spatial_dimensions());
  return true;
}

bool Writer::WritePrecision(Text precision, Text algorithm, int operands,
                            hlo_pb::PrecisionConfig* p) {
  if (precision.size() < 2) {
    for (int k = 0; k < operands; ++k) p->add_operand_precision(0);
  } else {
    for (absl::string_view word :
         absl::StrSplit(precision.substr(1, precision.size() - 2), ',', absl::SkipEmpty())) {
      const int value = IndexOf(word, words::kPrecisions.words);
      if (value < 0) {
        return Fail("The precision has no binary form", precision, "write {default,highest}");
      }
      p->add_operand_precision(value);
    }
  }
  const int value = IndexOf(algorithm, words::kDotAlgorithms.words);
  if (value < 0) {
    return Fail("The algorithm has no binary form", algorithm, "name one that XLA knows");
  }
  p->set_algorithm(value);
  return true;
}

bool Writer::WriteLiteral(const Literal& literal, hlo_pb::LiteralProto* p) {
  *p->mutable_shape() = ShapeOf(literal.shape);
  if (literal.elided) {
    p->set_shardcall_elided(true);
    return true;
  }
  for (const Literal* element : literal.elements) {
    if (!WriteLiteral(*element, p->add_tuple_literals())) return false;
  }
  if (!literal.shape->IsArray()) return true;
  const ElementType type = literal.shape->element_type();
  const absl::string_view data(literal.data.data(), literal.data.size());
  std::string* bytes = nullptr;
  switch (type) {
#define SHARDCALL_CASE(name, field)                  \
  case ElementType::name:                            \
    if (!data.empty()) bytes = p->mutable_##field(); \
    break;
    SHARDCALL_LITERAL_BYTES(SHARDCALL_CASE)
#undef SHARDCALL_CASE
#define SHARDCALL_CASE(name, field, per)                                      \
  case ElementType::name: {                                                   \
    auto* to = p->mutable_##field();                                          \
    const int count = static_cast<int>(data.size() / sizeof(*to->data()));    \
    to->Resize(count, 0);                                                     \
    if (count > 0) std::memcpy(to->mutable_data(), data.data(), data.size()); \
    break;                                                                    \
  }
    SHARDCALL_LITERAL_NUMBERS(SHARDCALL_CASE)
#undef SHARDCALL_CASE
    default:
      return Fail("A literal of this type has no binary form", ElementTypeName(type),
                  "convert it from another type");
  }
  if (bytes == nullptr) return true;
  bytes->assign(data.data(), data.size());
  if (ElementTypeBits(type) < 8) {
    const int mask = (1 << ElementTypeBits(type)) - 1;
    for (char& c : *bytes) c = static_cast<char>(c & mask);
  }
  return true;
}

bool Writer::WriteMetadata(const Metadata& m, hlo_pb::OpMetadata* p) {
  const auto text = [&](absl::string_view value, absl::string_view what, auto&& field) {
    return value.empty() || Utf8(value, what, field());
  };
  if (!text(m.op_type, "op_type", [&] { return p->mutable_op_type(); }) ||
      !text(m.op_name, "op_name", [&] { return p->mutable_op_name(); }) ||
      !text(m.source_file, "source_file", [&] { return p->mutable_source_file(); }) ||
      !text(m.deduplicated_name, "deduplicated_name",
            [&] { return p->mutable_deduplicated_name(); }) ||
      !text(m.scheduling_name, "scheduling_name", [&] { return p->mutable_scheduling_name(); })) {
    return false;
  }
  p->set_source_line(m.source_line);
  p->set_source_end_line(m.source_end_line);
  p->set_source_column(m.source_column);
  p->set_source_end_column(m.source_end_column);
  p->set_stack_frame_id(m.stack_frame_id);
  for (int64_t v : m.profile_type) p->add_profile_type(static_cast<int32_t>(v));
  if (m.metadata_payload.empty()) return true;
  std::string payload;
  if (!Utf8(m.metadata_payload, "metadata_payload", &payload)) return false;
  const auto [entry, is_new] =
      payload_index_.try_emplace(payload, static_cast<int64_t>(payloads_.size()));
  if (is_new) payloads_.push_back(payload);
  p->mutable_metadata_payload()->set_index(entry->second);
  return true;
}

bool Writer::WriteFrontend(const FrontendAttributes& f, hlo_pb::FrontendAttributes* p) {
  for (const auto& [key, value] : f.entries) {
    hlo_pb::StringEntry* e = p->add_map();
    if (!Utf8(key, "a key of frontend_attributes", e->mutable_key()) ||
        !Utf8(value, "a value of frontend_attributes", e->mutable_value())) {
      return false;
    }
  }
  return true;
}

bool Writer::WriteSharding(const HloSharding& s, hlo_pb::OpSharding* p) {
  using Kind = HloSharding::Kind;
  switch (s.kind) {
    case Kind::kReplicated: break;  // type 0
    case Kind::kManual: p->set_type(4); break;
    case Kind::kUnknown: p->set_type(5); break;
    case Kind::kUnreduced: p->set_type(6); break;
    case Kind::kMaximal:
      if (s.maximal_mesh) {
        p->mutable_named_sharding()->mutable_mesh()->add_device_ids(s.device);
      } else {
        p->set_type(1);
        p->add_tile_assignment_devices(s.device);
      }
      break;
    case Kind::kTiled: {
      p->set_type(3);
      p->mutable_tile_assignment_dimensions()->Add(s.tile.begin(), s.tile.end());
      if (s.is_list()) {
        p->mutable_tile_assignment_devices()->Add(s.list.begin(), s.list.end());
      } else {
        p->mutable_iota_reshape_dims()->Add(s.reshape.begin(), s.reshape.end());
        for (size_t k = 0; k < s.reshape.size(); ++k) {
          p->add_iota_transpose_perm(static_cast<int32_t>(s.perm.empty() ? k : s.perm[k]));
        }
      }
      using Subgroup = HloSharding::Subgroup;
      if (s.subgroups.size() == 1 && s.subgroups[0] == Subgroup::kReplicated) {
        p->set_replicate_on_last_tile_dim(true);
        break;
      }
      for (Subgroup g : s.subgroups) {
        p->add_last_tile_dims(g == Subgroup::kManual ? 4 : g == Subgroup::kUnreduced ? 6 : 0);
      }
      break;
    }
    case Kind::kNamed: WriteNamed(s, p->mutable_named_sharding()); break;
    case Kind::kTuple:
      p->set_type(2);
      for (const HloSharding& leaf : s.tuple) {
        if (!WriteSharding(leaf, p->add_tuple_shardings())) return false;
      }
      return true;
  }
  if (s.group != HloSharding::GroupKind::kNone) {
    p->set_is_shard_group(true);
    p->set_shard_group_id(s.group_id);
    p->set_shard_group_type(s.group == HloSharding::GroupKind::kShardLike);
  }
  const bool named = p->has_named_sharding();
  for (const std::string& text : s.metadata) {
    auto* metadata = named ? p->mutable_named_sharding()->add_metadata() : p->add_metadata();
    if (!ParseMetadata(text, metadata)) {
      return Fail("A sharding's metadata has no binary form", text, "write {op_name=\"a\"}");
    }
  }
  return true;
}

void Writer::WriteNamed(const HloSharding& s, hlo_pb::NamedShardingProto* p) {
  const Mesh& mesh = *s.named.mesh;
  WriteMesh(mesh, s.list, p->mutable_mesh());
  for (const NamedSharding::Dim& dim : s.named.dims) {
    auto* d = p->add_dim_shardings();
    WriteAxes(mesh, dim.axes, d->mutable_axes());
    d->set_is_closed(!dim.open);
  }
  WriteAxes(mesh, s.named.replicated, p->mutable_replicated_axes());
  WriteAxes(mesh, s.named.unreduced, p->mutable_unreduced_axes());
  WriteAxes(mesh, s.named.manual, p->mutable_manual_axes());
  p->set_reduction_op(s.named.unreduced_op == PartialOp::kMax   ? 1
                      : s.named.unreduced_op == PartialOp::kMin ? 2
                                                                : 0);
}

void Writer::WriteMesh(const Mesh& mesh, absl::Span<const int64_t> list, hlo_pb::MeshProto* p) {
  for (const MeshAxis& a : mesh.axes) {
    auto* axis = p->add_axes();
    axis->set_name(a.name);
    axis->set_size(a.size);
  }
  if (!list.empty() || !mesh.order.is_iota()) {
    const absl::Span<const int64_t> ids = list.empty() ? mesh.order.list() : list;
    p->mutable_device_ids()->Add(ids.begin(), ids.end());
  } else if (!mesh.order.is_identity()) {
    auto* iota = p->mutable_iota_transform();
    iota->mutable_reshape_dims()->Add(mesh.order.reshape().begin(), mesh.order.reshape().end());
    iota->mutable_transpose_perm()->Add(mesh.order.perm().begin(), mesh.order.perm().end());
  }
}

void Writer::WriteAxes(const Mesh& mesh, absl::Span<const NamedAxisRef> refs,
                       google::protobuf::RepeatedPtrField<hlo_pb::AxisRefProto>* p) {
  for (const NamedAxisRef& ref : refs) {
    hlo_pb::AxisRefProto* axis = p->Add();
    for (size_t k = 0; k < mesh.axes.size(); ++k) {
      if (mesh.axes[k].name == ref.name) axis->set_mesh_axis_index(static_cast<int64_t>(k));
    }
    if (ref.size == 0) continue;
    axis->mutable_sub_axis_info()->set_pre_size(ref.pre_size);
    axis->mutable_sub_axis_info()->set_size(ref.size);
  }
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
