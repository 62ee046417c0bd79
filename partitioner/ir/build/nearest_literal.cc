// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/nearest_literal.h"

#include <cmath>

#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

// -1: below what the type holds; 1: above; 0: it holds the number, rounded.
int BeyondRange(ElementType type, double number) {
  if (IsFloat(type)) {
    if (std::isnan(number) || !std::isnan(RoundToFloatType(type, number))) return 0;
    return number < 0 ? -1 : 1;
  }
  const bool pred = type == ElementType::kPred;
  if (!pred && !IsInteger(type)) return 0;
  const int bits = pred ? 1 : ElementTypeBits(type);
  const bool negative = !pred && !IsUnsignedInteger(type);
  const double end = std::ldexp(1, negative ? bits - 1 : bits);
  if (number >= end) return 1;
  return number < (negative ? -end : 0) ? -1 : 0;
}

}  // namespace

const Literal* NearestLiteral(Context& context, ElementType type, double number) {
  const int beyond = BeyondRange(type, number);
  // The greatest value is the identity of a minimum.
  const Literal* const extreme =
      beyond == 0
          ? nullptr
          : IdentityLiteral(context, beyond > 0 ? Opcode::kMinimum : Opcode::kMaximum, type);
  return extreme != nullptr ? extreme : MakeScalarLiteral(context, type, number);
}

}  // namespace internal
}  // namespace shardcall
