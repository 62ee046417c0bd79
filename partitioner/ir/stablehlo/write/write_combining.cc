// SPDX-License-Identifier: Apache-2.0
// Writes ops that combine elements: reductions, contractions, gather and scatter, sort.
#include <initializer_list>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/shapes/dim_labels.h"
#include "shardcall/partitioner/ir/stablehlo/write/module_writer.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

// Dimension numbers that are lists, and those that end in one number.
BytecodeSink Lists(codes::StablehloAttribute code,
                   std::initializer_list<absl::Span<const int64_t>> lists) {
  BytecodeSink s(code);
  for (const absl::Span<const int64_t> list : lists) s.SignedList(list);
  return s;
}
BytecodeSink ListsAndNumber(codes::StablehloAttribute code,
                            std::initializer_list<absl::Span<const int64_t>> lists,
                            int64_t number) {
  BytecodeSink s = Lists(code, lists);
  s.SignedVarInt(number);
  return s;
}

// An operation with one region.
absl::Status WithRegion(ModuleWriter& w, InstrId id, CompId comp, Attrs attributes) {
  std::vector<WrittenRegion> regions(1);
  SHARDCALL_ASSIGN_OR_RETURN(regions[0], w.RegionOf(id, comp));
  return w.Emit(id, std::move(attributes), std::move(regions));
}

// Also of map.
absl::Status WriteReduce(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<ReduceAttrs>();
  return WithRegion(w, id, a.to_apply, {{"dimensions", w.pool().I64s(a.dimensions)}});
}

// Low and high padding of each dimension.
uint32_t Padding(ModuleWriter& w, const Window& window) {
  std::vector<int64_t> pairs;
  for (size_t d = 0; d < window.size.size(); ++d) {
    pairs.push_back(window.pad_low[d]);
    pairs.push_back(window.pad_high[d]);
  }
  return w.pool().Matrix(pairs, 2);
}

bool AllAre(absl::Span<const int64_t> values, int64_t value) {
  return absl::c_all_of(values, [&](int64_t v) { return v == value; });
}

absl::Status WriteReduceWindow(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<ReduceWindowAttrs>();
  if (!AllAre(a.window.reversal, 0)) return w.Cannot(id, "a window that is reversed");
  return WithRegion(w, id, a.to_apply,
                    {{"window_dimensions", w.pool().I64s(a.window.size)},
                     {"window_strides", w.pool().I64s(a.window.stride)},
                     {"base_dilations", w.pool().I64s(a.window.lhs_dilate)},
                     {"window_dilations", w.pool().I64s(a.window.rhs_dilate)},
                     {"padding", Padding(w, a.window)}});
}

absl::Status WriteSelectAndScatter(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<SelectAndScatterAttrs>();
  if (!AllAre(a.window.reversal, 0) || !AllAre(a.window.lhs_dilate, 1) ||
      !AllAre(a.window.rhs_dilate, 1)) {
    return w.Cannot(id, "a window that is dilated or reversed");
  }
  std::vector<WrittenRegion> regions(2);
  SHARDCALL_ASSIGN_OR_RETURN(regions[0], w.RegionOf(id, a.select));
  SHARDCALL_ASSIGN_OR_RETURN(regions[1], w.RegionOf(id, a.scatter));
  return w.Emit(id,
                {{"window_dimensions", w.pool().I64s(a.window.size)},
                 {"window_strides", w.pool().I64s(a.window.stride)},
                 {"padding", Padding(w, a.window)}},
                std::move(regions));
}

absl::Status WriteSort(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<SortAttrs>();
  return WithRegion(
      w, id, a.to_apply,
      {{"dimension", w.pool().I64(a.dimension)}, {"is_stable", w.pool().Bool(a.is_stable)}});
}

absl::Status WriteTopK(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<TopKAttrs>();
  if (!a.largest || a.is_stable == 0)
    return w.Cannot(id, "a topk of the smallest, or an unstable one");
  return w.Emit(id, {{"k", w.pool().I64(a.k)}});
}

// Adds the precision of the operands, "{high,default}", unless all have the default.
absl::Status AddPrecision(ModuleWriter& w, InstrId id, absl::string_view text, Attrs* attributes) {
  if (text.empty()) return absl::OkStatus();
  std::vector<uint32_t> items;
  absl::ConsumePrefix(&text, "{");
  absl::ConsumeSuffix(&text, "}");
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    const int code = IndexOf(absl::StripAsciiWhitespace(word), words::kPrecisions.words);
    if (code < 0) return w.Cannot(id, "a precision that StableHLO lacks");
    items.push_back(w.pool().Enum(codes::kPrecision, static_cast<uint64_t>(code)));
  }
  attributes->emplace_back("precision_config", w.pool().Array(items));
  return absl::OkStatus();
}

absl::Status WriteDot(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<DotAttrs>();
  if (!a.algorithm.empty()) return w.Cannot(id, "a dot by an algorithm");
  const BytecodeSink numbers =
      Lists(codes::kDotDimensionNumbers,
            {a.lhs_batch, a.rhs_batch, a.lhs_contracting, a.rhs_contracting});
  Attrs attributes = {{"dot_dimension_numbers", w.pool().Stablehlo(numbers)}};
  SHARDCALL_RETURN_IF_ERROR(AddPrecision(w, id, a.operand_precision, &attributes));
  return w.Emit(id, std::move(attributes));
}

