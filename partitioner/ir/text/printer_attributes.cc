// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/attribute_records.h"
#include "shardcall/partitioner/ir/attribute_schema.h"
#include "shardcall/partitioner/ir/float_format.h"
#include "shardcall/partitioner/ir/text/lex/literal_text.h"
#include "shardcall/partitioner/ir/text/printer_internal.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {
namespace {

bool AllAre(Ints values, int64_t value) {
  return std::all_of(values.begin(), values.end(), [=](int64_t v) { return v == value; });
}

}  // namespace

void Printer::IntListValue(Ints values) {
  out_.push_back('{');
  for (size_t k = 0; k < values.size(); ++k) {
    if (k > 0) out_.push_back(',');
    AppendInt(values[k], &out_);
  }
  out_.push_back('}');
}

void Printer::IntsText(absl::string_view name, Ints values) {
  absl::StrAppend(&out_, ", ", name, "=");
  IntListValue(values);
}

void Printer::IntText(absl::string_view name, int64_t value) {
  absl::StrAppend(&out_, ", ", name, "=");
  AppendInt(value, &out_);
}

void Printer::Word(absl::string_view name, absl::string_view value) {
  if (!value.empty()) absl::StrAppend(&out_, ", ", name, "=", value);
}

void Printer::Flag(absl::string_view name, bool value) {
  if (value) absl::StrAppend(&out_, ", ", name, "=true");
}

void Printer::StringText(absl::string_view name, absl::string_view value) {
  absl::StrAppend(&out_, ", ", name, "=");
  Escaped(value);
}

void Printer::CompText(absl::string_view name, CompId id) {
  if (!id.valid()) return;
  absl::StrAppend(&out_, ", ", name, "=");
  Name(NameOf(id));
}

void Printer::CompsText(absl::string_view name, absl::Span<const CompId> ids) {
  absl::StrAppend(&out_, ", ", name, "={");
  for (size_t k = 0; k < ids.size(); ++k) {
    if (k > 0) out_ += ", ";
    Name(NameOf(ids[k]));
  }
  out_.push_back('}');
}

void Printer::WindowText(const Window& w) {
  if (w.size.empty()) return;
  out_ += ", window={size=";
  const auto values = [&](Ints v) {
    for (size_t k = 0; k < v.size(); ++k) {
      if (k > 0) out_.push_back('x');
      AppendInt(v[k], &out_);
    }
  };
  const auto field = [&](absl::string_view name, Ints v, int64_t otherwise) {
    if (AllAre(v, otherwise)) return;
    absl::StrAppend(&out_, " ", name, "=");
    values(v);
  };
  values(w.size);
  field("stride", w.stride, 1);
  if (!AllAre(w.pad_low, 0) || !AllAre(w.pad_high, 0)) {
    out_ += " pad=";
    for (size_t k = 0; k < w.pad_low.size(); ++k) {
      absl::StrAppend(&out_, k > 0 ? "x" : "", w.pad_low[k], "_", w.pad_high[k]);
    }
  }
  field("lhs_dilate", w.lhs_dilate, 1);
  field("rhs_dilate", w.rhs_dilate, 1);
  field("rhs_reversal", w.reversal, 0);
  out_.push_back('}');
}

void Printer::RecordText(const PadAttrs& a, const Instruction&) {
  out_ += ", padding=";
  const bool interior = !AllAre(a.interior, 0);
  for (size_t k = 0; k < a.low.size(); ++k) {
    absl::StrAppend(&out_, k > 0 ? "x" : "", a.low[k], "_", a.high[k]);
    if (interior) absl::StrAppend(&out_, "_", a.interior[k]);
  }
}

void Printer::RecordText(const SliceAttrs& a, const Instruction&) {
  out_ += ", slice={";
  const bool strides = !AllAre(a.strides, 1);
  for (size_t k = 0; k < a.starts.size(); ++k) {
    absl::StrAppend(&out_, k > 0 ? ", [" : "[", a.starts[k], ":", a.limits[k]);
    if (strides) absl::StrAppend(&out_, ":", a.strides[k]);
    out_.push_back(']');
  }
  out_.push_back('}');
}

