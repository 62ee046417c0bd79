// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lower/sized_op.h"

#include <algorithm>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

using Id = absl::StatusOr<InstrId>;
using Operands = absl::InlinedVector<InstrId, 4>;

absl::Status Impossible(std::string message, std::string expected = "", std::string found = "") {
  return ToStatus({.code = "E310",
                   .message = std::move(message),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "Pad to the bound and mask"},
                  absl::StatusCode::kUnimplemented);
}

class SizedOp {
 public:
  SizedOp(CheckedBuilder& builder, const Instruction& instr, absl::Span<const Shape* const> bounds,
          Operands operands)
      : b_(builder), i_(instr), bounds_(bounds), x_(std::move(operands)) {}

  // The forms named by rows of the table.
  Id Plain(const Shape* declared = nullptr);
  // Ops that take the result's type from the written shape, and the sizes from operand 0.
  Id Typed();
  // Slices the first `count` operands to their least common sizes.
  Id Aligned(size_t count) {
    if (x_.empty()) return Impossible("not over these sizes");
    SHARDCALL_RETURN_IF_ERROR(Align(0, static_cast<int>(count)));
    return Plain();
  }
  Id AlignedTyped() {
    SHARDCALL_RETURN_IF_ERROR(Align(0, static_cast<int>(x_.size())));
    return Typed();
  }
  Id Broadcast();
  Id Reshape();
  Id Slice();
  Id DynamicSlice();
  Id Gather();
  Id Concatenate();
  Id Dot();
  size_t operands() const { return x_.size(); }

 private:
  const Shape& size(int k) const { return *b_.shape(x_[k]); }

  // Slices operand k to its first elements.
  absl::Status Cut(int k, absl::Span<const int64_t> dims) {
    if (size(k).dims() == dims) return absl::OkStatus();
    SHARDCALL_ASSIGN_OR_RETURN(x_[k], b_.Slice(x_[k], Dims(dims.size(), 0), dims));
    return absl::OkStatus();
  }
  // Slices operands [first, last), of equal rank, to their least common sizes. Scalars beside
  // arrays are unchanged, and so is dimension `but`.
  absl::Status Align(int first, int last, int64_t but = -1) {
    Dims least;
    for (int k = first; k < last; ++k) {
      const auto dims = size(k).dims();
      if (dims.empty()) continue;
      if (least.empty()) least.assign(dims.begin(), dims.end());
      if (dims.size() != least.size()) return Impossible("operands of several ranks");
      for (size_t d = 0; d < dims.size(); ++d) least[d] = std::min(least[d], dims[d]);
    }
    for (int k = first; k < last; ++k) {
      if (size(k).rank() == 0) continue;
      Dims dims = least;
      if (but >= 0) dims[but] = size(k).dim(static_cast<int>(but));
      SHARDCALL_RETURN_IF_ERROR(Cut(k, dims));
    }
    return absl::OkStatus();
  }
  // Aligns lhs dimension a[n] with rhs dimension b[n].
  absl::Status AlignPairs(Ints a, Ints b) {
    Dims lhs(size(0).dims().begin(), size(0).dims().end());
    Dims rhs(size(1).dims().begin(), size(1).dims().end());
    for (size_t n = 0; n < a.size(); ++n) {
      lhs[a[n]] = rhs[b[n]] = std::min(lhs[a[n]], rhs[b[n]]);
    }
    SHARDCALL_RETURN_IF_ERROR(Cut(0, lhs));
    return Cut(1, rhs);
  }

  // The window sizes: where the written one is the whole bound, the actual size is taken.
  absl::StatusOr<Dims> Windows(Ints written) const;

  CheckedBuilder& b_;
  const Instruction& i_;
  const absl::Span<const Shape* const> bounds_;
  Operands x_;
};

Id SizedOp::Plain(const Shape* declared) {
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId made, b_.Add(i_.opcode, x_, i_.attrs, declared));
  const Shape* shape = b_.shape(made);
  // Products may be written with a wider type than the operands imply.
  if (declared != nullptr || !shape->IsArray() || !i_.shape->IsArray() ||
      shape->element_type() == i_.shape->element_type()) {
    return made;
  }
  return b_.Add(i_.opcode, x_, i_.attrs,
                b_.context().WithElementType(shape, i_.shape->element_type()));
}

