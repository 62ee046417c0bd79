// SPDX-License-Identifier: Apache-2.0
// From the slots of an instruction's attributes to its interned record; those of
// calls and collectives are in parser_records_calls.cc.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/text/parser_slots.h"

namespace shardcall::hlo_text {
namespace {

constexpr absl::string_view kDotAlgorithms[] = {"unset",
                                                "dot_any_f8_any_f8_f32",
                                                "dot_any_f8_any_f8_f32_fast_accum",
                                                "dot_f16_f16_f16",
                                                "dot_f16_f16_f32",
                                                "dot_bf16_bf16_bf16",
                                                "dot_bf16_bf16_f32",
                                                "dot_bf16_bf16_f32_x3",
                                                "dot_bf16_bf16_f32_x6",
                                                "dot_bf16_bf16_f32_x9",
                                                "dot_tf32_tf32_f32",
                                                "dot_tf32_tf32_f32_x3",
                                                "dot_f32_f32_f32",
                                                "dot_f64_f64_f64"};

}  // namespace

bool Parser::WordIndex(const Scratch& s, Attr attr, absl::Span<const absl::string_view> words,
                       int* out) {
  const absl::string_view word = s[attr].text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return *out = static_cast<int>(i), true;
  }
  return lex_.Fail(
      s[attr].at, "E019", absl::StrCat("Unknown value of the attribute ", AttrText(attr)),
      absl::StrJoin(words, ", "), absl::StrCat("'", word, "'"), DidYouMean(word, words));
}

bool Parser::OneDimension(const Scratch& s, int64_t* out) {
  const Ints dims = s.IntsOf(A::kDimensions);
  if (dims.size() != 1) {
    return lex_.Fail(s[A::kDimensions].at, "E019", "This op has exactly one dimension",
                     "dimensions={d}", absl::StrCat(dims.size(), " dimensions"));
  }
  if (dims[0] < 0) {
    return lex_.Fail(s[A::kDimensions].at, "E019", "A dimension is negative",
                     "dimensions={d}, d >= 0", absl::StrCat(dims[0]));
  }
  *out = dims[0];
  return true;
}