void Printer::RecordText(const CompareAttrs& a, const Instruction& i) {
  Word("direction", words::kDirections.words[static_cast<int>(a.direction)]);
  if (i.operand_count == 0) return;
  const ElementType type = module_.instr(module_.operands(i)[0]).shape->element_type();
  if (a.type != NaturalCompareType(type)) {
    Word("type", words::kCompareTypes.words[static_cast<int>(a.type)]);
  }
}

void Printer::LiteralWithShape(const Literal& literal) {
  AppendLiteral(literal, &out_, [this](const Literal& array) {
    ShapeText(array.shape, true);
    out_.push_back(' ');
  });
}

void Printer::RecordText(const CustomCallAttrs& a, const Instruction&) {
  if (a.has_window) WindowText(a.window);
  Word("dim_labels", a.dim_labels);
  if (a.feature_group_count != 1) IntText("feature_group_count", a.feature_group_count);
  if (a.batch_group_count != 1) IntText("batch_group_count", a.batch_group_count);
  Word("operand_precision", a.operand_precision);
  Word("padding_type", a.padding_type);
  StringText("custom_call_target", a.target);
  if (a.has_layout_constraints) {
    out_ += ", operand_layout_constraints={";
    for (size_t k = 0; k < a.operand_layouts.size(); ++k) {
      if (k > 0) out_ += ", ";
      ShapeText(a.operand_layouts[k], true);
    }
    out_.push_back('}');
  }
  Flag("custom_call_has_side_effect", a.has_side_effect);
  if (a.literal != nullptr) {
    out_ += ", literal=";
    LiteralWithShape(*a.literal);
  }
  Word("output_to_operand_aliasing", a.output_to_operand_aliasing);
  Word("schedule", a.schedule);
  constexpr int kOriginal = 1;  // the default of a call's api_version
  if (a.api_version != kOriginal) {
    Word("api_version", words::kApiVersions.words[std::clamp<int64_t>(a.api_version, 0, 4)]);
  }
  if (!a.called_computations.empty()) CompsText("called_computations", a.called_computations);
}

void Printer::GroupsText(const ReplicaGroups& g) {
  out_ += ", replica_groups=";
  switch (g.form) {
    case ReplicaGroups::Form::kAll: out_ += "{}"; return;
    case ReplicaGroups::Form::kMesh: absl::StrAppend(&out_, g.mesh_text); return;
    case ReplicaGroups::Form::kLists:
      out_.push_back('{');
      for (size_t k = 0; k < g.lists.size(); ++k) {
        if (k > 0) out_.push_back(',');
        IntListValue(g.lists[k]);
      }
      out_.push_back('}');
      return;
    case ReplicaGroups::Form::kIota: break;
  }
  absl::StrAppend(&out_, "[", g.num_groups, ",", g.group_size, "]<=[");
  const auto values = [&](Ints v) {
    for (size_t k = 0; k < v.size(); ++k) {
      if (k > 0) out_.push_back(',');
      AppendInt(v[k], &out_);
    }
  };
  values(g.reshape);
  out_.push_back(']');
  if (g.reshape.size() <= 1) return;
  out_ += "T(";
  if (g.perm.empty()) {  // the identity, which is written out for several dims
    for (size_t k = 0; k < g.reshape.size(); ++k) absl::StrAppend(&out_, k > 0 ? "," : "", k);
  }
  values(g.perm);
  out_.push_back(')');
}

void Printer::RecordText(const CollectiveAttrs& a, const Instruction& i) {
  if (a.channel_id >= 0) IntText("channel_id", a.channel_id);
  GroupsText(a.groups);
  Flag("constrain_layout", a.constrain_layout);
  // Only gathering ops have the dimension before the ids.
  const bool ids_first =
      HasTrait(i.opcode, kAppliesToElements) || !Requires(i.opcode, Attr::kDimensions);
  if (ids_first) Flag("use_global_device_ids", a.use_global_device_ids);
  if (a.dimension >= 0) {
    absl::StrAppend(&out_, ", dimensions={", a.dimension, "}");
  }
  if (!ids_first) Flag("use_global_device_ids", a.use_global_device_ids);
  if (a.has_dynamic_root >= 0) {
    Word("has_dynamic_root", a.has_dynamic_root ? "true" : "false");
  }
  CompText("to_apply", a.to_apply);
}

