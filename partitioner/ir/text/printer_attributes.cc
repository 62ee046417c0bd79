// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/float_format.h"
#include "shardcall/partitioner/ir/text/literal_text.h"
#include "shardcall/partitioner/ir/text/printer_internal.h"

namespace shardcall::hlo_text {
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

void Printer::PadText(const PadAttrs& a) {
  out_ += ", padding=";
  const bool interior = !AllAre(a.interior, 0);
  for (size_t k = 0; k < a.low.size(); ++k) {
    absl::StrAppend(&out_, k > 0 ? "x" : "", a.low[k], "_", a.high[k]);
    if (interior) absl::StrAppend(&out_, "_", a.interior[k]);
  }
}

void Printer::SliceText(const SliceAttrs& a) {
  out_ += ", slice={";
  const bool strides = !AllAre(a.strides, 1);
  for (size_t k = 0; k < a.starts.size(); ++k) {
    absl::StrAppend(&out_, k > 0 ? ", [" : "[", a.starts[k], ":", a.limits[k]);
    if (strides) absl::StrAppend(&out_, ":", a.strides[k]);
    out_.push_back(']');
  }
  out_.push_back('}');
}

void Printer::CompareText(const Instruction& i) {
  static constexpr absl::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  static constexpr absl::string_view kTypes[] = {"FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
  const CompareAttrs& a = i.as<CompareAttrs>();
  Word("direction", kDirections[static_cast<int>(a.direction)]);
  if (i.operand_count == 0) return;
  const ElementType type = module_.instr(module_.operands(i)[0]).shape->element_type();
  const CompareType natural = IsFloat(type) || IsComplex(type) ? CompareType::kFloat
                              : IsSignedInteger(type)          ? CompareType::kSigned
                                                               : CompareType::kUnsigned;
  if (a.type != natural) Word("type", kTypes[static_cast<int>(a.type)]);
}

void Printer::DotText(const DotAttrs& a) {
  NonEmptyInts("lhs_batch_dims", a.lhs_batch);
  IntsText("lhs_contracting_dims", a.lhs_contracting);
  NonEmptyInts("rhs_batch_dims", a.rhs_batch);
  IntsText("rhs_contracting_dims", a.rhs_contracting);
  NonEmptyInts("lhs_ragged_dims", a.lhs_ragged);
  NonEmptyInts("rhs_group_dims", a.rhs_group);
  Word("operand_precision", a.operand_precision);
  Word("algorithm", a.algorithm);
}

void Printer::ConvolutionText(const ConvolutionAttrs& a) {
  WindowText(a.window);
  Word("dim_labels", a.dim_labels);
  if (a.feature_group_count != 1) IntText("feature_group_count", a.feature_group_count);
  if (a.batch_group_count != 1) IntText("batch_group_count", a.batch_group_count);
  Word("convolution_kind", a.convolution_kind);
  Word("operand_precision", a.operand_precision);
  Word("algorithm", a.algorithm);
  Word("sparsity_config", a.sparsity_config);
}

void Printer::GatherText(const GatherAttrs& a) {
  IntsText("offset_dims", a.offset_dims);
  IntsText("collapsed_slice_dims", a.collapsed_slice_dims);
  IntsText("start_index_map", a.start_index_map);
  NonEmptyInts("operand_batching_dims", a.operand_batching_dims);
  NonEmptyInts("start_indices_batching_dims", a.start_indices_batching_dims);
  IntText("index_vector_dim", a.index_vector_dim);
  IntsText("slice_sizes", a.slice_sizes);
  Flag("indices_are_sorted", a.indices_are_sorted);
}

void Printer::ScatterText(const ScatterAttrs& a) {
  IntsText("update_window_dims", a.update_window_dims);
  IntsText("inserted_window_dims", a.inserted_window_dims);
  IntsText("scatter_dims_to_operand_dims", a.scatter_dims_to_operand_dims);
  NonEmptyInts("input_batching_dims", a.input_batching_dims);
  NonEmptyInts("scatter_indices_batching_dims", a.scatter_indices_batching_dims);
  IntText("index_vector_dim", a.index_vector_dim);
  Flag("indices_are_sorted", a.indices_are_sorted);
  Flag("unique_indices", a.unique_indices);
  CompText("to_apply", a.to_apply);
}

void Printer::LiteralWithShape(const Literal& literal) {
  AppendLiteral(literal, &out_, [this](const Literal& array) {
    ShapeText(array.shape, true);
    out_.push_back(' ');
  });
}

void Printer::CustomCallText(const CustomCallAttrs& a) {
  static constexpr absl::string_view kVersions[] = {
      "API_VERSION_UNSPECIFIED", "", "API_VERSION_STATUS_RETURNING",
      "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};
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
  Word("api_version", kVersions[std::clamp<int64_t>(a.api_version, 0, 4)]);
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
  if (g.perm.empty()) {  // the identity, which several dims have to spell out
    for (size_t k = 0; k < g.reshape.size(); ++k) absl::StrAppend(&out_, k > 0 ? "," : "", k);
  }
  values(g.perm);
  out_.push_back(')');
}

void Printer::CollectiveText(Opcode opcode, const CollectiveAttrs& a) {
  if (a.channel_id >= 0) IntText("channel_id", a.channel_id);
  GroupsText(a.groups);
  Flag("constrain_layout", a.constrain_layout);
  const bool ids_first = opcode != Opcode::kAllGather && opcode != Opcode::kAllGatherStart;
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

void Printer::PermuteText(const PermuteAttrs& a) {
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

void Printer::AsyncText(const Instruction& i) {
  const AsyncAttrs& a = i.as<AsyncAttrs>();
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

void Printer::Attributes_(const Instruction& i) {
  switch (i.attrs->kind) {
    case AttrKind::kNone:
    case AttrKind::kResultAccuracy:
    case AttrKind::kConstant: return;
    case AttrKind::kCompare: return CompareText(i);
    case AttrKind::kParameter: {
      const auto& r = i.as<ParameterAttrs>().replication;
      if (r.empty()) return;
      out_ += ", parameter_replication={";
      for (size_t k = 0; k < r.size(); ++k) {
        absl::StrAppend(&out_, k > 0 ? "," : "", r[k] ? "true" : "false");
      }
      out_.push_back('}');
      return;
    }
    case AttrKind::kIota: return IntText("iota_dimension", i.as<IotaAttrs>().dimension);
    case AttrKind::kTupleIndex: return IntText("index", i.as<TupleIndexAttrs>().index);
    case AttrKind::kDimensions: return IntsText("dimensions", i.as<DimensionsAttrs>().dimensions);
    case AttrKind::kReshape: {
      const int64_t d = i.as<ReshapeAttrs>().inferred_dimension;
      if (d >= 0) IntText("inferred_dimension", d);
      return;
    }
    case AttrKind::kSlice: return SliceText(i.as<SliceAttrs>());
    case AttrKind::kDynamicSlice:
      return IntsText("dynamic_slice_sizes", i.as<DynamicSliceAttrs>().sizes);
    case AttrKind::kPad: return PadText(i.as<PadAttrs>());
    case AttrKind::kReduce:
      IntsText("dimensions", i.as<ReduceAttrs>().dimensions);
      return CompText("to_apply", i.as<ReduceAttrs>().to_apply);
    case AttrKind::kReduceWindow:
      WindowText(i.as<ReduceWindowAttrs>().window);
      return CompText("to_apply", i.as<ReduceWindowAttrs>().to_apply);
    case AttrKind::kSelectAndScatter:
      WindowText(i.as<SelectAndScatterAttrs>().window);
      CompText("select", i.as<SelectAndScatterAttrs>().select);
      return CompText("scatter", i.as<SelectAndScatterAttrs>().scatter);
    case AttrKind::kSort: {
      const SortAttrs& a = i.as<SortAttrs>();
      absl::StrAppend(&out_, ", dimensions={", a.dimension, "}");
      Flag("is_stable", a.is_stable);
      return CompText("to_apply", a.to_apply);
    }
    case AttrKind::kTopK: {
      const TopKAttrs& a = i.as<TopKAttrs>();
      IntText("k", a.k);
      Word("largest", a.largest ? "true" : "false");
      if (a.is_stable >= 0) Word("is_stable", a.is_stable ? "true" : "false");
      return;
    }
    case AttrKind::kScan: {
      const ScanAttrs& a = i.as<ScanAttrs>();
      absl::StrAppend(&out_, ", dimensions={", a.dimension, "}");
      IntText("num_carries", a.num_carries);
      Flag("is_reverse", a.is_reverse);
      if (a.is_associative >= 0) Word("is_associative", a.is_associative ? "true" : "false");
      return CompText("to_apply", a.to_apply);
    }
    case AttrKind::kDot: return DotText(i.as<DotAttrs>());
    case AttrKind::kConvolution: return ConvolutionText(i.as<ConvolutionAttrs>());
    case AttrKind::kFft: {
      static constexpr absl::string_view kTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
      Word("fft_type", kTypes[static_cast<int>(i.as<FftAttrs>().type)]);
      return IntsText("fft_length", i.as<FftAttrs>().length);
    }
    case AttrKind::kCholesky: return Flag("lower", i.as<CholeskyAttrs>().lower);
    case AttrKind::kTriangularSolve: {
      const TriangularSolveAttrs& a = i.as<TriangularSolveAttrs>();
      Flag("left_side", a.left_side);
      Flag("lower", a.lower);
      Flag("unit_diagonal", a.unit_diagonal);
      return Word("transpose_a", a.transpose_a);
    }
    case AttrKind::kGather: return GatherText(i.as<GatherAttrs>());
    case AttrKind::kScatter: return ScatterText(i.as<ScatterAttrs>());
    case AttrKind::kBatchNorm:
      out_ += ", epsilon=";
      AppendReal(ElementType::kF32, EncodeFloat(ElementType::kF32, i.as<BatchNormAttrs>().epsilon),
                 &out_);
      return IntText("feature_index", i.as<BatchNormAttrs>().feature_index);
    case AttrKind::kRng: return Word("distribution", i.as<RngAttrs>().distribution);
    case AttrKind::kRngBitGenerator:
      return Word("algorithm", i.as<RngBitGeneratorAttrs>().algorithm);
    case AttrKind::kRngState: return IntText("delta", i.as<RngStateAttrs>().delta);
    case AttrKind::kWhile:
      CompText("condition", i.as<WhileAttrs>().condition);
      return CompText("body", i.as<WhileAttrs>().body);
    case AttrKind::kConditional: {
      const ConditionalAttrs& a = i.as<ConditionalAttrs>();
      if (!a.is_pred || a.branches.size() != 2) {
        return CompsText("branch_computations", a.branches);
      }
      CompText("true_computation", a.branches[0]);
      return CompText("false_computation", a.branches[1]);
    }
    case AttrKind::kCall:
      CompText("to_apply", i.as<CallAttrs>().to_apply);
      return Flag("is_composite", i.as<CallAttrs>().is_composite);
    case AttrKind::kFusion:
      Word("kind", i.as<FusionAttrs>().kind);
      Word("output_to_operand_aliasing", i.as<FusionAttrs>().aliasing);
      return CompText("calls", i.as<FusionAttrs>().calls);
    case AttrKind::kCustomCall: return CustomCallText(i.as<CustomCallAttrs>());
    case AttrKind::kInfeed:
      if (!i.as<InfeedAttrs>().config.empty()) {
        StringText("infeed_config", i.as<InfeedAttrs>().config);
      }
      return;
    case AttrKind::kOutfeed: {
      const OutfeedAttrs& a = i.as<OutfeedAttrs>();
      if (a.shape != nullptr) {
        out_ += ", outfeed_shape=";
        ShapeText(a.shape, true);
      }
      if (!a.config.empty()) StringText("outfeed_config", a.config);
      return;
    }
    case AttrKind::kSendRecv:
      if (i.as<SendRecvAttrs>().channel_id >= 0) {
        IntText("channel_id", i.as<SendRecvAttrs>().channel_id);
      }
      return Flag("is_host_transfer", i.as<SendRecvAttrs>().is_host_transfer);
    case AttrKind::kDomain: return Word("domain", i.as<DomainAttrs>().domain);
    case AttrKind::kCopyStart: {
      const int64_t index = i.as<CopyStartAttrs>().cross_program_prefetch_index;
      if (index >= 0) IntText("cross_program_prefetch_index", index);
      return;
    }
    case AttrKind::kReducePrecision:
      IntText("exponent_bits", i.as<ReducePrecisionAttrs>().exponent_bits);
      return IntText("mantissa_bits", i.as<ReducePrecisionAttrs>().mantissa_bits);
    case AttrKind::kCollective: return CollectiveText(i.opcode, i.as<CollectiveAttrs>());
    case AttrKind::kPermute: return PermuteText(i.as<PermuteAttrs>());
    case AttrKind::kAsync: return AsyncText(i);
  }
}

}  // namespace shardcall::hlo_text
