// SPDX-License-Identifier: Apache-2.0
// Operations that combine elements: reductions, contractions, gather and scatter, sort.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/stablehlo/op_names.h"
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

using Kind = Attribute::Kind;

absl::Status ReadOverDimensions(ComputationReader& c, const Operation& op, Opcode opcode) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, c.List(op, "dimensions"));
  ReduceAttrs attrs;
  attrs.dimensions = dims;
  SHARDCALL_ASSIGN_OR_RETURN(attrs.to_apply, c.RegionOf(op, 0));
  return c.EmitWhole(op, opcode, InternAttributes(c.context(), attrs));
}
absl::Status ReadReduce(ComputationReader& c, const Operation& op) {
  return ReadOverDimensions(c, op, Opcode::kReduce);
}
absl::Status ReadMap(ComputationReader& c, const Operation& op) {
  return ReadOverDimensions(c, op, Opcode::kMap);
}

struct WindowLists {
  std::vector<int64_t> size, stride, low, high, base, window, reversal;
};
// The window over `rank` dimensions; what is absent has its default. Padding is [rank, 2].
absl::StatusOr<WindowLists> ReadWindow(ComputationReader& c, const Operation& op, size_t rank,
                                       absl::string_view size, absl::string_view strides,
                                       absl::string_view base, absl::string_view window) {
  WindowLists w;
  const auto list = [&](absl::string_view name,
                        int64_t otherwise) -> absl::StatusOr<std::vector<int64_t>> {
    if (name.empty()) return std::vector<int64_t>(rank, otherwise);
    SHARDCALL_ASSIGN_OR_RETURN(std::vector<int64_t> v, c.List(op, name));
    if (v.empty()) v.assign(rank, otherwise);
    if (v.size() != rank) return ModuleReader::Cannot(absl::StrCat(op.name, " with a bad window"));
    return v;
  };
  SHARDCALL_ASSIGN_OR_RETURN(w.size, list(size, 1));
  SHARDCALL_ASSIGN_OR_RETURN(w.stride, list(strides, 1));
  SHARDCALL_ASSIGN_OR_RETURN(w.base, list(base, 1));
  SHARDCALL_ASSIGN_OR_RETURN(w.window, list(window, 1));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> padding, c.List(op, "padding"));
  if (!padding.empty() && padding.size() != 2 * rank) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " with a bad padding"));
  }
  for (size_t d = 0; d < rank; ++d) {
    w.low.push_back(padding.empty() ? 0 : padding[2 * d]);
    w.high.push_back(padding.empty() ? 0 : padding[2 * d + 1]);
  }
  w.reversal.assign(rank, 0);
  return w;
}
Window ViewOf(const WindowLists& w) {
  Window v;
  v.size = w.size;
  v.stride = w.stride;
  v.pad_low = w.low;
  v.pad_high = w.high;
  v.lhs_dilate = w.base;
  v.rhs_dilate = w.window;
  v.reversal = w.reversal;
  return v;
}

absl::Status ReadReduceWindow(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ShapeOf(op));
  SHARDCALL_ASSIGN_OR_RETURN(const WindowLists w,
                             ReadWindow(c, op, shape->rank(), "window_dimensions", "window_strides",
                                        "base_dilations", "window_dilations"));
  ReduceWindowAttrs attrs;
  attrs.window = ViewOf(w);
  SHARDCALL_ASSIGN_OR_RETURN(attrs.to_apply, c.RegionOf(op, 0));
  return c.EmitWhole(op, Opcode::kReduceWindow, InternAttributes(c.context(), attrs));
}

absl::Status ReadSelectAndScatter(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ArrayOf(op));
  SHARDCALL_ASSIGN_OR_RETURN(
      const WindowLists w,
      ReadWindow(c, op, shape->rank(), "window_dimensions", "window_strides", "", ""));
  SelectAndScatterAttrs attrs;
  attrs.window = ViewOf(w);
  SHARDCALL_ASSIGN_OR_RETURN(attrs.select, c.RegionOf(op, 0));
  SHARDCALL_ASSIGN_OR_RETURN(attrs.scatter, c.RegionOf(op, 1));
  return c.EmitWhole(op, Opcode::kSelectAndScatter, InternAttributes(c.context(), attrs));
}

absl::Status ReadSort(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ShapeOf(op));
  if (!shape->IsArray()) return ModuleReader::Cannot("a sort of what is no array");
  SortAttrs attrs;
  attrs.dimension = c.Integer(op, "dimension", -1);
  if (attrs.dimension < 0) attrs.dimension += shape->rank();
  attrs.is_stable = c.Bool(op, "is_stable");
  SHARDCALL_ASSIGN_OR_RETURN(attrs.to_apply, c.RegionOf(op, 0));
  return c.EmitWhole(op, Opcode::kSort, InternAttributes(c.context(), attrs));
}

