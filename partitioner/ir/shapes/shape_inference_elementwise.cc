// SPDX-License-Identifier: Apache-2.0
// Shape inference of elementwise ops: types, equal dimensions, layouts copied.
#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall {
inline namespace internal {
namespace shape_inference {
namespace {

const Shape* WrongType(const Query& q, absl::string_view expected) {
  return Fail(q, "E021", "the operand has the wrong element type", std::string(expected),
              Text(q.x(0)));
}

bool IsFloatOrComplex(ElementType t) { return IsFloat(t) || IsComplex(t); }
bool IsIntegerOrPred(ElementType t) { return IsInteger(t) || t == ElementType::kPred; }
bool IsNumber(ElementType t) { return t != ElementType::kPred; }
bool IsSigned(ElementType t) { return IsNumber(t) && !IsUnsignedInteger(t); }

// The first operand's dimensions; a dimension is dynamic if it is in either.
const Shape* MergeDynamic(const Query& q, const Shape* a, const Shape* b) {
  if (!b->IsDynamic() || a->bare() == b->bare()) return a;
  absl::InlinedVector<bool, 6> dynamic;
  for (int i = 0; i < a->rank(); ++i) {
    dynamic.push_back(a->IsDynamicDim(i) || b->IsDynamicDim(i));
  }
  if (!a->has_layout()) return q.context.MakeDynamicArray(a->element_type(), a->dims(), dynamic);
  return q.context.MakeArray(a->element_type(), a->dims(), a->minor_to_major(), a->layout_suffix(),
                             dynamic);
}

}  // namespace

const Shape* InferSame(const Query& q) { return q.x(0); }

// The operand's shape if it is an array whose element type the op takes.
template <typename Takes>
const Shape* UnaryOf(const Query& q, absl::string_view expected, Takes takes) {
  if (!WantArray(q, 0)) return nullptr;
  return takes(q.x(0)->element_type()) ? q.x(0) : WrongType(q, expected);
}
const Shape* InferUnaryFloat(const Query& q) {
  return UnaryOf(q, "a floating-point type", IsFloat);
}
const Shape* InferUnaryFloatOrComplex(const Query& q) {
  return UnaryOf(q, "a floating-point or complex type", IsFloatOrComplex);
}
const Shape* InferUnaryInteger(const Query& q) { return UnaryOf(q, "an integer type", IsInteger); }
const Shape* InferUnaryIntegerOrPred(const Query& q) {
  return UnaryOf(q, "an integer type or pred", IsIntegerOrPred);
}
const Shape* InferUnaryNumber(const Query& q) { return UnaryOf(q, "a number", IsNumber); }
const Shape* InferUnarySigned(const Query& q) { return UnaryOf(q, "a signed type", IsSigned); }

const Shape* InferAbs(const Query& q) {
  const Shape* x = InferUnarySigned(q);
  if (x == nullptr || !IsComplex(x->element_type())) return x;
  return q.context.WithElementType(x, RealTypeOf(x->element_type()));
}

const Shape* InferComplexPart(const Query& q) {
  const Shape* x = InferUnaryFloatOrComplex(q);
  if (x == nullptr || IsFloat(x->element_type())) return x;
  return q.context.WithElementType(x, RealTypeOf(x->element_type()));
}

const Shape* InferIsFinite(const Query& q) {
  const Shape* x = InferUnaryFloat(q);
  return x == nullptr ? nullptr : q.context.WithElementType(x, ElementType::kPred);
}

const Shape* InferReducePrecision(const Query& q) {
  if (!WantArray(q, 0)) return nullptr;
  const auto& a = q.as<ReducePrecisionAttrs>();
  if (a.exponent_bits < 1 || a.mantissa_bits < 0) {
    return Fail(q, "E022", "the format is impossible", "exponent_bits>=1, mantissa_bits>=0",
                absl::StrCat(a.exponent_bits, " and ", a.mantissa_bits));
  }
  return InferUnaryFloat(q);
}

const Shape* InferBinary(const Query& q) {
  if (!WantArrays(q) || !WantSameDims(q, 0, 1) || !WantSameType(q, 0, 1)) return nullptr;
  return MergeDynamic(q, q.x(0), q.x(1));
}

// The same for ops that do not take every element type.
template <typename Takes>
const Shape* BinaryOf(const Query& q, absl::string_view expected, Takes takes) {
  const Shape* result = InferBinary(q);
  if (result == nullptr || takes(result->element_type())) return result;
  return WrongType(q, expected);
}
const Shape* InferBinaryNumber(const Query& q) { return BinaryOf(q, "a number", IsNumber); }
const Shape* InferBinaryInteger(const Query& q) {
  return BinaryOf(q, "an integer type", IsInteger);
}
const Shape* InferBinaryIntegerOrPred(const Query& q) {
  return BinaryOf(q, "an integer type or pred", IsIntegerOrPred);
}
const Shape* InferBinaryFloatOrComplex(const Query& q) {
  return BinaryOf(q, "a floating-point or complex type", IsFloatOrComplex);
}

const Shape* InferComplex(const Query& q) {
  const Shape* parts = BinaryOf(q, "f32 or f64", [](ElementType t) {
    return t == ElementType::kF32 || t == ElementType::kF64;
  });
  if (parts == nullptr) return nullptr;
  return q.context.WithElementType(
      parts, parts->element_type() == ElementType::kF32 ? ElementType::kC64 : ElementType::kC128);
}

const Shape* InferCompare(const Query& q) {
  if (!WantArrays(q) || !WantSameDims(q, 0, 1) || !WantSameType(q, 0, 1)) return nullptr;
  const auto& a = q.as<CompareAttrs>();
  const ElementType t = q.x(0)->element_type();
  bool ok = false;
  const char* natural = "FLOAT";
  switch (a.type) {
    case CompareType::kFloat: ok = IsFloat(t) || IsComplex(t); break;
    case CompareType::kTotalOrder: ok = IsFloat(t); break;
    case CompareType::kSigned: ok = IsSignedInteger(t); break;
    case CompareType::kUnsigned: ok = IsUnsignedInteger(t) || t == ElementType::kPred; break;
  }
  if (!ok) {
    if (IsSignedInteger(t)) natural = "SIGNED";
    if (IsUnsignedInteger(t) || t == ElementType::kPred) natural = "UNSIGNED";
    return Fail(q, "E022", "type= does not fit the operands", natural, Text(q.x(0)),
                "leave type= out");
  }
  if (IsComplex(t) && a.direction != Direction::kEq && a.direction != Direction::kNe) {
    return Fail(q, "E022", "complex numbers have no order", "direction=EQ or NE", Text(q.x(0)));
  }
  return q.context.WithElementType(MergeDynamic(q, q.x(0), q.x(1)), ElementType::kPred);
}

const Shape* InferSelect(const Query& q) {
  const Shape* p = q.x(0);
  if (!p->IsArray() || p->element_type() != ElementType::kPred) {
    return Fail(q, "E021", "operand 0 must be a predicate", "pred", Text(p));
  }
  if (!WantArrays(q) || !WantSameDims(q, 1, 2) || !WantSameType(q, 1, 2)) return nullptr;
  if (p->rank() != 0 && !WantSameDims(q, 0, 1)) return nullptr;
  return MergeDynamic(q, q.x(1), q.x(2));
}

const Shape* InferClamp(const Query& q) {
  if (!WantArrays(q) || !WantSameType(q, 0, 1) || !WantSameType(q, 2, 1)) return nullptr;
  if (q.x(0)->rank() != 0 && !WantSameDims(q, 0, 1)) return nullptr;
  if (q.x(2)->rank() != 0 && !WantSameDims(q, 2, 1)) return nullptr;
  return q.x(1);
}

const Shape* InferConvert(const Query& q) {
  if (!WantArrays(q) || !WantDeclaredArray(q)) return nullptr;
  const Shape* x = q.x(0);
  const ElementType from = x->element_type(), to = q.declared->element_type();
  if (q.opcode == Opcode::kStochasticConvert) {
    if (!IsFloat(from)) return WrongType(q, "a floating-point type");
    const ElementType random = q.x(1)->element_type();
    if (!IsUnsignedInteger(random) || ElementTypeBits(random) != ElementTypeBits(from)) {
      return Fail(q, "E021", "operand 1 must hold unsigned integers as wide as operand 0",
                  absl::StrCat("u", ElementTypeBits(from)), Text(q.x(1)));
    }
    if (!WantSameDims(q, 0, 1)) return nullptr;
    for (int i = 0; i < x->rank(); ++i) {
      if (x->IsDynamicDim(i) == q.x(1)->IsDynamicDim(i)) continue;
      return Fail(q, "E021", absl::StrCat("dimension ", i, " is dynamic in one operand only"),
                  Text(x), Text(q.x(1)));
    }
  }
  if (q.opcode != Opcode::kBitcastConvert) {
    if (IsComplex(from) && !IsComplex(to)) {
      return Fail(q, "E021", "a complex value has no real conversion", "a complex type",
                  std::string(ElementTypeName(to)), "use real or imag");
    }
    return q.context.WithElementType(x, to);
  }
  if (IsComplex(from) != IsComplex(to)) {
    return Fail(q, "E021", "bits of complex and other types cannot be exchanged",
                std::string(ElementTypeName(from)), std::string(ElementTypeName(to)));
  }
  const int from_bits = ElementTypeBits(from), to_bits = ElementTypeBits(to);
  if (from_bits == to_bits) return q.context.WithElementType(x, to);
  // A narrower result has a new innermost dimension for the parts of an element; a wider one merges
  // the operand's innermost dimension.
  Dims dims(x->dims().begin(), x->dims().end());
  if (from_bits > to_bits) {
    dims.push_back(from_bits / to_bits);
    if (from_bits % to_bits != 0) dims.back() = -1;
  } else if (!dims.empty() && to_bits % from_bits == 0 && dims.back() == to_bits / from_bits) {
    dims.pop_back();
  } else {
    dims.assign(1, -1);
  }
  if (!dims.empty() && dims.back() < 0) {
    return Fail(q, "E021", "the bits of operand and result do not match",
                absl::StrCat("an innermost dimension of ", to_bits, "/", from_bits), Text(x));
  }
  return MakeResult(q, to, dims);
}

}  // namespace shape_inference
}  // namespace internal
}  // namespace shardcall
