// SPDX-License-Identifier: Apache-2.0
// Shape inference of ops whose results are not made from their operands' shapes: parameters,
// constants, iota, device numbers, random bits.
#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall {
inline namespace internal {
namespace shape_inference {

const Shape* InferDeviceNumber(const Query& q) { return q.context.MakeScalar(ElementType::kU32); }

const Shape* InferParameter(const Query& q) {
  if (q.as<ParameterAttrs>().number < 0) {
    return Fail(q, "E022", "the number is negative", "0 or more",
                absl::StrCat(q.as<ParameterAttrs>().number));
  }
  return WantDeclared(q) ? q.declared : nullptr;
}

const Shape* InferConstant(const Query& q) {
  const Literal* literal = q.as<ConstantAttrs>().literal;
  if (literal == nullptr || literal->shape == nullptr) {
    return Fail(q, "E022", "the constant has no value", "a literal", "none");
  }
  for (int k = 0; q.declared != nullptr && k < q.declared->num_leaves(); ++k) {
    if (!q.declared->leaf(k)->IsArray() || !q.declared->leaf(k)->IsDynamic()) continue;
    return Fail(q, "E023", "a constant has no dynamic dimension", "static sizes", Text(q.declared));
  }
  return q.declared != nullptr && CompatibleShapes(literal->shape, q.declared)
             ? q.declared
             : q.context.WithDefaultLayout(literal->shape);
}

const Shape* InferIota(const Query& q) {
  if (!WantDeclaredArray(q)) return nullptr;
  if (q.declared->element_type() == ElementType::kPred) {
    return Fail(q, "E021", "the result must be numeric", "a number", Text(q.declared));
  }
  return WantDim(q, "iota_dimension", q.as<IotaAttrs>().dimension, q.declared->rank()) ? q.declared
                                                                                       : nullptr;
}

const Shape* InferRng(const Query& q) {
  if (!WantDeclaredArray(q) || !WantOperands(q, 2) || !WantScalar(q, 0) || !WantScalar(q, 1) ||
      !WantSameType(q, 0, 1) || !WantDeclaredType(q, q.x(0)->element_type())) {
    return nullptr;
  }
  const ElementType t = q.x(0)->element_type();
  const bool normal = q.as<RngAttrs>().distribution == "rng_normal";
  if (IsComplex(t) || (normal && !IsFloat(t))) {
    return Fail(q, "E021", "the distribution does not exist for the element type",
                normal ? "a floating-point type" : "a type that is not complex", Text(q.x(0)));
  }
  return q.declared;
}

const Shape* InferRngState(const Query& q) { return MakeResult(q, ElementType::kU64, {2}); }

// (state, bits), or only the bits.
const Shape* InferRngBits(const Query& q) {
  if (!WantDeclared(q) || !WantArray(q, 0)) return nullptr;
  const Shape* bits = q.declared;
  if (bits->IsTuple()) {
    if (bits->tuple().size() != 2 || !CompatibleShapes(bits->tuple()[0], q.x(0))) {
      return Fail(q, "E021", "the result must be the operand's state and the bits",
                  absl::StrCat("(", Text(q.x(0)), ", bits)"), Text(q.declared));
    }
    bits = bits->tuple()[1];
  }
  if (!bits->IsArray() || IsComplex(bits->element_type())) {
    return Fail(q, "E021", "the bits must be an array of integers", "u32[..]", Text(bits));
  }
  return q.declared;
}

}  // namespace shape_inference
}  // namespace internal
}  // namespace shardcall
