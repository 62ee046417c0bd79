// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "tests/fuzz/generator/ops.h"

namespace shardcall::generator {
namespace {}  // namespace

bool Generator::Unary(Scope& s) {
  const Value v = Any(s);
  const ElementType type = TypeOf(s, v);
  std::vector<Opcode> ops = {Opcode::kCopy};
  if (type == ElementType::kPred) {
    ops.push_back(Opcode::kNot);
  } else if (IsInteger(type)) {
    ops.insert(ops.end(),
               {Opcode::kNot, Opcode::kNegate, Opcode::kPopcnt, Opcode::kCountLeadingZeros});
    if (IsSignedInteger(type)) ops.insert(ops.end(), {Opcode::kAbs, Opcode::kSign});
  } else if (IsFloat(type) && v.whole) {
    ops.insert(ops.end(), {Opcode::kNegate, Opcode::kAbs, Opcode::kSign, Opcode::kCeil,
                           Opcode::kFloor, Opcode::kRoundNearestAfz, Opcode::kRoundNearestEven});
  } else {
    ops.push_back(Opcode::kNegate);
  }
  const Opcode op = random_.Pick(ops);
  double bound = v.bound;
  if (IsInteger(type)) {
    if (op == Opcode::kNot || op == Opcode::kAbs || op == Opcode::kNegate) {
      bound = IsUnsignedInteger(type) ? kUnbounded : v.bound + 1;
    }
    if (op == Opcode::kPopcnt || op == Opcode::kCountLeadingZeros) bound = 64;
    if (op == Opcode::kSign) bound = 1;
  }
  const Shape* declared = nullptr;
  if (op == Opcode::kCopy && random_.Chance(50)) {  // another layout
    Dims layout(s.b.shape(v.id)->rank());
    for (size_t k = 0; k < layout.size(); ++k) layout[k] = static_cast<int64_t>(k);
    random_.Shuffle(&layout);
    declared = context_->MakeArray(type, s.b.shape(v.id)->dims(), layout);
  }
  return Push(s, Emit(s, op, {v.id}, nullptr, declared), bound, v.whole);
}

// Functions of whole numbers that are not whole; tame arguments only.
bool Generator::Fractions(Scope& s) {
  Value v;
  if (!Find(
          s,
          [&](Value x) {
            const ElementType t = TypeOf(s, x);
            return x.whole && (t == ElementType::kF32 || t == ElementType::kF64);
          },
          &v)) {
    return false;
  }
  static const auto* const kOps =
      new std::vector<Opcode>{Opcode::kExponential, Opcode::kLogPlusOne,
                              Opcode::kLogistic,    Opcode::kTanh,
                              Opcode::kSine,        Opcode::kCosine,
                              Opcode::kSqrt,        Opcode::kCbrt,
                              Opcode::kErf,         Opcode::kExponentialMinusOne,
                              Opcode::kAtanh,       Opcode::kAsinh,
                              Opcode::kLog,         Opcode::kTan};
  v = Bounded(s, v, 16);
  return Push(s, Emit(s, random_.Pick(*kOps), {v.id}), kUnbounded, false);
}

bool Generator::Binary(Scope& s) {
  const Value a = Any(s);
  const ElementType type = TypeOf(s, a);
  if (!a.whole) {
    if (IsComplex(type)) return false;
    const Value b = Like(s, type, DimsOf(s, a));
    const Opcode op = random_.Chance(50) ? Opcode::kMaximum : Opcode::kMinimum;
    return Push(s, Emit(s, op, {a.id, b.id}), kUnbounded, false);
  }
  const Value b = random_.Chance(10) ? a : Like(s, type, DimsOf(s, a));
  const double sum = a.bound + b.bound, product = a.bound * b.bound;
  if (type == ElementType::kPred) {
    static const auto* const kOps =
        new std::vector<Opcode>{Opcode::kAnd,     Opcode::kOr,  Opcode::kXor,     Opcode::kMaximum,
                                Opcode::kMinimum, Opcode::kAdd, Opcode::kMultiply};
    return Push(s, Emit(s, random_.Pick(*kOps), {a.id, b.id}), 1);
  }
  if (IsInteger(type)) {
    static const auto* const kOps = new std::vector<Opcode>{Opcode::kAdd,
                                                            Opcode::kAdd,
                                                            Opcode::kSubtract,
                                                            Opcode::kMultiply,
                                                            Opcode::kMultiply,
                                                            Opcode::kMaximum,
                                                            Opcode::kMinimum,
                                                            Opcode::kAnd,
                                                            Opcode::kOr,
                                                            Opcode::kXor,
                                                            Opcode::kDivide,
                                                            Opcode::kRemainder,
                                                            Opcode::kShiftLeft,
                                                            Opcode::kShiftRightLogical,
                                                            Opcode::kShiftRightArithmetic,
                                                            Opcode::kPower};
    const Opcode op = random_.Pick(*kOps);
    double bound = kUnbounded;
    if (op == Opcode::kMaximum || op == Opcode::kMinimum || op == Opcode::kDivide) {
      bound = std::max(a.bound, b.bound) + 1;
    } else if (op == Opcode::kAdd) {
      bound = sum;
    } else if (op == Opcode::kMultiply) {
      bound = product;
    } else if (op == Opcode::kSubtract && IsSignedInteger(type)) {
      bound = sum;
    }
    if (bound >= std::ldexp(1.0, ElementTypeBits(type) - 1)) bound = kUnbounded;
    return Push(s, Emit(s, op, {a.id, b.id}), bound);
  }
  std::vector<Opcode> ops;
  if (sum <= MaxBound(type)) ops.insert(ops.end(), {Opcode::kAdd, Opcode::kAdd, Opcode::kSubtract});
  const double parts = IsComplex(type) ? 2 * product : product;
  if (parts <= MaxBound(type)) ops.insert(ops.end(), {Opcode::kMultiply, Opcode::kMultiply});
  if (!IsComplex(type)) ops.insert(ops.end(), {Opcode::kMaximum, Opcode::kMinimum});
  if (ops.empty()) return false;
  const Opcode op = random_.Pick(ops);
  const double bound = op == Opcode::kMultiply                         ? parts
                       : op == Opcode::kAdd || op == Opcode::kSubtract ? sum
                                                                       : std::max(a.bound, b.bound);
  return Push(s, Emit(s, op, {a.id, b.id}), bound);
}

bool Generator::CompareSelect(Scope& s) {
  const Value a = Any(s);
  const ElementType type = TypeOf(s, a);
  if (random_.Chance(50)) {
    if (!a.whole) return false;
    const Value b = Like(s, type, DimsOf(s, a));
    const auto direction = static_cast<Direction>(random_.Int(0, IsComplex(type) ? 1 : 5));
    return Push(s, s.b.Compare(direction, a.id, b.id), 1);
  }
  const Dims dims = random_.Chance(15) ? Dims() : DimsOf(s, a);
  const Value p = Like(s, ElementType::kPred, dims);
  const Value b = Like(s, type, DimsOf(s, a));
  return Push(s, Emit(s, Opcode::kSelect, {p.id, a.id, b.id}), std::max(a.bound, b.bound), a.whole);
}

bool Generator::ClampConvert(Scope& s) {
  Value v = Any(s);
  const ElementType type = TypeOf(s, v);
  if (!v.whole || IsComplex(type)) return false;
  if (random_.Chance(30)) {
    if (type == ElementType::kPred) return false;
    if (random_.Chance(50)) {
      const Value low = Like(s, type, DimsOf(s, v)), high = Like(s, type, DimsOf(s, v));
      return Push(s, Emit(s, Opcode::kClamp, {low.id, v.id, high.id}),
                  std::max({low.bound, v.bound, high.bound}));
    }
    v = Bounded(s, v, static_cast<double>(random_.Int(1, 5)));
    return Push(s, v.id, v.bound);
  }
  const ElementType to = RandomType();
  if (to == type) return false;
  v = ToType(s, v, to);
  return Push(s, v.id, v.bound);
}

bool Generator::Complexes(Scope& s) {
  Value v;
  if (random_.Chance(50) && Find(s, [&](Value x) { return IsComplex(TypeOf(s, x)); }, &v)) {
    return Push(s, Emit(s, random_.Chance(50) ? Opcode::kReal : Opcode::kImag, {v.id}), v.bound,
                v.whole);
  }
  if (!Find(
          s,
          [&](Value x) {
            const ElementType t = TypeOf(s, x);
            return x.whole && (t == ElementType::kF32 || t == ElementType::kF64);
          },
          &v)) {
    return false;
  }
  const Value w = Like(s, TypeOf(s, v), DimsOf(s, v));
  return Push(s, Emit(s, Opcode::kComplex, {v.id, w.id}), std::max(v.bound, w.bound));
}

bool Generator::MapOp(Scope& s) {
  const Value a = Any(s);
  const ElementType type = TypeOf(s, a);
  if (!a.whole || type == ElementType::kPred || IsComplex(type)) return false;
  const Value b = Like(s, type, DimsOf(s, a));
  ReduceAttrs attrs;
  Dims all(s.b.shape(a.id)->rank());
  for (size_t k = 0; k < all.size(); ++k) all[k] = static_cast<int64_t>(k);
  attrs.dimensions = all;
  attrs.to_apply = monoids_.Get(Opcode::kMinimum, type);
  return Push(s, Emit(s, Opcode::kMap, {a.id, b.id}, Intern(attrs)), std::max(a.bound, b.bound));
}

}  // namespace shardcall::generator
