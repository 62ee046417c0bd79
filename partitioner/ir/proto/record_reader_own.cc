// SPDX-License-Identifier: Apache-2.0
// Attribute records with fields that have no row in the schema, except those of calls
// (record_reader_calls.cc).
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/proto/record_fields.h"
#include "shardcall/partitioner/ir/proto/text_values.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

bool RecordReader::Read(RecordType<ResultAccuracyAttrs>, Opcode, const Attributes** out) {
  ResultAccuracyAttrs a;
  const std::string text = AccuracyText(p_.result_accuracy());
  a.result_accuracy = text;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<ParameterAttrs>, Opcode, const Attributes** out) {
  ParameterAttrs a;
  a.number = p_.parameter_number();
  const auto& leaves = p_.parameter_replication().replicated_at_leaf_buffers();
  a.replication = absl::MakeConstSpan(leaves.data(), leaves.size());
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<ConstantAttrs>, Opcode, const Attributes** out) {
  ConstantAttrs a;
  if (!p_.has_literal()) {
    return faults_.Fail("E011", "A constant has no value", "literal", "a literal");
  }
  if (!values_.ReadLiteral(p_.literal(), "literal", &a.literal)) return false;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<SliceAttrs>, Opcode, const Attributes** out) {
  SliceAttrs a;
  std::vector<int64_t> starts, limits, strides;
  for (const auto& d : p_.slice_dimensions()) {
    starts.push_back(d.start());
    limits.push_back(d.limit());
    strides.push_back(d.stride());
  }
  a.starts = starts;
  a.limits = limits;
  a.strides = strides;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<PadAttrs>, Opcode, const Attributes** out) {
  PadAttrs a;
  std::vector<int64_t> low, high, interior;
  for (const auto& d : p_.padding_config().dimensions()) {
    low.push_back(d.edge_padding_low());
    high.push_back(d.edge_padding_high());
    interior.push_back(d.interior_padding());
  }
  a.low = low;
  a.high = high;
  a.interior = interior;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<TopKAttrs>, Opcode, const Attributes** out) {
  TopKAttrs a;
  if (!ReadFields(&a)) return false;
  if (!p_.is_stable() && (p_.shardcall_written() & 1)) a.is_stable = 0;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<DotAttrs>, Opcode opcode, const Attributes** out) {
  DotAttrs a;
  const hlo_pb::RaggedDotDimensionNumbers& ragged = p_.ragged_dot_dimension_numbers();
  const hlo_pb::DotDimensionNumbers& d =
      opcode == Opcode::kRaggedDot ? ragged.dot_dimension_numbers() : p_.dot_dimension_numbers();
  a.lhs_batch = IntsOf(d.lhs_batch_dimensions());
  a.lhs_contracting = IntsOf(d.lhs_contracting_dimensions());
  a.rhs_batch = IntsOf(d.rhs_batch_dimensions());
  a.rhs_contracting = IntsOf(d.rhs_contracting_dimensions());
  if (opcode == Opcode::kRaggedDot) {
    a.lhs_ragged = IntsOf(ragged.lhs_ragged_dimensions());
    a.rhs_group = IntsOf(ragged.rhs_group_dimensions());
  }
  if (!values_.Precision(p_.precision_config(), &a.operand_precision, &a.algorithm)) return false;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<ConvolutionAttrs>, Opcode, const Attributes** out) {
  ConvolutionAttrs a;
  std::string sparsity = SparsityText(p_.sparsity_config());
  if (!values_.ReadWindow(p_.window(), &a.window) ||
      !values_.DimLabels(p_.convolution_dimension_numbers(), &a.dim_labels) ||
      !values_.Precision(p_.precision_config(), &a.operand_precision, &a.algorithm) ||
      !values_.Word("conv_kind", p_.conv_kind(), words::kConvolutionKinds.words,
                    &a.convolution_kind)) {
    return false;
  }
  if (p_.feature_group_count() != 0) a.feature_group_count = p_.feature_group_count();
  if (p_.batch_group_count() != 0) a.batch_group_count = p_.batch_group_count();
  a.sparsity_config = sparsity;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordReader::Read(RecordType<OutfeedAttrs>, Opcode, const Attributes** out) {
  OutfeedAttrs a;
  a.config = p_.outfeed_config();
  if (p_.has_outfeed_shape()) {
    if (!values_.ReadShape(p_.outfeed_shape(), "outfeed_shape", &a.shape)) return false;
  } else if (!operands_.empty()) {
    a.shape = module_.instr(operands_[0]).shape;
  }
  *out = InternAttributes(context_, a);
  return true;
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
