// SPDX-License-Identifier: Apache-2.0
// From the fields of an instruction to its interned record; those of calls,
// custom calls and collectives are in reader_calls.cc.
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/proto/reader.h"
#include "shardcall/partitioner/ir/proto/text_values.h"

namespace shardcall::hlo_proto {

bool Reader::OneDimension(int64_t* out) {
  if (p_.dimensions_size() != 1) {
    return Fail("E019", "This op has exactly one dimension", "dimensions", "1",
                absl::StrCat(p_.dimensions_size()));
  }
  *out = p_.dimensions(0);
  return true;
}

bool Reader::Calls(size_t n) {
  return called_.size() == n ||
         Fail("E019", "Wrong number of called computations", "called_computation_ids",
              absl::StrCat(n), absl::StrCat(called_.size()));
}

bool Reader::ReadCompare(const Attributes** out) {
  CompareAttrs a;
  const int direction = IndexOf(p_.comparison_direction(), kDirections);
  if (direction < 0) {
    return Fail("E019", "Unknown direction of comparison", "comparison_direction",
                absl::StrJoin(kDirections, ", "),
                absl::StrCat("'", absl::CEscape(p_.comparison_direction()).substr(0, 80), "'"));
  }
  a.direction = static_cast<Direction>(direction);
  if (!p_.comparison_type().empty()) {
    const int type = IndexOf(p_.comparison_type(), kCompareTypes);
    if (type < 0) {
      return Fail("E019", "Unknown type of comparison", "comparison_type",
                  absl::StrJoin(kCompareTypes, ", "),
                  absl::StrCat("'", absl::CEscape(p_.comparison_type()).substr(0, 80), "'"));
    }
    a.type = static_cast<CompareType>(type);
  } else if (!operands_.empty()) {
    const ElementType type = module_.instr(operands_[0]).shape->element_type();
    a.type = IsFloat(type) || IsComplex(type) ? CompareType::kFloat
             : IsSignedInteger(type)          ? CompareType::kSigned
                                              : CompareType::kUnsigned;
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool Reader::ReadDot(Opcode opcode, const Attributes** out) {
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
  if (!Precision(p_.precision_config(), &a.operand_precision, &a.algorithm)) return false;
  *out = InternAttributes(context_, a);
  return true;
}

bool Reader::ReadConvolution(const Attributes** out) {
  ConvolutionAttrs a;
  std::string sparsity = SparsityText(p_.sparsity_config());
  if (!ReadWindow(p_.window(), &a.window) ||
      !DimLabels(p_.convolution_dimension_numbers(), &a.dim_labels) ||
      !Precision(p_.precision_config(), &a.operand_precision, &a.algorithm) ||
      !Word("conv_kind", p_.conv_kind(), kConvolutionKinds, &a.convolution_kind)) {
    return false;
  }
  if (p_.feature_group_count() != 0) a.feature_group_count = p_.feature_group_count();
  if (p_.batch_group_count() != 0) a.batch_group_count = p_.batch_group_count();
  a.sparsity_config = sparsity;
  *out = InternAttributes(context_, a);
  return true;
}

bool Reader::ReadGather(const Attributes** out) {
  GatherAttrs a;
  const hlo_pb::GatherDimensionNumbers& d = p_.gather_dimension_numbers();
  a.offset_dims = IntsOf(d.offset_dims());
  a.collapsed_slice_dims = IntsOf(d.collapsed_slice_dims());
  a.start_index_map = IntsOf(d.start_index_map());
  a.operand_batching_dims = IntsOf(d.operand_batching_dims());
  a.start_indices_batching_dims = IntsOf(d.start_indices_batching_dims());
  a.slice_sizes = IntsOf(p_.gather_slice_sizes());
  a.index_vector_dim = d.index_vector_dim();
  a.indices_are_sorted = p_.indices_are_sorted();
  *out = InternAttributes(context_, a);
  return true;
}

bool Reader::ReadScatter(const Attributes** out) {
  ScatterAttrs a;
  if (!Calls(1)) return false;
  const hlo_pb::ScatterDimensionNumbers& d = p_.scatter_dimension_numbers();
  a.update_window_dims = IntsOf(d.update_window_dims());
  a.inserted_window_dims = IntsOf(d.inserted_window_dims());
  a.scatter_dims_to_operand_dims = IntsOf(d.scatter_dims_to_operand_dims());
  a.input_batching_dims = IntsOf(d.input_batching_dims());
  a.scatter_indices_batching_dims = IntsOf(d.scatter_indices_batching_dims());
  a.index_vector_dim = d.index_vector_dim();
  a.indices_are_sorted = p_.indices_are_sorted();
  a.unique_indices = p_.unique_indices();
  a.to_apply = called_[0];
  *out = InternAttributes(context_, a);
  return true;
}

bool Reader::ReadAttributes(Opcode opcode, const Attributes** out) {
  const auto intern = [&](const auto& record) {
    *out = InternAttributes(context_, record);
    return true;
  };
  switch (GetOpcodeInfo(opcode).attrs) {
    case AttrKind::kNone: *out = NoAttributes(); return Calls(0);
    case AttrKind::kResultAccuracy: {
      ResultAccuracyAttrs a;
      const std::string text = AccuracyText(p_.result_accuracy());
      a.result_accuracy = text;
      return intern(a);
    }
    case AttrKind::kCompare: return ReadCompare(out);
    case AttrKind::kParameter: {
      ParameterAttrs a;
      a.number = p_.parameter_number();
      const auto& leaves = p_.parameter_replication().replicated_at_leaf_buffers();
      a.replication = absl::MakeConstSpan(leaves.data(), leaves.size());
      return intern(a);
    }
    case AttrKind::kConstant: {
      ConstantAttrs a;
      if (!p_.has_literal()) {
        return Fail("E011", "A constant has no value", "literal", "a literal");
      }
      return ReadLiteral(p_.literal(), "literal", &a.literal) && intern(a);
    }
    case AttrKind::kIota: {
      IotaAttrs a;
      return OneDimension(&a.dimension) && intern(a);
    }
    case AttrKind::kTupleIndex: {
      TupleIndexAttrs a;
      a.index = p_.tuple_index();
      return intern(a);
    }
    case AttrKind::kDimensions: {
      DimensionsAttrs a;
      a.dimensions = IntsOf(p_.dimensions());
      int64_t one;
      if ((opcode == Opcode::kConcatenate || opcode == Opcode::kGetDimensionSize ||
           opcode == Opcode::kSetDimensionSize) &&
          !OneDimension(&one)) {
        return false;
      }
      return intern(a);
    }
    case AttrKind::kReshape: {
      ReshapeAttrs a;
      return (p_.dimensions_size() == 0 || OneDimension(&a.inferred_dimension)) && intern(a);
    }
    case AttrKind::kSlice: {
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
      return intern(a);
    }
    case AttrKind::kDynamicSlice: {
      DynamicSliceAttrs a;
      a.sizes = IntsOf(p_.dynamic_slice_sizes());
      return intern(a);
    }
    case AttrKind::kPad: {
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
      return intern(a);
    }
    case AttrKind::kReduce: {
      ReduceAttrs a;
      if (!Calls(1)) return false;
      a.dimensions = IntsOf(p_.dimensions());
      a.to_apply = called_[0];
      return intern(a);
    }
    case AttrKind::kReduceWindow: {
      ReduceWindowAttrs a;
      if (!Calls(1) || !ReadWindow(p_.window(), &a.window)) return false;
      a.to_apply = called_[0];
      return intern(a);
    }
    case AttrKind::kSelectAndScatter: {
      SelectAndScatterAttrs a;
      if (!Calls(2) || !ReadWindow(p_.window(), &a.window)) return false;
      a.select = called_[0];
      a.scatter = called_[1];
      return intern(a);
    }
    case AttrKind::kSort: {
      SortAttrs a;
      if (!Calls(1) || !OneDimension(&a.dimension)) return false;
      a.is_stable = p_.is_stable();
      a.to_apply = called_[0];
      return intern(a);
    }
    case AttrKind::kTopK: {
      TopKAttrs a;
      a.k = p_.k();
      a.largest = p_.largest();
      if (p_.is_stable() || (p_.shardcall_written() & 1)) a.is_stable = p_.is_stable();
      return intern(a);
    }
    case AttrKind::kScan: {
      ScanAttrs a;
      if (!Calls(1) || !OneDimension(&a.dimension)) return false;
      if (p_.is_associative() < 0 || p_.is_associative() > 2) {
        return Fail("E019", "Unknown value", "is_associative", "0, 1 (true) or 2 (false)",
                    absl::StrCat(p_.is_associative()));
      }
      a.num_carries = p_.num_carries();
      a.is_reverse = p_.is_reverse();
      a.is_associative = p_.is_associative() == 0 ? -1 : p_.is_associative() == 1;
      a.to_apply = called_[0];
      return intern(a);
    }
    case AttrKind::kDot: return ReadDot(opcode, out);
    case AttrKind::kConvolution: return ReadConvolution(out);
    case AttrKind::kFft: {
      FftAttrs a;
      if (p_.fft_type() < 0 || p_.fft_type() > 3) {
        return Fail("E019", "Unknown value", "fft_type", "0 (FFT) to 3 (IRFFT)",
                    absl::StrCat(p_.fft_type()));
      }
      a.type = static_cast<FftType>(p_.fft_type());
      a.length = IntsOf(p_.fft_length());
      return intern(a);
    }
    case AttrKind::kCholesky: {
      CholeskyAttrs a;
      a.lower = p_.cholesky_options().lower();
      return intern(a);
    }
    case AttrKind::kTriangularSolve: {
      TriangularSolveAttrs a;
      const hlo_pb::TriangularSolveOptions& o = p_.triangular_solve_options();
      a.left_side = o.left_side();
      a.lower = o.lower();
      a.unit_diagonal = o.unit_diagonal();
      return Word("triangular_solve_options.transpose_a", o.transpose_a(), kTransposes,
                  &a.transpose_a) &&
             intern(a);
    }
    case AttrKind::kGather: return ReadGather(out);
    case AttrKind::kScatter: return ReadScatter(out);
    case AttrKind::kBatchNorm: {
      BatchNormAttrs a;
      a.epsilon = p_.epsilon();
      a.feature_index = p_.feature_index();
      return intern(a);
    }
    case AttrKind::kRng: {
      RngAttrs a;
      if (p_.distribution() == 0) return FailEnum("distribution", 0, kDistributions);
      return Word("distribution", p_.distribution(), kDistributions, &a.distribution) && intern(a);
    }
    case AttrKind::kRngBitGenerator: {
      RngBitGeneratorAttrs a;
      return Word("rng_algorithm", p_.rng_algorithm(), kRngAlgorithms, &a.algorithm) && intern(a);
    }
    case AttrKind::kRngState: {
      RngStateAttrs a;
      a.delta = p_.delta();
      return intern(a);
    }
    case AttrKind::kWhile: {
      WhileAttrs a;
      if (!Calls(2)) return false;
      a.body = called_[0];
      a.condition = called_[1];
      return intern(a);
    }
    case AttrKind::kConditional: return ReadConditional(out);
    case AttrKind::kCall: {
      CallAttrs a;
      if (!Calls(1)) return false;
      a.to_apply = called_[0];
      a.is_composite = p_.is_composite();
      return intern(a);
    }
    case AttrKind::kFusion: {
      FusionAttrs a;
      const int kind = IndexOf(p_.fusion_kind(), kFusionKinds);
      if (kind < 0) {
        return Fail("E019", "Unknown kind of fusion", "fusion_kind",
                    absl::StrJoin(kFusionKinds, ", "),
                    absl::StrCat("'", absl::CEscape(p_.fusion_kind()).substr(0, 80), "'"));
      }
      if (!Calls(1) || !Aliasing(&a.aliasing)) return false;
      a.kind = kFusionKinds[kind];
      a.calls = called_[0];
      return intern(a);
    }
    case AttrKind::kCustomCall: return ReadCustomCall(out);
    case AttrKind::kInfeed: {
      InfeedAttrs a;
      a.config = p_.infeed_config();
      return intern(a);
    }
    case AttrKind::kOutfeed: {
      OutfeedAttrs a;
      a.config = p_.outfeed_config();
      if (p_.has_outfeed_shape()) {
        if (!ReadShape(p_.outfeed_shape(), "outfeed_shape", &a.shape)) return false;
      } else if (!operands_.empty()) {
        a.shape = module_.instr(operands_[0]).shape;
      }
      return intern(a);
    }
    case AttrKind::kSendRecv: {
      SendRecvAttrs a;
      if (p_.channel_id() > 0) a.channel_id = p_.channel_id();
      a.is_host_transfer = p_.is_host_transfer();
      return intern(a);
    }
    case AttrKind::kDomain: return ReadDomain(out);
    case AttrKind::kCopyStart: {
      CopyStartAttrs a;
      if (p_.has_cross_program_prefetch_index()) {
        a.cross_program_prefetch_index = p_.cross_program_prefetch_index();
      }
      return intern(a);
    }
    case AttrKind::kReducePrecision: {
      ReducePrecisionAttrs a;
      a.exponent_bits = p_.exponent_bits();
      a.mantissa_bits = p_.mantissa_bits();
      return intern(a);
    }
    case AttrKind::kCollective: return ReadCollective(opcode, out);
    case AttrKind::kPermute: return ReadPermute(out);
    case AttrKind::kAsync: return ReadAsync(opcode, out);
  }
  return false;
}

}  // namespace shardcall::hlo_proto