Id SizedOp::Typed() {
  Dims dims(i_.shape->dims().begin(), i_.shape->dims().end());
  for (size_t d = 0; d < dims.size() && static_cast<int>(d) < size(0).rank(); ++d) {
    dims[d] = size(0).dim(static_cast<int>(d));
  }
  return Plain(b_.context().MakeArray(i_.shape->element_type(), dims));
}

Id SizedOp::Broadcast() {
  const Ints mapped = i_.as<DimensionsAttrs>().dimensions;
  Dims dims(i_.shape->dims().begin(), i_.shape->dims().end());
  for (int d = 0; d < i_.shape->rank(); ++d) {
    if (i_.shape->IsDynamicDim(d) && !absl::c_linear_search(mapped, d)) {
      return Impossible(absl::StrCat("the size of dimension ", d, " follows from no operand"));
    }
  }
  for (size_t k = 0; k < mapped.size(); ++k) dims[mapped[k]] = size(0).dim(static_cast<int>(k));
  return b_.Broadcast(x_[0], dims, mapped);
}

// Dimensions of operand and result fall into groups with equal products of bounds. The products of
// sizes in a group are equal too, which determines its one dynamic dimension.
Id SizedOp::Reshape() {
  const auto in = bounds_[0]->dims(), out = i_.shape->dims();
  Dims dims(out.begin(), out.end());
  size_t a = 0, b = 0;
  while (a < in.size() || b < out.size()) {
    const size_t first = b;
    int64_t in_bound = 1, out_bound = 1, elements = 1;
    const auto take_in = [&] {
      in_bound *= in[a];
      elements *= size(0).dim(static_cast<int>(a++));
    };
    if (a < in.size()) take_in();
    if (b < out.size()) out_bound *= out[b++];
    while (in_bound != out_bound) {
      if (in_bound < out_bound ? a == in.size() : b == out.size()) {
        return Impossible("the dimensions have no common groups");
      }
      if (in_bound < out_bound) {
        take_in();
      } else {
        out_bound *= out[b++];
      }
    }
    if (elements == in_bound) continue;
    int64_t rest = 1, dynamic = -1;
    for (size_t d = first; d < b; ++d) {
      if (i_.shape->IsDynamicDim(static_cast<int>(d))) {
        if (dynamic >= 0) return Impossible("two dimensions share a dynamic size");
        dynamic = static_cast<int64_t>(d);
      } else {
        rest *= out[d];
      }
    }
    if (dynamic < 0 || rest == 0 || elements % rest != 0) {
      return Impossible("the elements do not fill the result's dimensions",
                        absl::StrCat("a multiple of ", rest), absl::StrCat(elements));
    }
    dims[dynamic] = elements / rest;
  }
  return b_.Reshape(x_[0], dims);
}

Id SizedOp::Slice() {
  const auto& attrs = i_.as<SliceAttrs>();
  Dims limits(attrs.limits.begin(), attrs.limits.end());
  for (size_t d = 0; d < limits.size(); ++d) {
    const int64_t bound = bounds_[0]->dim(static_cast<int>(d));
    const int64_t now = size(0).dim(static_cast<int>(d));
    if (attrs.starts[d] == 0 && limits[d] == bound && attrs.strides[d] == 1) {
      limits[d] = now;
    } else if (limits[d] > now) {
      return Impossible(absl::StrCat("a slice reads past the size of dimension ", d),
                        absl::StrCat("a limit of at most ", now), absl::StrCat(limits[d]));
    }
  }
  return b_.Slice(x_[0], attrs.starts, limits, attrs.strides);
}

absl::StatusOr<Dims> SizedOp::Windows(Ints written) const {
  Dims sizes(written.begin(), written.end());
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t now = size(0).dim(static_cast<int>(d));
    if (sizes[d] == bounds_[0]->dim(static_cast<int>(d))) {
      sizes[d] = now;
    } else if (sizes[d] > now) {
      return Impossible(absl::StrCat("a window is larger than dimension ", d),
                        absl::StrCat("at most ", now), absl::StrCat(sizes[d]));
    }
  }
  return sizes;
}