bool Parser::BuildCompare(Scratch* s, const Attributes** out) {
  static constexpr absl::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  static constexpr absl::string_view kTypes[] = {"FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
  CompareAttrs a;
  int index;
  if (!WordIndex(*s, A::kDirection, kDirections, &index)) return false;
  a.direction = static_cast<Direction>(index);
  if (s->Has(A::kType)) {
    if (!WordIndex(*s, A::kType, kTypes, &index)) return false;
    a.type = static_cast<CompareType>(index);
  } else if (!s->operands.empty()) {
    const ElementType type = module_.instr(s->operands[0]).shape->element_type();
    a.type = IsFloat(type) || IsComplex(type) ? CompareType::kFloat
             : IsSignedInteger(type)          ? CompareType::kSigned
                                              : CompareType::kUnsigned;
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool Parser::BuildMap(Scratch* s, const Attributes** out) {
  ReduceAttrs a;
  a.to_apply = Comp(*s, A::kToApply);
  a.dimensions = IntsOr(*s, A::kDimensions);
  absl::InlinedVector<int64_t, 8> all;
  if (!s->Has(A::kDimensions) && !s->operands.empty()) {
    const Shape* shape = module_.instr(s->operands[0]).shape;
    for (int d = 0; d < shape->rank(); ++d) all.push_back(d);
    a.dimensions = all;
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool Parser::BuildDot(Scratch* s, const Attributes** out) {
  DotAttrs a;
  a.lhs_batch = IntsOr(*s, A::kLhsBatchDims);
  a.lhs_contracting = IntsOr(*s, A::kLhsContractingDims);
  a.rhs_batch = IntsOr(*s, A::kRhsBatchDims);
  a.rhs_contracting = IntsOr(*s, A::kRhsContractingDims);
  a.lhs_ragged = IntsOr(*s, A::kLhsRaggedDims);
  a.rhs_group = IntsOr(*s, A::kRhsGroupDims);
  a.operand_precision = TextOf(*s, A::kOperandPrecision);
  if (s->Has(A::kAlgorithm)) {
    int index;
    if (!WordIndex(*s, A::kAlgorithm, kDotAlgorithms, &index)) return false;
    if (index > 0) a.algorithm = kDotAlgorithms[index];
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool Parser::BuildConvolution(Scratch* s, const Attributes** out) {
  static constexpr absl::string_view kKinds[] = {"unset", "fprop", "wgrad", "dgrad"};
  ConvolutionAttrs a;
  a.window = WindowOf(*s);
  a.dim_labels = TextOf(*s, A::kDimLabels);
  a.feature_group_count = IntOr(*s, A::kFeatureGroupCount, 1);
  a.batch_group_count = IntOr(*s, A::kBatchGroupCount, 1);
  a.operand_precision = TextOf(*s, A::kOperandPrecision);
  a.sparsity_config = TextOf(*s, A::kSparsityConfig);
  int index = 0;
  if (s->Has(A::kConvolutionKind)) {
    if (!WordIndex(*s, A::kConvolutionKind, kKinds, &index)) return false;
    if (index > 0) a.convolution_kind = kKinds[index];
  }
  if (s->Has(A::kAlgorithm)) {
    if (!WordIndex(*s, A::kAlgorithm, kDotAlgorithms, &index)) return false;
    if (index > 0) a.algorithm = kDotAlgorithms[index];
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool Parser::BuildAttributes(Scratch* scratch, Opcode opcode, const Attributes** out) {
  Scratch& s = *scratch;
  const auto intern = [&](const auto& record) {
    *out = InternAttributes(context_, record);
    return true;
  };
  switch (GetOpcodeInfo(opcode).attrs) {
    case AttrKind::kNone: *out = NoAttributes(); return true;
    case AttrKind::kResultAccuracy: {
      ResultAccuracyAttrs a;
      a.result_accuracy = TextOf(s, A::kResultAccuracy);
      return intern(a);
    }
    case AttrKind::kCompare: return BuildCompare(&s, out);
    case AttrKind::kParameter: {
      ParameterAttrs a;
      a.number = s.parameter_number;
      static_assert(sizeof(bool) == sizeof(char));
      if (s.Has(A::kParameterReplication)) {
        a.replication =
            absl::MakeConstSpan(reinterpret_cast<const bool*>(s.bools.data()), s.bools.size());
      }
      return intern(a);
    }
    case AttrKind::kConstant: {
      ConstantAttrs a;
      a.literal = s.literal;
      return intern(a);
    }
    case AttrKind::kIota: {
      IotaAttrs a;
      a.dimension = s[A::kIotaDimension].value;
      return intern(a);
    }
    case AttrKind::kTupleIndex: {
      TupleIndexAttrs a;
      a.index = s[A::kIndex].value;
      return intern(a);
    }
    case AttrKind::kDimensions: {
      DimensionsAttrs a;
      a.dimensions = IntsOr(s, A::kDimensions);
      const bool one = opcode == Opcode::kConcatenate || opcode == Opcode::kGetDimensionSize ||
                       opcode == Opcode::kSetDimensionSize;
      int64_t dimension;
      if (one && !OneDimension(s, &dimension)) return false;
      if (!s.Has(A::kDimensions) && !s.operands.empty() &&
          module_.instr(s.operands[0]).shape->rank() > 0) {
        return lex_.Fail(s.opcode_at, "E006", "An attribute is missing",
                         "dimensions= on broadcast of an array");
      }
      return intern(a);
    }
    case AttrKind::kReshape: {
      ReshapeAttrs a;
      a.inferred_dimension = IntOr(s, A::kInferredDimension, -1);
      return intern(a);
    }
    case AttrKind::kSlice: {
      SliceAttrs a;
      a.starts = s.Part(A::kSlice, 0, 3);
      a.limits = s.Part(A::kSlice, 1, 3);
      a.strides = s.Part(A::kSlice, 2, 3);
      return intern(a);
    }
    case AttrKind::kDynamicSlice: {
      DynamicSliceAttrs a;
      a.sizes = s.IntsOf(A::kDynamicSliceSizes);
      return intern(a);
    }
    case AttrKind::kPad: {
      PadAttrs a;
      a.low = s.Part(A::kPadding, 0, 3);
      a.high = s.Part(A::kPadding, 1, 3);
      a.interior = s.Part(A::kPadding, 2, 3);
      return intern(a);
    }
    case AttrKind::kReduce: {
      if (opcode == Opcode::kMap) return BuildMap(&s, out);
      ReduceAttrs a;
      a.dimensions = s.IntsOf(A::kDimensions);
      a.to_apply = Comp(s, A::kToApply);
      return intern(a);
    }
    case AttrKind::kReduceWindow: {
      ReduceWindowAttrs a;
      a.window = WindowOf(s);
      a.to_apply = Comp(s, A::kToApply);
      return intern(a);
    }
    case AttrKind::kSelectAndScatter: {
      SelectAndScatterAttrs a;
      a.window = WindowOf(s);
      a.select = Comp(s, A::kSelect);
      a.scatter = Comp(s, A::kScatter);
      return intern(a);
    }
    case AttrKind::kSort: {
      SortAttrs a;
      if (!OneDimension(s, &a.dimension)) return false;
      a.is_stable = Flag(s, A::kIsStable);
      a.to_apply = Comp(s, A::kToApply);
      return intern(a);
    }
    case AttrKind::kTopK: {
      TopKAttrs a;
      a.k = s[A::kK].value;
      if (s.Has(A::kLargest)) a.largest = Flag(s, A::kLargest);
      if (s.Has(A::kIsStable)) a.is_stable = Flag(s, A::kIsStable);
      return intern(a);
    }
    case AttrKind::kScan: {
      ScanAttrs a;
      if (!OneDimension(s, &a.dimension)) return false;
      a.num_carries = s[A::kNumCarries].value;
      a.is_reverse = Flag(s, A::kIsReverse);
      a.is_associative = Flag(s, A::kIsAssociative);
      a.to_apply = Comp(s, A::kToApply);
      return intern(a);
    }
    case AttrKind::kDot: return BuildDot(&s, out);
    case AttrKind::kConvolution: return BuildConvolution(&s, out);
    case AttrKind::kFft: {
      static constexpr absl::string_view kTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
      FftAttrs a;
      int index;
      if (!WordIndex(s, A::kFftType, kTypes, &index)) return false;
      a.type = static_cast<FftType>(index);
      a.length = s.IntsOf(A::kFftLength);
      return intern(a);
    }
    case AttrKind::kCholesky: {
      CholeskyAttrs a;
      a.lower = Flag(s, A::kLower);
      return intern(a);
    }
    case AttrKind::kTriangularSolve: {
      static constexpr absl::string_view kForms[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE",
                                                     "TRANSPOSE", "ADJOINT"};
      TriangularSolveAttrs a;
      a.left_side = Flag(s, A::kLeftSide);
      a.lower = Flag(s, A::kLower);
      a.unit_diagonal = Flag(s, A::kUnitDiagonal);
      int index = 0;
      if (s.Has(A::kTransposeA) && !WordIndex(s, A::kTransposeA, kForms, &index)) return false;
      if (index > 0) a.transpose_a = kForms[index];
      return intern(a);
    }
    case AttrKind::kGather: {
      GatherAttrs a;
      a.offset_dims = s.IntsOf(A::kOffsetDims);
      a.collapsed_slice_dims = s.IntsOf(A::kCollapsedSliceDims);
      a.start_index_map = s.IntsOf(A::kStartIndexMap);
      a.operand_batching_dims = IntsOr(s, A::kOperandBatchingDims);
      a.start_indices_batching_dims = IntsOr(s, A::kStartIndicesBatchingDims);
      if (s[A::kSliceSizes].value > 0) {
        return lex_.Fail(s[A::kSliceSizes].at, "E019", "slice_sizes of gather is one list",
                         "{1,2}");
      }
      a.slice_sizes = s.IntsOf(A::kSliceSizes);
      a.index_vector_dim = s[A::kIndexVectorDim].value;
      a.indices_are_sorted = Flag(s, A::kIndicesAreSorted);
      return intern(a);
    }
    case AttrKind::kScatter: {
      ScatterAttrs a;
      a.update_window_dims = s.IntsOf(A::kUpdateWindowDims);
      a.inserted_window_dims = s.IntsOf(A::kInsertedWindowDims);
      a.scatter_dims_to_operand_dims = s.IntsOf(A::kScatterDimsToOperandDims);
      a.input_batching_dims = IntsOr(s, A::kInputBatchingDims);
      a.scatter_indices_batching_dims = IntsOr(s, A::kScatterIndicesBatchingDims);
      a.index_vector_dim = s[A::kIndexVectorDim].value;
      a.indices_are_sorted = Flag(s, A::kIndicesAreSorted);
      a.unique_indices = Flag(s, A::kUniqueIndices);
      a.to_apply = Comp(s, A::kToApply);
      return intern(a);
    }
    case AttrKind::kBatchNorm: {
      BatchNormAttrs a;
      a.epsilon = static_cast<float>(s[A::kEpsilon].number);  // as XLA keeps it
      a.feature_index = s[A::kFeatureIndex].value;
      return intern(a);
    }
    case AttrKind::kRng: {
      static constexpr absl::string_view kDistributions[] = {"rng_uniform", "rng_normal"};
      RngAttrs a;
      int index;
      if (!WordIndex(s, A::kDistribution, kDistributions, &index)) return false;
      a.distribution = kDistributions[index];
      return intern(a);
    }
    case AttrKind::kRngBitGenerator: {
      static constexpr absl::string_view kAlgorithms[] = {"rng_default", "rng_three_fry",
                                                          "rng_philox"};
      RngBitGeneratorAttrs a;
      int index;
      if (!WordIndex(s, A::kAlgorithm, kAlgorithms, &index)) return false;
      a.algorithm = kAlgorithms[index];
      return intern(a);
    }
    case AttrKind::kRngState: {
      RngStateAttrs a;
      a.delta = s[A::kDelta].value;
      return intern(a);
    }
    case AttrKind::kWhile: {
      WhileAttrs a;
      a.condition = Comp(s, A::kCondition);
      a.body = Comp(s, A::kBody);
      return intern(a);
    }
    case AttrKind::kConditional: return BuildConditional(&s, out);
    case AttrKind::kCall: {
      CallAttrs a;
      a.to_apply = Comp(s, A::kToApply);
      a.is_composite = Flag(s, A::kIsComposite);
      return intern(a);
    }
    case AttrKind::kFusion: {
      static constexpr absl::string_view kKinds[] = {"kLoop", "kInput", "kOutput", "kCustom"};
      FusionAttrs a;
      int index;
      if (!WordIndex(s, A::kKind, kKinds, &index)) return false;
      a.kind = kKinds[index];
      a.aliasing = TextOf(s, A::kOutputToOperandAliasing);
      a.calls = Comp(s, A::kCalls);
      return intern(a);
    }
    case AttrKind::kCustomCall: return BuildCustomCall(&s, out);
    case AttrKind::kInfeed: {
      InfeedAttrs a;
      a.config = TextOf(s, A::kInfeedConfig);
      return intern(a);
    }
    case AttrKind::kOutfeed: {
      OutfeedAttrs a;
      a.config = TextOf(s, A::kOutfeedConfig);
      if (s.Has(A::kOutfeedShape)) {
        a.shape = s.outfeed_shape;
      } else if (!s.operands.empty()) {
        a.shape = module_.instr(s.operands[0]).shape;
      }
      return intern(a);
    }
    case AttrKind::kSendRecv: {
      SendRecvAttrs a;
      a.channel_id = IntOr(s, A::kChannelId, -1);
      a.is_host_transfer = Flag(s, A::kIsHostTransfer);
      return intern(a);
    }
    case AttrKind::kDomain: {
      DomainAttrs a;
      a.domain = s[A::kDomain].text;
      return intern(a);
    }
    case AttrKind::kCopyStart: {
      CopyStartAttrs a;
      a.cross_program_prefetch_index = IntOr(s, A::kCrossProgramPrefetchIndex, -1);
      return intern(a);
    }
    case AttrKind::kReducePrecision: {
      ReducePrecisionAttrs a;
      a.exponent_bits = s[A::kExponentBits].value;
      a.mantissa_bits = s[A::kMantissaBits].value;
      return intern(a);
    }
    case AttrKind::kCollective: return BuildCollective(&s, opcode, out);
    case AttrKind::kPermute: return BuildPermute(&s, out);
    case AttrKind::kAsync: return false;  // built by BuildAsync
  }
  return false;
}

}  // namespace shardcall::hlo_text