void Printer::RecordText(const PermuteAttrs& a, const Instruction&) {
  if (a.channel_id >= 0) IntText("channel_id", a.channel_id);
  out_ += ", source_target_pairs={";
  for (size_t k = 0; k < a.sources.size(); ++k) {
    out_ += k > 0 ? ",{" : "{";
    AppendInt(a.sources[k], &out_);
    out_.push_back(',');
    AppendInt(a.targets[k], &out_);
    out_.push_back('}');
  }
  out_.push_back('}');
  if (a.slice_sizes.empty()) return;
  out_ += ", slice_sizes={";
  for (size_t k = 0; k < a.slice_sizes.size(); ++k) {
    if (k > 0) out_.push_back(',');
    IntListValue(a.slice_sizes[k]);
  }
  out_.push_back('}');
}

void Printer::RecordText(const AsyncAttrs& a, const Instruction& i) {
  if (i.opcode != Opcode::kAsyncStart) return;
  if (!a.execution_thread.empty()) StringText("async_execution_thread", a.execution_thread);
  if (const Instruction* op = Sugar(i)) {
    Attributes_(*op);
    Word("output_to_operand_aliasing", a.aliasing);
  } else {
    Word("output_to_operand_aliasing", a.aliasing);
    CompText("calls", a.calls);
  }
}

void Printer::RecordText(const ParameterAttrs& a, const Instruction&) {
  if (a.replication.empty()) return;
  out_ += ", parameter_replication={";
  for (size_t k = 0; k < a.replication.size(); ++k) {
    absl::StrAppend(&out_, k > 0 ? "," : "", a.replication[k] ? "true" : "false");
  }
  out_.push_back('}');
}

void Printer::RecordText(const ConditionalAttrs& a, const Instruction&) {
  if (!a.is_pred || a.branches.size() != 2) {
    return CompsText("branch_computations", a.branches);
  }
  CompText("true_computation", a.branches[0]);
  CompText("false_computation", a.branches[1]);
}

void Printer::RecordText(const OutfeedAttrs& a, const Instruction&) {
  if (a.shape != nullptr) {
    out_ += ", outfeed_shape=";
    ShapeText(a.shape, true);
  }
  if (!a.config.empty()) StringText("outfeed_config", a.config);
}

template <typename Record, typename Row>
void Printer::FieldText(const Record& record, const Row& row) {
  using Form = decltype(row.form);
  const auto& value = record.*row.member;
  using T = std::decay_t<decltype(value)>;
  const absl::string_view name = AttrText(row.attr);
  // Other optional fields print nothing if they are unset.
  const bool always = row.presence != Presence::kOptional;
  if constexpr (std::is_same_v<Form, field_forms::OneInt>) {
    absl::StrAppend(&out_, ", ", name, "={", value, "}");
  } else if constexpr (std::is_same_v<Form, field_forms::Word> && std::is_enum_v<T>) {
    Word(name, row.form.list.words[static_cast<int>(value)]);
  } else if constexpr (std::is_same_v<Form, field_forms::TriState>) {
    if (value >= 0) Word(name, value != 0 ? "true" : "false");
  } else if constexpr (std::is_same_v<Form, field_forms::String>) {
    if (always || !value.empty()) StringText(name, value);
  } else if constexpr (std::is_same_v<T, TextField>) {
    Word(name, value);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (always || value != Record().*row.member) Word(name, value ? "true" : "false");
  } else if constexpr (std::is_same_v<T, double>) {
    absl::StrAppend(&out_, ", ", name, "=");
    AppendReal(ElementType::kF32, EncodeFloat(ElementType::kF32, value), &out_);
  } else if constexpr (std::is_same_v<T, Field<int64_t>>) {
    if (always || !value.empty()) IntsText(name, value);
  } else if constexpr (std::is_same_v<T, CompId>) {
    CompText(name, value);
  } else if constexpr (std::is_same_v<T, Window>) {
    WindowText(value);
  } else {
    if (always || value != Record().*row.member) IntText(name, value);
  }
}

template <typename Record>
void Printer::RecordText(const Record& record, const Instruction&) {
  Schema<Record>::Visit([&](const auto& row) {
    FieldText(record, row);
    return true;
  });
}

void Printer::Attributes_(const Instruction& i) {
  ForRecord(*i.attrs, [&](const auto& record) { RecordText(record, i); });
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