// "{high,default}"; empty if all are the default.
absl::StatusOr<std::string> Precision(ComputationReader& c, const Operation& op) {
  const Attribute* list = c.Find(op, "precision_config");
  if (list != nullptr && list->kind != Kind::kArray) {
    return ModuleReader::Cannot("a precision of an unknown form");
  }
  std::vector<absl::string_view> texts;
  bool others = false;
  for (size_t k = 0; list != nullptr && k < list->items.size(); ++k) {
    const Attribute& p = c.code().attribute(list->items[k]);
    if (p.kind != Kind::kEnum || p.integer < 0 || p.integer > 2) {
      return ModuleReader::Cannot("a precision of an unknown form");
    }
    others |= p.integer != 0;
    texts.push_back(words::kPrecisions.words[p.integer]);
  }
  return others ? absl::StrCat("{", absl::StrJoin(texts, ","), "}") : std::string();
}

absl::Status ReadDot(ComputationReader& c, const Operation& op) {
  const Attribute* numbers = c.Find(op, "dot_dimension_numbers");
  if (numbers == nullptr || numbers->kind != Kind::kDot || c.Find(op, "algorithm") != nullptr) {
    return ModuleReader::Cannot("a dot_general with an algorithm, or of an unknown form");
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::string precision, Precision(c, op));
  DotAttrs attrs;
  attrs.lhs_batch = numbers->lists[0];
  attrs.rhs_batch = numbers->lists[1];
  attrs.lhs_contracting = numbers->lists[2];
  attrs.rhs_contracting = numbers->lists[3];
  attrs.operand_precision = precision;
  return c.EmitWhole(op, Opcode::kDot, InternAttributes(c.context(), attrs));
}

// "b01f": which dimension has which role.
absl::StatusOr<std::string> Labels(int64_t first, char first_label, int64_t second,
                                   char second_label, absl::Span<const int64_t> spatial) {
  std::string out(spatial.size() + 2, '?');
  const auto set = [&](int64_t d, char label) {
    if (d >= 0 && d < static_cast<int64_t>(out.size())) out[d] = label;
  };
  set(first, first_label);
  set(second, second_label);
  for (size_t k = 0; k < spatial.size(); ++k) set(spatial[k], static_cast<char>('0' + k));
  if (out.find('?') != std::string::npos || spatial.size() > 9) {
    return ModuleReader::Cannot("a convolution with bad dimension numbers");
  }
  return out;
}

absl::Status ReadConvolution(ComputationReader& c, const Operation& op) {
  const Attribute* n = c.Find(op, "dimension_numbers");
  if (n == nullptr || n->kind != Kind::kConvolution) {
    return ModuleReader::Cannot("a convolution of an unknown form");
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::string input,
                             Labels(n->numbers[0], 'b', n->numbers[1], 'f', n->lists[0]));
  SHARDCALL_ASSIGN_OR_RETURN(const std::string kernel,
                             Labels(n->numbers[2], 'i', n->numbers[3], 'o', n->lists[1]));
  SHARDCALL_ASSIGN_OR_RETURN(const std::string output,
                             Labels(n->numbers[4], 'b', n->numbers[5], 'f', n->lists[2]));
  const size_t rank = n->lists[0].size();
  SHARDCALL_ASSIGN_OR_RETURN(
      WindowLists w, ReadWindow(c, op, rank, "", "window_strides", "lhs_dilation", "rhs_dilation"));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId rhs, c.ArrayOperand(op, 1));
  const Shape* kernel_shape = c.reader().module().instr(rhs).shape;
  if (n->lists[1].size() != rank || n->lists[2].size() != rank ||
      kernel_shape->rank() != static_cast<int>(rank) + 2) {
    return ModuleReader::Cannot("a convolution with bad dimension numbers");
  }
  for (size_t d = 0; d < rank; ++d) {
    w.size[d] = kernel_shape->dim(static_cast<int>(n->lists[1][d]));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> reversal, c.List(op, "window_reversal"));
  for (size_t d = 0; d < reversal.size() && d < rank; ++d) w.reversal[d] = reversal[d] != 0;
  SHARDCALL_ASSIGN_OR_RETURN(const std::string precision, Precision(c, op));
  const std::string labels = absl::StrCat(input, "_", kernel, "->", output);
  ConvolutionAttrs attrs;
  attrs.window = ViewOf(w);
  attrs.dim_labels = labels;
  attrs.feature_group_count = c.Integer(op, "feature_group_count", 1);
  attrs.batch_group_count = c.Integer(op, "batch_group_count", 1);
  attrs.operand_precision = precision;
  return c.EmitWhole(op, Opcode::kConvolution, InternAttributes(c.context(), attrs));
}

