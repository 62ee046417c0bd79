// SPDX-License-Identifier: Apache-2.0
// Shape inference of ops that apply a computation along dimensions (reduce,
// windows, sort, map, scan), and of top-k and batch norm.
#include <algorithm>

#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall {
inline namespace internal {
namespace shape_inference {
namespace {

using Types = absl::InlinedVector<ElementType, 2>;

// Operands are k inputs of equal dimensions, then k scalar inits.
bool WantInputsAndInits(const Query& q, Types* inputs, Types* inits) {
  const int k = q.num_operands() / 2;
  if (k == 0 || q.num_operands() != 2 * k) {
    Fail(q, "E021", "operands must be inputs and as many initial values", "an even number",
         absl::StrCat(q.num_operands()));
    return false;
  }
  for (int i = 0; i < k; ++i) {
    if (!WantArray(q, i) || !WantScalar(q, k + i) || !WantSameDims(q, 0, i)) return false;
    if (!SameTypeButPrecision(q.x(i)->element_type(), q.x(k + i)->element_type())) {
      Fail(q, "E021", absl::StrCat("operands ", i, " and ", k + i, " have different types"),
           Text(q.x(i)), Text(q.x(k + i)));
      return false;
    }
    inputs->push_back(q.x(i)->element_type());
    inits->push_back(q.x(k + i)->element_type());
  }
  return true;
}

}  // namespace

bool WindowedDims(const Query& q, const Window& w, absl::Span<const int64_t> base, Dims* out) {
  const size_t rank = base.size();
  for (const Ints* field :
       {&w.size, &w.stride, &w.pad_low, &w.pad_high, &w.lhs_dilate, &w.rhs_dilate, &w.reversal}) {
    if (!WantLength(q, "window", field->size(), rank)) return false;
  }
  for (size_t i = 0; i < rank; ++i) {
    const auto bad = [&](absl::string_view expected, int64_t found) {
      Fail(q, "E022", absl::StrCat("window is impossible in dimension ", i), std::string(expected),
           absl::StrCat(found));
      return false;
    };
    if (w.size[i] < 1) return bad("a size of 1 or more", w.size[i]);
    if (w.stride[i] < 1) return bad("a stride of 1 or more", w.stride[i]);
    if (w.lhs_dilate[i] < 1) return bad("an lhs_dilate of 1 or more", w.lhs_dilate[i]);
    if (w.rhs_dilate[i] < 1) return bad("an rhs_dilate of 1 or more", w.rhs_dilate[i]);
    if (w.reversal[i] != 0 && w.reversal[i] != 1) return bad("rhs_reversal 0 or 1", w.reversal[i]);
    const __int128 n = base[i];
    const __int128 dilated = n == 0 ? 0 : (n - 1) * w.lhs_dilate[i] + 1;
    const __int128 padded = dilated + w.pad_low[i] + w.pad_high[i];
    const __int128 reach = (static_cast<__int128>(w.size[i]) - 1) * w.rhs_dilate[i] + 1;
    const __int128 count = padded < reach ? 0 : (padded - reach) / w.stride[i] + 1;
    if (count > INT64_MAX) return bad("fewer than 2^63 positions", w.size[i]);
    out->push_back(static_cast<int64_t>(count));
  }
  return true;
}

const Shape* InferReduce(const Query& q) {
  const auto& a = q.as<ReduceAttrs>();
  Types inputs, inits, results;
  if (!WantInputsAndInits(q, &inputs, &inits)) return nullptr;
  const Shape* x = q.x(0);
  if (!WantDims(q, "dimensions", a.dimensions, x->rank()) ||
      !WantReducer(q, "to_apply", a.to_apply, inits, inputs, &results)) {
    return nullptr;
  }
  Dims dims;
  absl::InlinedVector<bool, 6> dynamic;
  for (int i = 0; i < x->rank(); ++i) {
    if (std::find(a.dimensions.begin(), a.dimensions.end(), i) != a.dimensions.end()) continue;
    dims.push_back(x->dim(i));
    dynamic.push_back(x->IsDynamicDim(i));
  }
  absl::InlinedVector<const Shape*, 2> shapes;
  for (ElementType t : results) shapes.push_back(MakeResult(q, t, dims, dynamic));
  return OneOrTuple(q, shapes);
}

const Shape* InferMap(const Query& q) {
  const auto& a = q.as<ReduceAttrs>();
  if (!WantAtLeast(q, 1) || !WantArrays(q)) return nullptr;
  const Shape* x = q.x(0);
  const Computation* c = Callee(q, "to_apply", a.to_apply);
  if (c == nullptr || !WantParameters(q, "to_apply", *c, q.num_operands())) return nullptr;
  for (int i = 0; i < q.num_operands(); ++i) {
    if (!WantSameDims(q, 0, i) ||
        !WantScalarParameter(q, "to_apply", *c, i, q.x(i)->element_type())) {
      return nullptr;
    }
  }
  // map is defined only over all dimensions in order.
  if (!WantLength(q, "dimensions", a.dimensions.size(), x->rank())) return nullptr;
  for (int i = 0; i < x->rank(); ++i) {
    if (a.dimensions[i] != i) {
      return Fail(q, "E022", "dimensions must be all dimensions in order", "{0,1,..}",
                  Brackets(a.dimensions));
    }
  }
  const Shape* root = RootShape(q, *c);
  if (!root->IsArray() || root->rank() != 0) {
    return Fail(q, "E024", absl::StrCat("the result of to_apply=", c->name, " is wrong"),
                "a scalar", Text(root));
  }
  return MakeResult(q, root->element_type(), x->dims());
}

const Shape* InferReduceWindow(const Query& q) {
  const auto& a = q.as<ReduceWindowAttrs>();
  Types inputs, inits, results;
  Dims dims;
  if (!WantInputsAndInits(q, &inputs, &inits) ||
      !WantReducer(q, "to_apply", a.to_apply, inits, inputs, &results) ||
      !WindowedDims(q, a.window, q.x(0)->dims(), &dims)) {
    return nullptr;
  }
  absl::InlinedVector<const Shape*, 2> shapes;
  for (ElementType t : results) shapes.push_back(MakeResult(q, t, dims));
  return OneOrTuple(q, shapes);
}

const Shape* InferSelectAndScatter(const Query& q) {
  const auto& a = q.as<SelectAndScatterAttrs>();
  if (!WantArray(q, 0) || !WantArray(q, 1) || !WantScalar(q, 2) || !WantSameType(q, 1, 2)) {
    return nullptr;
  }
  const ElementType t = q.x(0)->element_type();
  const Computation* select = Callee(q, "select", a.select);
  if (select == nullptr || !WantParameters(q, "select", *select, 2) ||
      !WantScalarParameter(q, "select", *select, 0, t) ||
      !WantScalarParameter(q, "select", *select, 1, t)) {
    return nullptr;
  }
  const Shape* chosen = RootShape(q, *select);
  if (!chosen->IsArray() || chosen->rank() != 0 || chosen->element_type() != ElementType::kPred) {
    return Fail(q, "E024", absl::StrCat("the result of select=", select->name, " is wrong"),
                "pred[]", Text(chosen));
  }
  const ElementType source = q.x(1)->element_type();
  Dims dims;
  if (!WantReducer(q, "scatter", a.scatter, {source}, {source}, nullptr) ||
      !WindowedDims(q, a.window, q.x(0)->dims(), &dims)) {
    return nullptr;
  }
  if (!SameTypeButPrecision(t, source) || q.x(1)->dims() != absl::MakeConstSpan(dims)) {
    return Fail(q, "E021", "the source does not have one element per window",
                absl::StrCat(ElementTypeName(t), Brackets(dims)), Text(q.x(1)));
  }
  return q.x(0);
}

const Shape* InferSort(const Query& q) {
  const auto& a = q.as<SortAttrs>();
  if (!WantAtLeast(q, 1) || !WantArrays(q)) return nullptr;
  for (int i = 1; i < q.num_operands(); ++i) {
    if (!WantSameDims(q, 0, i)) return nullptr;
  }
  if (!WantDim(q, "dimensions", a.dimension, q.x(0)->rank())) return nullptr;
  const Computation* c = Callee(q, "to_apply", a.to_apply);
  if (c == nullptr || !WantParameters(q, "to_apply", *c, 2 * q.num_operands())) return nullptr;
  for (int i = 0; i < 2 * q.num_operands(); ++i) {
    if (!WantScalarParameter(q, "to_apply", *c, i, q.x(i / 2)->element_type())) return nullptr;
  }
  const Shape* root = RootShape(q, *c);
  if (!root->IsArray() || root->rank() != 0 || root->element_type() != ElementType::kPred) {
    return Fail(q, "E024", absl::StrCat("the result of to_apply=", c->name, " is wrong"), "pred[]",
                Text(root));
  }
  return OneOrTuple(q, q.operands);
}

const Shape* InferTopK(const Query& q) {
  if (!WantArray(q, 0)) return nullptr;
  const Shape* x = q.x(0);
  const int64_t k = q.as<TopKAttrs>().k;
  if (x->rank() == 0) return Fail(q, "E021", "a scalar has no top", "rank 1 or more", Text(x));
  if (k < 0 || k > x->dim(x->rank() - 1)) {
    return Fail(q, "E022", "k is out of range", absl::StrCat("[0,", x->dim(x->rank() - 1), "]"),
                absl::StrCat(k));
  }
  Dims dims(x->dims().begin(), x->dims().end());
  dims.back() = k;
  return q.context.MakeTuple(
      {MakeResult(q, x->element_type(), dims), MakeResult(q, ElementType::kS32, dims)});
}

const Shape* InferScan(const Query& q) {
  const auto& a = q.as<ScanAttrs>();
  const int carries = static_cast<int>(a.num_carries);
  const int inputs = q.num_operands() - carries;
  if (a.num_carries < 0 || a.num_carries > q.num_operands()) {
    return Fail(q, "E022", "num_carries is out of range",
                absl::StrCat("[0,", q.num_operands(), "]"), absl::StrCat(a.num_carries));
  }
  if (!WantArrays(q)) return nullptr;
  const Computation* c = Callee(q, "to_apply", a.to_apply);
  if (c == nullptr || !WantParameters(q, "to_apply", *c, q.num_operands())) return nullptr;
  int64_t length = -1;
  for (int i = 0; i < q.num_operands(); ++i) {
    const Shape* x = q.x(i);
    const Shape* step = x;
    if (i < inputs) {
      if (!WantDim(q, "dimensions", a.dimension, x->rank())) return nullptr;
      if (length < 0) length = x->dim(a.dimension);
      if (x->dim(a.dimension) != length) {
        return Fail(q, "E021", absl::StrCat("inputs 0 and ", i, " differ in the scan dimension"),
                    absl::StrCat(length), Text(x));
      }
      Dims dims(x->dims().begin(), x->dims().end());
      dims.erase(dims.begin() + a.dimension);
      step = q.context.MakeArray(x->element_type(), dims);
    }
    if (!WantParameter(q, "to_apply", *c, i, step)) return nullptr;
  }
  // The body's result: outputs of one step, then the new carries.
  const Shape* root = RootShape(q, *c);
  const absl::Span<const Shape* const> parts =
      root->IsTuple() ? root->tuple() : absl::MakeConstSpan(&root, 1);
  const int outputs = static_cast<int>(parts.size()) - carries;
  if (outputs < 0 || length < 0) {
    return Fail(q, "E024", absl::StrCat("the result of to_apply=", c->name, " is wrong"),
                absl::StrCat("outputs and ", carries, " carries over at least one input"),
                Text(root));
  }
  absl::InlinedVector<const Shape*, 4> shapes;
  for (int i = 0; i < outputs; ++i) {
    if (!parts[i]->IsArray() || a.dimension > parts[i]->rank()) {
      return Fail(q, "E024", absl::StrCat("output ", i, " of to_apply=", c->name, " is wrong"),
                  absl::StrCat("an array of rank ", a.dimension, " or more"), Text(parts[i]));
    }
    Dims dims(parts[i]->dims().begin(), parts[i]->dims().end());
    dims.insert(dims.begin() + a.dimension, length);
    shapes.push_back(MakeResult(q, parts[i]->element_type(), dims));
  }
  for (int i = 0; i < carries; ++i) {
    if (!CompatibleShapes(parts[outputs + i], q.x(inputs + i))) {
      return Fail(q, "E024", absl::StrCat("carry ", i, " of to_apply=", c->name, " is wrong"),
                  Text(q.x(inputs + i)), Text(parts[outputs + i]));
    }
    shapes.push_back(q.x(inputs + i));
  }
  return root->IsTuple() ? q.context.MakeTuple(shapes) : OneOrTuple(q, shapes);
}

const Shape* InferBatchNorm(const Query& q) {
  const auto& a = q.as<BatchNormAttrs>();
  if (!WantArrays(q)) return nullptr;
  const Shape* x = q.x(0);
  if (!IsFloat(x->element_type())) {
    return Fail(q, "E021", "operand 0 must be floating-point", "a floating-point type", Text(x));
  }
  if (!WantDim(q, "feature_index", a.feature_index, x->rank())) return nullptr;
  const int64_t features = x->dim(a.feature_index);
  const bool grad = q.opcode == Opcode::kBatchNormGrad;
  for (int i = 1; i < q.num_operands(); ++i) {
    if (grad && i == 4) {  // the gradient of the output
      if (!WantSameDims(q, 0, i)) return nullptr;
      if (IsFloat(q.x(i)->element_type())) continue;
      return Fail(q, "E021", "operand 4 must be floating-point", "a floating-point type",
                  Text(q.x(i)));
    }
    if (q.x(i)->rank() != 1 || q.x(i)->dim(0) != features || !IsFloat(q.x(i)->element_type())) {
      return Fail(q, "E021", absl::StrCat("operand ", i, " must have one value per feature"),
                  absl::StrCat(ElementTypeName(x->element_type()), "[", features, "]"),
                  Text(q.x(i)));
    }
  }
  if (q.opcode == Opcode::kBatchNormInference) return x;
  const Shape* feature = MakeResult(q, q.x(1)->element_type(), {features});
  return q.context.MakeTuple({x, feature, feature});
}

}  // namespace shape_inference
}  // namespace internal
}  // namespace shardcall
