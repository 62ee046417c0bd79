// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/monoid.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/float_format.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// The bits of the greatest or least float: infinity if the type has one. Types without infinity are
// not encoded from infinity, since that gives NaN in some of them.
uint64_t ExtremeFloat(ElementType type, bool greatest) {
  const FloatFormat& f = GetFloatFormat(type);
  const double infinity = std::numeric_limits<double>::infinity();
  if (f.special == FloatFormat::Special::kIeee) {
    return EncodeFloat(type, greatest ? infinity : -infinity);
  }
  // All exponent and mantissa bits set, except where that pattern means NaN.
  uint64_t bits = (uint64_t{1} << (f.exponent_bits + f.mantissa_bits)) - 1;
  if (f.special == FloatFormat::Special::kFn) --bits;
  return greatest ? bits : bits | uint64_t{1} << (f.exponent_bits + f.mantissa_bits);
}

uint64_t ByteMask(ElementType type) {
  const int bytes = ElementTypeBytes(type);
  return bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1;
}

uint64_t ExtremeInteger(ElementType type, bool greatest) {
  const int bits = ElementTypeBits(type);
  const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  if (IsUnsignedInteger(type)) return greatest ? ones : 0;
  // Narrow signed integers are sign-extended to a byte.
  return greatest ? ones >> 1 : ~(ones >> 1) & ByteMask(type);
}

// For complex types this is the real part.
bool RealIdentity(PartialOp op, ElementType type, ZeroSign zero, uint64_t* bits) {
  const bool pred = type == ElementType::kPred;
  if (IsFloat(type) && GetFloatFormat(type).special == FloatFormat::Special::kE8m0) return false;
  switch (op) {
    case PartialOp::kSum:
      *bits = 0;
      if (!IsFloat(type)) return true;
      if (zero == ZeroSign::kExact && GetFloatFormat(type).special != FloatFormat::Special::kFnuz) {
        *bits = EncodeFloat(type, -0.0);
      }
      return true;
    case PartialOp::kProduct:
      *bits = IsFloat(type) ? EncodeFloat(type, 1) : 1;
      // A one-bit signed integer has only 0 and -1.
      return type != ElementType::kS1;
    case PartialOp::kMax:
    case PartialOp::kMin: {
      const bool greatest = op == PartialOp::kMin;
      *bits = pred            ? greatest
              : IsFloat(type) ? ExtremeFloat(type, greatest)
                              : ExtremeInteger(type, greatest);
      return true;
    }
    case PartialOp::kAnd:
      *bits = pred ? 1 : IsUnsignedInteger(type) ? ExtremeInteger(type, true) : ByteMask(type);
      return !IsFloat(type);
    case PartialOp::kOr:
    case PartialOp::kXor: *bits = 0; return !IsFloat(type);
  }
  return false;
}

ElementType PartType(ElementType type) {
  return type == ElementType::kC64    ? ElementType::kF32
         : type == ElementType::kC128 ? ElementType::kF64
                                      : type;
}

}  // namespace

int MonoidIndex(Opcode op) {
  for (int k = 0; k < kNumMonoids; ++k) {
    if (kMonoids[k].op == op) return k;
  }
  return -1;
}

Opcode MonoidOf(PartialOp op) {
  const Monoid& m = kMonoids[static_cast<int>(op)];
  SHARDCALL_CHECK(m.partial == op);
  return m.op;
}

std::optional<PartialOp> PartialOpOf(Opcode op) {
  const int k = MonoidIndex(op);
  return k < 0 ? std::nullopt : std::make_optional(kMonoids[k].partial);
}

bool RecognizePartialOp(const Module& module, CompId computation, PartialOp* out) {
  Opcode op;
  if (!computation.valid() || !RecognizeMonoid(module, computation, &op)) return false;
  *out = *PartialOpOf(op);
  return true;
}

bool RecognizeMonoid(const Module& module, CompId computation, Opcode* op) {
  const Computation& c = module.comp(computation);
  if (c.parameters.size() != 2 || !c.root.valid()) return false;
  const std::optional<Opcode> found =
      MonoidOfPair(module, c.root, c.parameters[0], c.parameters[1]);
  if (!found.has_value()) return false;
  const Shape* a = module.instr(c.parameters[0]).shape;
  const Shape* b = module.instr(c.parameters[1]).shape;
  if (!a->IsArray() || a->rank() != 0 || a->bare() != b->bare()) return false;
  *op = *found;
  return true;
}

std::optional<Opcode> internal::MonoidOfPair(const Module& module, InstrId result, InstrId a,
                                             InstrId b) {
  const Instruction& i = module.instr(result);
  const absl::Span<const InstrId> x = module.operands(i);
  if (!IsMonoid(i.opcode) || x.size() != 2) return std::nullopt;
  const bool pair = (x[0] == a && x[1] == b) || (x[0] == b && x[1] == a);
  return pair ? std::optional(i.opcode) : std::nullopt;
}

bool HasIdentity(PartialOp op, ElementType type) {
  if (!IsArrayType(type)) return false;
  if (IsComplex(type) && op != PartialOp::kSum && op != PartialOp::kProduct) return false;
  uint64_t bits;
  return RealIdentity(op, PartType(type), ZeroSign::kPositive, &bits);
}

bool IdentityBits(Opcode monoid, ElementType type, uint64_t* bits, ZeroSign zero) {
  const std::optional<PartialOp> op = PartialOpOf(monoid);
  if (!op || !IsArrayType(type)) return false;
  if (!IsComplex(type)) return RealIdentity(*op, type, zero, bits);
  if (monoid != Opcode::kAdd && monoid != Opcode::kMultiply) return false;
  uint64_t real;
  if (!RealIdentity(*op, PartType(type), zero, &real)) return false;
  const uint64_t imaginary = monoid == Opcode::kAdd ? real : 0;
  if (type == ElementType::kC128) {
    *bits = 0;
    return real == 0 && imaginary == 0;
  }
  *bits = imaginary << 32 | real;
  return true;
}

const Literal* IdentityLiteral(Context& context, Opcode monoid, ElementType type, ZeroSign zero) {
  uint64_t words[2] = {0, 0};
  if (type == ElementType::kC128 && (monoid == Opcode::kAdd || monoid == Opcode::kMultiply)) {
    if (!RealIdentity(*PartialOpOf(monoid), ElementType::kF64, zero, &words[0])) return nullptr;
    if (monoid == Opcode::kAdd) words[1] = words[0];
  } else if (!IdentityBits(monoid, type, &words[0], zero)) {
    return nullptr;
  }
  return MakeLiteral(
      context, context.MakeScalar(type),
      absl::MakeConstSpan(reinterpret_cast<const char*>(words), ElementTypeBytes(type)));
}

}  // namespace shardcall