absl::Status ReadGather(ComputationReader& c, const Operation& op) {
  const Attribute* n = c.Find(op, "dimension_numbers");
  if (n == nullptr || n->kind != Kind::kGather) {
    return ModuleReader::Cannot("a gather of an unknown form");
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, c.List(op, "slice_sizes"));
  GatherAttrs attrs;
  attrs.offset_dims = n->lists[0];
  attrs.collapsed_slice_dims = n->lists[1];
  attrs.operand_batching_dims = n->lists[2];
  attrs.start_indices_batching_dims = n->lists[3];
  attrs.start_index_map = n->lists[4];
  attrs.index_vector_dim = n->numbers[0];
  attrs.slice_sizes = sizes;
  attrs.indices_are_sorted = c.Bool(op, "indices_are_sorted");
  return c.EmitWhole(op, Opcode::kGather, InternAttributes(c.context(), attrs));
}

absl::Status ReadScatter(ComputationReader& c, const Operation& op) {
  const Attribute* n = c.Find(op, "scatter_dimension_numbers");
  if (n == nullptr || n->kind != Kind::kScatter) {
    return ModuleReader::Cannot("a scatter of an unknown form");
  }
  ScatterAttrs attrs;
  attrs.update_window_dims = n->lists[0];
  attrs.inserted_window_dims = n->lists[1];
  attrs.input_batching_dims = n->lists[2];
  attrs.scatter_indices_batching_dims = n->lists[3];
  attrs.scatter_dims_to_operand_dims = n->lists[4];
  attrs.index_vector_dim = n->numbers[0];
  attrs.indices_are_sorted = c.Bool(op, "indices_are_sorted");
  attrs.unique_indices = c.Bool(op, "unique_indices");
  SHARDCALL_ASSIGN_OR_RETURN(attrs.to_apply, c.RegionOf(op, 0));
  return c.EmitWhole(op, Opcode::kScatter, InternAttributes(c.context(), attrs));
}

absl::Status ReadFft(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t type, c.Enumerator(op, "fft_type", 0, 3));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> length, c.List(op, "fft_length"));
  FftAttrs attrs;
  attrs.type = static_cast<FftType>(type);
  attrs.length = length;
  return c.EmitWhole(op, Opcode::kFft, InternAttributes(c.context(), attrs));
}

absl::Status ReadCholesky(ComputationReader& c, const Operation& op) {
  CholeskyAttrs attrs;
  attrs.lower = c.Bool(op, "lower");
  return c.EmitWhole(op, Opcode::kCholesky, InternAttributes(c.context(), attrs));
}

absl::Status ReadTriangularSolve(ComputationReader& c, const Operation& op) {
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t transpose, c.Enumerator(op, "transpose_a", 1, 3));
  TriangularSolveAttrs attrs;
  attrs.left_side = c.Bool(op, "left_side");
  attrs.lower = c.Bool(op, "lower");
  attrs.unit_diagonal = c.Bool(op, "unit_diagonal");
  attrs.transpose_a = words::kTransposes.words[transpose];
  return c.EmitWhole(op, Opcode::kTriangularSolve, InternAttributes(c.context(), attrs));
}

absl::Status ReadTopK(ComputationReader& c, const Operation& op) {
  TopKAttrs attrs;
  attrs.k = c.Integer(op, "k", 0);
  attrs.largest = true;
  if (c.Integer(op, "is_stable", 1) == 0) attrs.is_stable = 0;
  return c.EmitWhole(op, Opcode::kTopk, InternAttributes(c.context(), attrs));
}

constexpr OpRow kRows[] = {
    {NameOf(Opcode::kReduce), ReadReduce},
    {NameOf(Opcode::kMap), ReadMap},
    {NameOf(Opcode::kReduceWindow), ReadReduceWindow},
    {NameOf(Opcode::kSelectAndScatter), ReadSelectAndScatter},
    {NameOf(Opcode::kSort), ReadSort},
    {NameOf(Opcode::kDot), ReadDot},
    {NameOf(Opcode::kConvolution), ReadConvolution},
    {NameOf(Opcode::kGather), ReadGather},
    {NameOf(Opcode::kScatter), ReadScatter},
    {NameOf(Opcode::kFft), ReadFft},
    {NameOf(Opcode::kCholesky), ReadCholesky},
    {NameOf(Opcode::kTriangularSolve), ReadTriangularSolve},
    {NameOf(Opcode::kTopk), ReadTopK},
};

}  // namespace

absl::Span<const OpRow> CombiningRows() { return kRows; }

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
