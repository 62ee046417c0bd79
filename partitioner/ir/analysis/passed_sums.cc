// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/passed_sums.h"

#include <cmath>
#include <limits>

#include "shardcall/partitioner/ir/analysis/identity_constant.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

// What a broadcast repeats; all else as it is.
InstrId Repeated(const Module& m, InstrId id) {
  return m.instr(id).opcode == Opcode::kBroadcast ? m.operand(id, 0) : id;
}

// The number that all elements of a float array are, where a constant says so; else NaN.
double ConstantOf(const Module& m, InstrId id) {
  double number = std::numeric_limits<double>::quiet_NaN();
  const Literal* const literal = ScalarLiteral(m, Repeated(m, id));
  if (literal == nullptr || !IsFloat(literal->shape->element_type())) return number;
  LoadFloats(literal->shape->element_type(), literal->data.data(), 1, &number);
  return number;
}

// Whether all elements are a constant zero.
bool IsZero(const Module& m, InstrId id) {
  return IsIdentityConstant(m, Repeated(m, id), Opcode::kAdd);
}

// Whether the result is as wide as the operand, so that sums are no less exact. Those of other
// types may overflow or be cut.
bool HoldsSums(ElementType operand, ElementType result) {
  const int bits = ElementTypeBits(operand);
  if (IsComplex(operand) && IsFloat(result)) return bits == 2 * ElementTypeBits(result);  // a part
  return operand == result ||
         (IsFloat(operand) && IsFloat(result) && ElementTypeBits(result) > bits);
}

// In types of a small range products of parts might vanish, or overflow.
bool HasRange(ElementType type) { return IsFloat(type) && RoundToFloatType(type, 1e-30) != 0; }

// A part may be zero where the sum is not, so nothing is divided by what may be zero.
bool Scales(const Module& m, InstrId id, int operand) {
  const Instruction& instr = m.instr(id);
  if (!HasRange(instr.shape->element_type())) return false;
  if (!HasTrait(instr.opcode, kMakesFractions)) return true;
  return operand == 0 && std::abs(ConstantOf(m, m.operand(id, 1))) >= 1;
}

// Whether the other operand is a constant that is positive and finite.
bool ByPositiveConstant(const Module& m, InstrId id, int operand) {
  const double number = ConstantOf(m, m.operand(id, 1 - operand));
  return number > 0 && std::isfinite(number);
}

}  // namespace

bool PassesSum(const Module& m, InstrId id, int operand, PassedProducts products) {
  const Instruction& instr = m.instr(id);
  if (!instr.shape->IsArray()) return false;
  const ElementType type = instr.shape->element_type();
  const ElementType from = m.instr(m.operand(id, operand)).shape->element_type();
  if (HasTrait(instr.opcode, kPassesSums)) return operand == 0 && HoldsSums(from, type);
  // Zeros beside the operand's elements are sums of zeros.
  if (instr.opcode == Opcode::kPad) return operand == 0 && IsZero(m, m.operand(id, 1));
  if (instr.opcode == Opcode::kSelect && operand > 0) return IsZero(m, m.operand(id, 3 - operand));
  if (instr.opcode == Opcode::kReduce) {
    PartialOp op;
    return operand == 0 && RecognizePartialOp(m, instr.as<ReduceAttrs>().to_apply, &op) &&
           op == PartialOp::kSum && HasIdentity(op, type);
  }
  if (products == PassedProducts::kNone) return false;
  if (HasTrait(instr.opcode, kBilinear) && HasTrait(instr.opcode, kTakesFlops)) {  // products
    return products == PassedProducts::kAll && operand < 2 && HasRange(from) &&
           HoldsSums(from, type);
  }
  const bool multiplies = HasTrait(instr.opcode, kBilinear) && HasTrait(instr.opcode, kElementwise);
  if (!multiplies && !HasTrait(instr.opcode, kMakesFractions)) return false;
  return Scales(m, id, operand) &&
         (products == PassedProducts::kAll || ByPositiveConstant(m, id, operand));
}

}  // namespace internal
}  // namespace shardcall
