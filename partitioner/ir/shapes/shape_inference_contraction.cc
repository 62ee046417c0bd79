// SPDX-License-Identifier: Apache-2.0
// Shape inference of contractions and of linear algebra: the dots, convolution,
// fft, cholesky, triangular-solve.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/shapes/dim_labels.h"
#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall {
inline namespace internal {
namespace shape_inference {
namespace {

// The element type of a contraction: the written one, to which the operands are converted; else
// that of the operands, or the wider one if they differ in precision.
bool ContractionType(const Query& q, ElementType* type) {
  const ElementType a = q.x(0)->element_type(), b = q.x(1)->element_type();
  if (q.declared != nullptr && q.declared->IsArray()) {
    *type = q.declared->element_type();
    if (IsComplex(*type) || (!IsComplex(a) && !IsComplex(b))) return true;
    Fail(q, "E021", "the result's element type cannot hold the product",
         std::string(ElementTypeName(IsComplex(a) ? a : b)), Text(q.declared));
    return false;
  }
  if (a != b && !(IsFloat(a) && IsFloat(b)) && !(IsInteger(a) && IsInteger(b))) {
    return WantSameType(q, 0, 1);
  }
  const int bits = std::max(ElementTypeBits(a), ElementTypeBits(b));
  if (a != b && ElementTypeBits(a) == ElementTypeBits(b)) return WantDeclaredArray(q);
  *type = ElementTypeBits(a) == bits ? a : b;
  return true;
}

bool WantPairs(const Query& q, absl::string_view kind, Ints lhs, Ints rhs) {
  if (!WantLength(q, absl::StrCat("rhs_", kind), rhs.size(), lhs.size())) return false;
  for (size_t i = 0; i < lhs.size(); ++i) {
    if (q.x(0)->dim(lhs[i]) != q.x(1)->dim(rhs[i])) {
      Fail(q, "E021",
           absl::StrCat("lhs dimension ", lhs[i], " and rhs dimension ", rhs[i], " are paired by ",
                        kind, " but differ in size"),
           absl::StrCat(q.x(0)->dim(lhs[i])), absl::StrCat(q.x(1)->dim(rhs[i])));
      return false;
    }
  }
  return true;
}

// Batch, lhs free, rhs free dimensions; those in `rhs_skip` (group dimensions
// of a ragged dot) are left out.
bool DotDims(const Query& q, const DotAttrs& a, Ints rhs_skip, Dims* out) {
  const Shape* l = q.x(0);
  const Shape* r = q.x(1);
  Dims lhs(a.lhs_batch.begin(), a.lhs_batch.end());
  lhs.insert(lhs.end(), a.lhs_contracting.begin(), a.lhs_contracting.end());
  Dims rhs(a.rhs_batch.begin(), a.rhs_batch.end());
  rhs.insert(rhs.end(), a.rhs_contracting.begin(), a.rhs_contracting.end());
  rhs.insert(rhs.end(), rhs_skip.begin(), rhs_skip.end());
  if (!WantDims(q, "lhs batch and contracting dims", lhs, l->rank()) ||
      !WantDims(q, "rhs batch and contracting dims", rhs, r->rank()) ||
      !WantPairs(q, "batch_dims", a.lhs_batch, a.rhs_batch) ||
      !WantPairs(q, "contracting_dims", a.lhs_contracting, a.rhs_contracting)) {
    return false;
  }
  for (int64_t d : a.lhs_batch) out->push_back(l->dim(d));
  for (int i = 0; i < l->rank(); ++i) {
    if (!absl::c_linear_search(lhs, i)) out->push_back(l->dim(i));
  }
  for (int i = 0; i < r->rank(); ++i) {
    if (!absl::c_linear_search(rhs, i)) out->push_back(r->dim(i));
  }
  return true;
}

// A scale has the operand's rank, and its dimensions divide the operand's. A bf16 scalar means that
// a bf16 operand has no scale.
bool WantScale(const Query& q, int operand, const Shape* of) {
  const Shape* s = q.x(operand);
  const bool none = s->rank() == 0 && s->element_type() == ElementType::kBF16 &&
                    of->element_type() == ElementType::kBF16;
  bool ok = none || s->rank() == of->rank();
  for (int i = 0; ok && i < s->rank(); ++i) ok = s->dim(i) > 0 && of->dim(i) % s->dim(i) == 0;
  if (!ok) {
    Fail(q, "E021", absl::StrCat("operand ", operand, " does not scale blocks of what it scales"),
         absl::StrCat("dimensions that divide ", Text(of)), Text(s));
  }
  return ok;
}

// Group sizes: one list for all, or one list for each index of the lhs dimensions before the ragged
// one that have its kind (batch, free, contracting), and of the batch dimensions.
bool WantGroupSizes(const Query& q, const DotAttrs& a) {
  const Shape* groups = q.x(2);
  if (groups->rank() == 1) return true;
  const int64_t ragged = a.lhs_ragged[0];
  Dims want;
  const auto before = [&](Ints dims) {
    for (size_t i = 0; i < dims.size() && dims[i] != ragged; ++i) {
      want.push_back(q.x(0)->dim(dims[i]));
    }
  };
  before(a.lhs_batch);
  if (absl::c_linear_search(a.lhs_contracting, ragged)) {
    before(a.lhs_contracting);
  } else if (!absl::c_linear_search(a.lhs_batch, ragged)) {
    for (int64_t d = 0; d < ragged; ++d) {
      if (!absl::c_linear_search(a.lhs_batch, d) && !absl::c_linear_search(a.lhs_contracting, d)) {
        want.push_back(q.x(0)->dim(d));
      }
    }
  }
  want.push_back(groups->dim(groups->rank() - 1));
  if (groups->dims() == absl::MakeConstSpan(want)) return true;
  Fail(q, "E021", "operand 2 must hold the sizes of the groups, once or for each row",
       absl::StrCat(ElementTypeName(groups->element_type()), "[", absl::StrJoin(want, ","), "]"),
       Text(groups));
  return false;
}

const Shape* InferRaggedDot(const Query& q, const DotAttrs& a, ElementType type) {
  if (!WantLength(q, "lhs_ragged_dims", a.lhs_ragged.size(), 1) ||
      !WantDims(q, "lhs_ragged_dims", a.lhs_ragged, q.x(0)->rank())) {
    return nullptr;
  }
  const Shape* groups = q.x(2);
  if (groups->rank() == 0 || !IsInteger(groups->element_type())) {
    return Fail(q, "E021", "operand 2 must hold the sizes of the groups", "s32[groups]",
                Text(groups));
  }
  const int64_t num_groups = groups->dim(groups->rank() - 1);
  const int64_t ragged = a.lhs_ragged[0];
  const bool contracting = absl::c_linear_search(a.lhs_contracting, ragged);
  const bool free = !contracting && !absl::c_linear_search(a.lhs_batch, ragged);
  if (!WantLength(q, "rhs_group_dims", a.rhs_group.size(), free ? 1 : 0)) return nullptr;
  Dims dims;
  if (!DotDims(q, a, a.rhs_group, &dims) || !WantGroupSizes(q, a)) return nullptr;
  if (free && q.x(1)->dim(a.rhs_group[0]) != num_groups) {
    return Fail(q, "E021", "the rhs does not have one slice per group", absl::StrCat(num_groups),
                absl::StrCat(q.x(1)->dim(a.rhs_group[0])));
  }
  if (contracting) dims.insert(dims.begin(), num_groups);
  return MakeResult(q, type, dims);
}

bool WantMultiple(const Query& q, absl::string_view what, int64_t size, int64_t count) {
  if (size % count == 0) return true;
  Fail(q, "E021", absl::StrCat(what, " is not a multiple of the group count"),
       absl::StrCat("a multiple of ", count), absl::StrCat(size));
  return false;
}

}  // namespace

const Shape* InferDot(const Query& q) {
  const auto& a = q.as<DotAttrs>();
  if (!WantArrays(q)) return nullptr;
  ElementType type;
  if (q.opcode == Opcode::kScaledDot) {
    if (!WantDeclaredArray(q) || !WantScale(q, 2, q.x(0)) || !WantScale(q, 3, q.x(1))) {
      return nullptr;
    }
    type = q.declared->element_type();
  } else if (!ContractionType(q, &type)) {
    return nullptr;
  }
  if (q.opcode == Opcode::kRaggedDot) return InferRaggedDot(q, a, type);
  Dims dims;
  return DotDims(q, a, {}, &dims) ? MakeResult(q, type, dims) : nullptr;
}

const Shape* InferConvolution(const Query& q) {
  const auto& a = q.as<ConvolutionAttrs>();
  if (!WantAtLeast(q, 2) || !WantArrays(q)) return nullptr;
  ElementType type;
  if (!ContractionType(q, &type)) return nullptr;
  DimLabels labels;
  if (!ParseDimLabels(a.dim_labels, &labels)) {
    return Fail(q, "E022", "dim_labels do not give each role one dimension",
                "as in b01f_01io->b01f", std::string(a.dim_labels));
  }
  if (q.num_operands() > 2 && a.sparsity_config.empty() && !WantOperands(q, 2)) return nullptr;
  const auto& [lhs, rhs, out] = labels;
  const size_t n = lhs.spatial.size();
  const Shape* x = q.x(0);
  const Shape* k = q.x(1);
  if (x->rank() != lhs.rank || k->rank() != rhs.rank) {
    return Fail(q, "E021", "dim_labels and operands differ in rank",
                absl::StrCat("ranks ", lhs.rank, " and ", rhs.rank),
                absl::StrCat(Text(x), " and ", Text(k)));
  }
  if (k->IsDynamicDim(rhs.feature)) {
    return Fail(q, "E021", "the kernel's output features have no fixed number",
                "a static dimension", Text(k));
  }
  // With sparse operands or dimensions without a role, sizes are not checked.
  if (lhs.has_unknown || rhs.has_unknown || out.has_unknown || !a.sparsity_config.empty()) {
    return WantLength(q, "window", a.window.size.size(), n) && WantDeclaredArray(q) ? q.declared
                                                                                    : nullptr;
  }
  if (a.feature_group_count < 1 || a.batch_group_count < 1 ||
      (a.feature_group_count > 1 && a.batch_group_count > 1)) {
    return Fail(q, "E022", "the group counts are impossible", "1 or more, at most one above 1",
                absl::StrCat(a.feature_group_count, " and ", a.batch_group_count));
  }
  const int64_t features = k->dim(rhs.feature), batch = x->dim(lhs.batch);
  if (!WantMultiple(q, "the lhs feature size", x->dim(lhs.feature), a.feature_group_count) ||
      !WantMultiple(q, "the rhs output feature size", features, a.feature_group_count) ||
      !WantMultiple(q, "the lhs batch size", batch, a.batch_group_count) ||
      !WantMultiple(q, "the rhs output feature size", features, a.batch_group_count)) {
    return nullptr;
  }
  if (x->dim(lhs.feature) / a.feature_group_count != k->dim(rhs.batch)) {
    return Fail(q, "E021", "the kernel's input feature size does not fit the input's",
                absl::StrCat(x->dim(lhs.feature) / a.feature_group_count),
                absl::StrCat(k->dim(rhs.batch)));
  }
  Dims base, counts, dims(n + 2);
  for (int64_t d : lhs.spatial) base.push_back(x->dim(d));
  if (!WindowedDims(q, a.window, base, &counts)) return nullptr;
  for (size_t i = 0; i < n; ++i) {
    if (a.window.size[i] != k->dim(rhs.spatial[i])) {
      return Fail(q, "E022", absl::StrCat("window size ", i, " differs from the kernel's"),
                  absl::StrCat(k->dim(rhs.spatial[i])), absl::StrCat(a.window.size[i]));
    }
    dims[out.spatial[i]] = counts[i];
  }
  dims[out.batch] = batch / a.batch_group_count;
  dims[out.feature] = features;
  return MakeResult(q, type, dims);
}

const Shape* InferFft(const Query& q) {
  const auto& a = q.as<FftAttrs>();
  if (!WantArray(q, 0)) return nullptr;
  const Shape* x = q.x(0);
  const int n = static_cast<int>(a.length.size());
  if (n < 1 || n > 3 || n > x->rank()) {
    return Fail(q, "E022", "fft_length has the wrong number of entries",
                absl::StrCat("1 to ", std::min(3, x->rank())), absl::StrCat(n));
  }
  const bool real = a.type == FftType::kRfft;
  const ElementType t = x->element_type();
  if (real ? t != ElementType::kF32 && t != ElementType::kF64 : !IsComplex(t)) {
    return Fail(q, "E021", "the operand has the wrong element type",
                real ? "f32 or f64" : "a complex type", Text(x));
  }
  Dims dims(x->dims().begin(), x->dims().end());
  for (int i = 0; i < n; ++i) {
    const int d = x->rank() - n + i;
    const bool half = a.type == FftType::kIrfft && i == n - 1;
    const int64_t want = half && a.length[i] != 0 ? a.length[i] / 2 + 1 : a.length[i];
    if (a.length[i] < 0 || x->dim(d) != want) {
      return Fail(q, "E021", absl::StrCat("operand dimension ", d, " does not fit fft_length"),
                  absl::StrCat(want), absl::StrCat(x->dim(d)));
    }
    if (half) dims[d] = a.length[i];
    if (real && i == n - 1 && a.length[i] != 0) dims[d] = a.length[i] / 2 + 1;
  }
  if (real) {
    return q.context.WithElementType(q.context.WithDims(x, dims), t == ElementType::kF32
                                                                      ? ElementType::kC64
                                                                      : ElementType::kC128);
  }
  if (a.type != FftType::kIrfft) return x;
  return q.context.WithElementType(q.context.WithDims(x, dims), RealTypeOf(t));
}

namespace {

bool WantSquare(const Query& q) {
  const Shape* a = q.x(0);
  if (a->rank() < 2 || a->dim(a->rank() - 1) != a->dim(a->rank() - 2)) {
    Fail(q, "E021", "operand 0 must hold square matrices", "[..,n,n]", Text(a));
    return false;
  }
  if (IsFloat(a->element_type()) || IsComplex(a->element_type())) return true;
  Fail(q, "E021", "operand 0 has the wrong element type", "a floating-point or complex type",
       Text(a));
  return false;
}

}  // namespace

const Shape* InferCholesky(const Query& q) {
  return WantArray(q, 0) && WantSquare(q) ? q.x(0) : nullptr;
}

const Shape* InferTriangularSolve(const Query& q) {
  const auto& attrs = q.as<TriangularSolveAttrs>();
  if (!WantArrays(q) || !WantSquare(q) || !WantSameType(q, 0, 1)) return nullptr;
  if (attrs.transpose_a != "NO_TRANSPOSE" && attrs.transpose_a != "TRANSPOSE" &&
      attrs.transpose_a != "ADJOINT") {
    return Fail(q, "E022", "transpose_a is unknown", "NO_TRANSPOSE, TRANSPOSE or ADJOINT",
                attrs.transpose_a.empty() ? "none" : std::string(attrs.transpose_a));
  }
  const Shape* a = q.x(0);
  const Shape* b = q.x(1);
  bool fits = a->rank() == b->rank();
  for (int i = 0; fits && i < a->rank() - 2; ++i) fits = a->dim(i) == b->dim(i);
  if (!fits || b->dim(b->rank() - (attrs.left_side ? 2 : 1)) != a->dim(a->rank() - 1)) {
    return Fail(q, "E021", "the right-hand sides do not fit the matrices",
                absl::StrCat(attrs.left_side ? "[..,n,m] for " : "[..,m,n] for ", Text(a)),
                Text(b));
  }
  return b;
}

}  // namespace shape_inference
}  // namespace internal
}  // namespace shardcall