absl::Status WriteConvolution(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<ConvolutionAttrs>();
  DimLabels labels;
  if (!a.algorithm.empty() || !a.sparsity_config.empty() || !a.convolution_kind.empty() ||
      !ParseDimLabels(a.dim_labels, &labels) || labels.lhs.has_unknown || labels.rhs.has_unknown ||
      labels.out.has_unknown || w.module().operands(id).size() != 2) {
    return w.Cannot(id, "a convolution by an algorithm, or over sparse operands");
  }
  BytecodeSink numbers(codes::kConvDimensionNumbers);
  for (const DimLabels::Side* side : {&labels.lhs, &labels.rhs, &labels.out}) {
    numbers.SignedVarInt(side->batch);
    numbers.SignedVarInt(side->feature);
    numbers.SignedList(side->spatial);
  }
  Attrs attributes = {{"dimension_numbers", w.pool().Stablehlo(numbers)},
                      {"window_strides", w.pool().I64s(a.window.stride)},
                      {"padding", Padding(w, a.window)},
                      {"lhs_dilation", w.pool().I64s(a.window.lhs_dilate)},
                      {"rhs_dilation", w.pool().I64s(a.window.rhs_dilate)},
                      {"window_reversal", w.pool().Bools(a.window.reversal)},
                      {"feature_group_count", w.pool().I64(a.feature_group_count)},
                      {"batch_group_count", w.pool().I64(a.batch_group_count)}};
  SHARDCALL_RETURN_IF_ERROR(AddPrecision(w, id, a.operand_precision, &attributes));
  return w.Emit(id, std::move(attributes));
}

absl::Status WriteGather(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<GatherAttrs>();
  const BytecodeSink numbers =
      ListsAndNumber(codes::kGatherDimensionNumbers,
                     {a.offset_dims, a.collapsed_slice_dims, a.operand_batching_dims,
                      a.start_indices_batching_dims, a.start_index_map},
                     a.index_vector_dim);
  return w.Emit(id, {{"dimension_numbers", w.pool().Stablehlo(numbers)},
                     {"slice_sizes", w.pool().I64s(a.slice_sizes)},
                     {"indices_are_sorted", w.pool().Bool(a.indices_are_sorted)}});
}

absl::Status WriteScatter(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<ScatterAttrs>();
  const BytecodeSink numbers =
      ListsAndNumber(codes::kScatterDimensionNumbers,
                     {a.update_window_dims, a.inserted_window_dims, a.input_batching_dims,
                      a.scatter_indices_batching_dims, a.scatter_dims_to_operand_dims},
                     a.index_vector_dim);
  return WithRegion(w, id, a.to_apply,
                    {{"scatter_dimension_numbers", w.pool().Stablehlo(numbers)},
                     {"indices_are_sorted", w.pool().Bool(a.indices_are_sorted)},
                     {"unique_indices", w.pool().Bool(a.unique_indices)}});
}

absl::Status WriteFft(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<FftAttrs>();
  return w.Emit(id, {{"fft_type", w.pool().Enum(codes::kFftType, static_cast<uint64_t>(a.type))},
                     {"fft_length", w.pool().I64s(a.length)}});
}

absl::Status WriteCholesky(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<CholeskyAttrs>();
  return w.Emit(id, {{"lower", w.pool().Bool(a.lower)}});
}

absl::Status WriteTriangularSolve(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<TriangularSolveAttrs>();
  const int transpose = IndexOf(a.transpose_a, words::kTransposes.words);
  if (transpose < 0) return w.Cannot(id, "a transposition that StableHLO lacks");
  return w.Emit(
      id, {{"left_side", w.pool().Bool(a.left_side)},
           {"lower", w.pool().Bool(a.lower)},
           {"unit_diagonal", w.pool().Bool(a.unit_diagonal)},
           {"transpose_a", w.pool().Enum(codes::kTranspose, static_cast<uint64_t>(transpose))}});
}

absl::Status WriteBatchNorm(ModuleWriter& w, InstrId id) {
  const auto& a = w.module().instr(id).as<BatchNormAttrs>();
  return w.Emit(id, {{"epsilon", w.pool().F32(static_cast<float>(a.epsilon))},
                     {"feature_index", w.pool().I64(a.feature_index)}});
}

constexpr WriteRow kRows[] = {
    {Opcode::kReduce, WriteReduce},
    {Opcode::kMap, WriteReduce},
    {Opcode::kReduceWindow, WriteReduceWindow},
    {Opcode::kSelectAndScatter, WriteSelectAndScatter},
    {Opcode::kSort, WriteSort},
    {Opcode::kTopk, WriteTopK},
    {Opcode::kDot, WriteDot},
    {Opcode::kConvolution, WriteConvolution},
    {Opcode::kGather, WriteGather},
    {Opcode::kScatter, WriteScatter},
    {Opcode::kFft, WriteFft},
    {Opcode::kCholesky, WriteCholesky},
    {Opcode::kTriangularSolve, WriteTriangularSolve},
    {Opcode::kBatchNormTraining, WriteBatchNorm},
    {Opcode::kBatchNormInference, WriteBatchNorm},
    {Opcode::kBatchNormGrad, WriteBatchNorm},
};

}  // namespace

absl::Span<const WriteRow> WriteCombiningRows() { return kRows; }

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
