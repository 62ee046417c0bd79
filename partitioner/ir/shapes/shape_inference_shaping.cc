// SPDX-License-Identifier: Apache-2.0
// Shape inference of ops that move or make data: broadcast, reshape, transpose, slices, pad,
// concatenate.
#include <algorithm>

#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall {
inline namespace internal {
namespace shape_inference {
namespace {

// Start indices: one rank-1 vector, or `rank` integer scalars of one type.
bool WantStartIndices(const Query& q, int first, int rank) {
  const int count = q.num_operands() - first;
  if (count == 1 && q.x(first)->IsArray() && q.x(first)->rank() == 1) {
    if (IsInteger(q.x(first)->element_type()) && q.x(first)->dim(0) == rank) return true;
    Fail(q, "E021", "the start indices must be integers, one per dimension",
         absl::StrCat("s32[", rank, "]"), Text(q.x(first)));
    return false;
  }
  if (!WantOperands(q, first + rank)) return false;
  for (int i = first; i < q.num_operands(); ++i) {
    if (!WantScalar(q, i) || !WantSameType(q, i, first)) return false;
    if (!IsInteger(q.x(i)->element_type())) {
      Fail(q, "E021", absl::StrCat("start index ", i - first, " must be an integer"), "s32[]",
           Text(q.x(i)));
      return false;
    }
  }
  return true;
}

}  // namespace

const Shape* InferBroadcast(const Query& q) {
  if (!WantArray(q, 0)) return nullptr;
  const Shape* x = q.x(0);
  const Ints dims = q.as<DimensionsAttrs>().dimensions;
  if (!WantLength(q, "dimensions", dims.size(), x->rank())) return nullptr;
  if (q.declared == nullptr && x->rank() == 0) return x;
  if (!WantDeclaredArray(q) || !WantDeclaredType(q, x->element_type()) ||
      !WantDims(q, "dimensions", dims, q.declared->rank())) {
    return nullptr;
  }
  for (int i = 0; i < x->rank(); ++i) {
    if (x->dim(i) != q.declared->dim(dims[i]) && x->dim(i) != kUnboundedDim &&
        q.declared->dim(dims[i]) != kUnboundedDim) {
      return Fail(q, "E021",
                  absl::StrCat("operand dimension ", i, " and result dimension ", dims[i],
                               " have different sizes"),
                  absl::StrCat(x->dim(i)), absl::StrCat(q.declared->dim(dims[i])));
    }
  }
  return q.declared;
}

const Shape* InferReshape(const Query& q) {
  if (!WantAtLeast(q, 1) || !WantArray(q, 0) || !WantDeclaredArray(q)) return nullptr;
  const Shape* x = q.x(0);
  const Shape* y = q.declared;
  if (q.opcode == Opcode::kBitcast) {
    if (x->byte_size() == y->byte_size() || x->IsDynamic() || y->IsDynamic()) return y;
    return Fail(q, "E021", "operand and result differ in size",
                absl::StrCat(x->byte_size(), " bytes"), absl::StrCat(y->byte_size(), " bytes"));
  }
  if (!WantDeclaredType(q, x->element_type())) return nullptr;
  if (q.opcode == Opcode::kDynamicReshape) {
    if (!WantOperands(q, 1 + y->rank())) return nullptr;
    for (int i = 1; i < q.num_operands(); ++i) {
      if (!WantScalar(q, i)) return nullptr;
      if (q.x(i)->element_type() != ElementType::kS32) {
        return Fail(q, "E021", absl::StrCat("operand ", i, " must be a size"), "s32[]",
                    Text(q.x(i)));
      }
    }
  }
  if (x->num_elements() != y->num_elements()) {
    return Fail(q, "E021", "operand and result differ in number of elements",
                absl::StrCat(x->num_elements(), " as in ", Text(x)),
                absl::StrCat(y->num_elements(), " as in ", Text(y)));
  }
  return y;
}

const Shape* InferTranspose(const Query& q) {
  if (!WantArray(q, 0)) return nullptr;
  const Shape* x = q.x(0);
  const Ints perm = q.as<DimensionsAttrs>().dimensions;
  const int rank = x->rank();
  if (!WantLength(q, "dimensions", perm.size(), rank) || !WantDims(q, "dimensions", perm, rank)) {
    return nullptr;
  }
  // Result dimension i is operand dimension perm[i]. The layout is permuted too, so that the
  // transpose is a bitcast.
  Dims dims(rank), inverse(rank), layout;
  absl::InlinedVector<bool, 6> dynamic(rank);
  for (int i = 0; i < rank; ++i) {
    dims[i] = x->dim(perm[i]);
    dynamic[i] = x->IsDynamicDim(perm[i]);
    inverse[perm[i]] = i;
  }
  if (!x->has_layout()) return MakeResult(q, x->element_type(), dims, dynamic);
  for (int64_t d : x->minor_to_major()) layout.push_back(inverse[d]);
  return q.context.MakeArray(x->element_type(), dims, layout, x->layout_suffix(), dynamic);
}

const Shape* InferReverse(const Query& q) {
  if (!WantArray(q, 0) ||
      !WantDims(q, "dimensions", q.as<DimensionsAttrs>().dimensions, q.x(0)->rank())) {
    return nullptr;
  }
  return q.x(0);
}

const Shape* InferConcatenate(const Query& q) {
  if (!WantAtLeast(q, 1) || !WantArrays(q)) return nullptr;
  const Ints attr = q.as<DimensionsAttrs>().dimensions;
  const Shape* x = q.x(0);
  if (!WantLength(q, "dimensions", attr.size(), 1) ||
      !WantDim(q, "dimensions", attr[0], x->rank())) {
    return nullptr;
  }
  const int d = static_cast<int>(attr[0]);
  Dims dims(x->dims().begin(), x->dims().end());
  absl::InlinedVector<bool, 6> dynamic(x->rank());
  for (int i = 0; i < x->rank(); ++i) dynamic[i] = x->IsDynamicDim(i);
  for (int k = 1; k < q.num_operands(); ++k) {
    const Shape* y = q.x(k);
    if (!WantSameType(q, 0, k)) return nullptr;
    bool same = y->rank() == x->rank();
    for (int i = 0; same && i < x->rank(); ++i) {
      same = i == d || x->dim(i) == y->dim(i);
      dynamic[i] = dynamic[i] || y->IsDynamicDim(i);
    }
    if (!same) {
      return Fail(q, "E021",
                  absl::StrCat("operands 0 and ", k, " may differ in dimension ", d, " only"),
                  Text(x), Text(y));
    }
    if (__builtin_add_overflow(dims[d], y->dim(d), &dims[d])) {
      return Fail(q, "E021", "the result is too large", "fewer than 2^63 elements", "more");
    }
  }
  return MakeResult(q, x->element_type(), dims, dynamic);
}

const Shape* InferSlice(const Query& q) {
  if (!WantArray(q, 0)) return nullptr;
  const Shape* x = q.x(0);
  const auto& a = q.as<SliceAttrs>();
  if (!WantLength(q, "slice", a.starts.size(), x->rank()) ||
      !WantLength(q, "slice", a.limits.size(), x->rank()) ||
      !WantLength(q, "slice", a.strides.size(), x->rank())) {
    return nullptr;
  }
  Dims dims;
  for (int i = 0; i < x->rank(); ++i) {
    if (a.starts[i] < 0 || a.starts[i] > a.limits[i] || a.limits[i] > x->dim(i) ||
        a.strides[i] < 1) {
      return Fail(q, "E022", absl::StrCat("slice is out of range in dimension ", i),
                  absl::StrCat("0 <= start <= limit <= ", x->dim(i), " and stride >= 1"),
                  absl::StrCat("[", a.starts[i], ":", a.limits[i], ":", a.strides[i], "]"));
    }
    const int64_t extent = a.limits[i] - a.starts[i];
    dims.push_back(extent / a.strides[i] + (extent % a.strides[i] != 0));
  }
  return MakeResult(q, x->element_type(), dims);
}

const Shape* InferPad(const Query& q) {
  if (!WantArray(q, 0) || !WantScalar(q, 1) || !WantSameType(q, 0, 1)) return nullptr;
  const Shape* x = q.x(0);
  const auto& a = q.as<PadAttrs>();
  if (!WantLength(q, "padding", a.low.size(), x->rank()) ||
      !WantLength(q, "padding", a.high.size(), x->rank()) ||
      !WantLength(q, "padding", a.interior.size(), x->rank())) {
    return nullptr;
  }
  Dims dims;
  for (int i = 0; i < x->rank(); ++i) {
    const __int128 n = x->dim(i);
    const __int128 size =
        n + a.low[i] + a.high[i] + (n > 0 ? (n - 1) * static_cast<__int128>(a.interior[i]) : 0);
    if (a.interior[i] < 0 || size < 0 || size > INT64_MAX) {
      return Fail(
          q, "E022", absl::StrCat("padding is impossible in dimension ", i),
          "a result of size 0 or more and interior padding of 0 or more",
          absl::StrCat(x->dim(i), " padded by ", a.low[i], "_", a.high[i], "_", a.interior[i]));
    }
    dims.push_back(static_cast<int64_t>(size));
  }
  return MakeResult(q, x->element_type(), dims);
}

const Shape* InferDynamicSlice(const Query& q) {
  if (!WantAtLeast(q, 1) || !WantArray(q, 0)) return nullptr;
  const Shape* x = q.x(0);
  const Ints sizes = q.as<DynamicSliceAttrs>().sizes;
  if (!WantLength(q, "dynamic_slice_sizes", sizes.size(), x->rank()) ||
      !WantStartIndices(q, 1, x->rank())) {
    return nullptr;
  }
  for (int i = 0; i < x->rank(); ++i) {
    if (sizes[i] < 0 || sizes[i] > x->dim(i)) {
      return Fail(q, "E022", absl::StrCat("dynamic_slice_sizes is out of range in dimension ", i),
                  absl::StrCat("a size in [0,", x->dim(i), "]"), absl::StrCat(sizes[i]));
    }
  }
  return MakeResult(q, x->element_type(), sizes);
}

const Shape* InferDynamicUpdateSlice(const Query& q) {
  if (!WantAtLeast(q, 2) || !WantArray(q, 0) || !WantArray(q, 1) || !WantSameType(q, 0, 1)) {
    return nullptr;
  }
  const Shape* x = q.x(0);
  const Shape* u = q.x(1);
  bool fits = x->rank() == u->rank();
  for (int i = 0; fits && i < x->rank(); ++i) fits = u->dim(i) <= x->dim(i);
  if (!fits) {
    return Fail(q, "E021", "the update does not fit into the operand",
                absl::StrCat("at most ", Text(x)), Text(u));
  }
  return WantStartIndices(q, 2, x->rank()) ? x : nullptr;
}

const Shape* InferDimensionSize(const Query& q) {
  if (!WantArray(q, 0)) return nullptr;
  const Shape* x = q.x(0);
  const Ints attr = q.as<DimensionsAttrs>().dimensions;
  if (!WantLength(q, "dimensions", attr.size(), 1) ||
      !WantDim(q, "dimensions", attr[0], x->rank())) {
    return nullptr;
  }
  if (q.opcode == Opcode::kGetDimensionSize) return q.context.MakeScalar(ElementType::kS32);
  if (!WantScalar(q, 1)) return nullptr;
  if (q.x(1)->element_type() != ElementType::kS32) {
    return Fail(q, "E021", "operand 1 must be a size", "s32[]", Text(q.x(1)));
  }
  // A constant equal to the full size makes the dimension static; then the written shape is static.
  if (q.declared != nullptr && q.declared->element_type() == x->element_type() &&
      SameDims(q.declared, x)) {
    return q.declared;
  }
  absl::InlinedVector<bool, 6> dynamic(x->rank());
  for (int i = 0; i < x->rank(); ++i) dynamic[i] = x->IsDynamicDim(i) || i == attr[0];
  if (!x->has_layout()) return q.context.MakeDynamicArray(x->element_type(), x->dims(), dynamic);
  return q.context.MakeArray(x->element_type(), x->dims(), x->minor_to_major(), x->layout_suffix(),
                             dynamic);
}

}  // namespace shape_inference
}  // namespace internal
}  // namespace shardcall