Id SizedOp::DynamicSlice() {
  SHARDCALL_ASSIGN_OR_RETURN(const Dims sizes, Windows(i_.as<DynamicSliceAttrs>().sizes));
  return b_.DynamicSlice(x_[0], absl::MakeConstSpan(x_).subspan(1), sizes);
}

Id SizedOp::Gather() {
  GatherAttrs attrs = i_.as<GatherAttrs>();
  SHARDCALL_ASSIGN_OR_RETURN(const Dims sizes, Windows(attrs.slice_sizes));
  attrs.slice_sizes = sizes;
  return b_.Add(Opcode::kGather, x_, InternAttributes(b_.context(), attrs));
}

Id SizedOp::Concatenate() {
  SHARDCALL_RETURN_IF_ERROR(
      Align(0, static_cast<int>(x_.size()), i_.as<DimensionsAttrs>().dimensions[0]));
  return Plain();
}

Id SizedOp::Dot() {
  const auto& attrs = i_.as<DotAttrs>();
  SHARDCALL_RETURN_IF_ERROR(AlignPairs(attrs.lhs_batch, attrs.rhs_batch));
  SHARDCALL_RETURN_IF_ERROR(AlignPairs(attrs.lhs_contracting, attrs.rhs_contracting));
  return Plain();
}

// The entries of the sized column.
struct RowSized {
  SizedForm form;
  Id (*make)(SizedOp& op);
};

Id NotOverThese(SizedOp&) { return Impossible("not over these sizes"); }

namespace row {
constexpr RowSized Passes{SizedForm::kPasses, NotOverThese};
constexpr RowSized FullOnly{SizedForm::kFullOnly, NotOverThese};
constexpr RowSized OwnSizes{SizedForm::kMade, NotOverThese};  // made in LowerSized
constexpr RowSized Unknown{SizedForm::kMade, NotOverThese};
constexpr RowSized Plain{SizedForm::kMade, [](SizedOp& op) { return op.Plain(); }};
constexpr RowSized Typed{SizedForm::kMade, [](SizedOp& op) { return op.Typed(); }};
constexpr RowSized Align{SizedForm::kMade, [](SizedOp& op) { return op.Aligned(op.operands()); }};
// Half of the operands: those that are reduced.
constexpr RowSized Reduce{SizedForm::kMade,
                          [](SizedOp& op) { return op.Aligned(op.operands() / 2); }};
constexpr RowSized AlignTyped{SizedForm::kMade, [](SizedOp& op) { return op.AlignedTyped(); }};
constexpr RowSized Broadcast{SizedForm::kMade, [](SizedOp& op) { return op.Broadcast(); }};
constexpr RowSized Reshape{SizedForm::kMade, [](SizedOp& op) { return op.Reshape(); }};
constexpr RowSized Slice{SizedForm::kMade, [](SizedOp& op) { return op.Slice(); }};
constexpr RowSized DynamicSlice{SizedForm::kMade, [](SizedOp& op) { return op.DynamicSlice(); }};
constexpr RowSized Gather{SizedForm::kMade, [](SizedOp& op) { return op.Gather(); }};
constexpr RowSized Concatenate{SizedForm::kMade, [](SizedOp& op) { return op.Concatenate(); }};
constexpr RowSized Dot{SizedForm::kMade, [](SizedOp& op) { return op.Dot(); }};
}  // namespace row

constexpr RowSized kSized[] = {
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  row::sized,
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP
};

}  // namespace

SizedForm SizedFormOf(Opcode opcode) { return kSized[static_cast<int>(opcode)].form; }

absl::StatusOr<InstrId> BuildSizedOp(CheckedBuilder& builder, const Instruction& instr,
                                     absl::Span<const Shape* const> bounds, Operands operands) {
  SizedOp op(builder, instr, bounds, std::move(operands));
  return kSized[static_cast<int>(instr.opcode)].make(op);
}

}  // namespace internal
}  // namespace shardcall
