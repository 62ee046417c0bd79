// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"

#include <algorithm>
#include <cstring>

#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/base/narrow_float.h"

namespace shardcall::inline internal {
namespace {

template <int kBytes>
void CopyLanes(const void* const* in, void* out, int64_t n, const int64_t*) {
  if (in[0] != out) std::memmove(out, in[0], n * kBytes);
}

LaneFn FindCopyFn(int bytes) {
  switch (bytes) {
    case 1: return CopyLanes<1>;
    case 2: return CopyLanes<2>;
    case 4: return CopyLanes<4>;
    case 8: return CopyLanes<8>;
    case 16: return CopyLanes<16>;
    default: return nullptr;
  }
}

// Rounds floats to params[0] exponent and params[1] mantissa bits, ties to even. Values that are
// too large become infinity, those that are too small zero.
template <typename U, int kMantissa, int kExponent>
void ReducePrecision(const void* const* in, void* out, int64_t n, const int64_t* params) {
  const U* a = static_cast<const U*>(in[0]);
  U* o = static_cast<U*>(out);
  const U sign_mask = static_cast<U>(U{1} << (kMantissa + kExponent));
  const U inf = static_cast<U>(((U{1} << kExponent) - 1) << kMantissa);
  const int64_t dropped = kMantissa - std::min<int64_t>(params[1], kMantissa);
  const int64_t exponent_bits = std::min<int64_t>(params[0], kExponent);
  const int64_t bias = (int64_t{1} << (kExponent - 1)) - 1;
  const int64_t small_bias = (int64_t{1} << (exponent_bits - 1)) - 1;
  const U max_exponent = static_cast<U>((bias + small_bias) << kMantissa);
  const U min_exponent = static_cast<U>((bias - small_bias + 1) << kMantissa);
  for (int64_t i = 0; i < n; ++i) {
    const U sign = a[i] & sign_mask;
    U x = a[i] & ~sign_mask;
    if (x > inf) {  // NaN stays NaN
      o[i] = a[i];
      continue;
    }
    if (dropped > 0) {
      const U last = (x >> dropped) & 1;
      x = static_cast<U>(x + (U{1} << (dropped - 1)) - 1 + last);
      x = static_cast<U>(x >> dropped << dropped);
    }
    if (exponent_bits < kExponent) {
      if ((x & inf) > max_exponent) x = inf;
      if ((x & inf) < min_exponent) x = 0;
    }
    o[i] = static_cast<U>(sign | x);
  }
}

constexpr int64_t kBlock = 512;  // lanes that are decoded at a time

}  // namespace

bool IsMachineType(ElementType type) { return MachineType(type) == type; }

ElementType MachineType(ElementType type) {
  if (IsNarrow(type)) return ElementType::kF32;
  if (IsInteger(type) && ElementTypeBits(type) < 8) {
    return IsSignedInteger(type) ? ElementType::kS8 : ElementType::kU8;
  }
  return type;
}

void LaneKernel::Run(const void* const* in, void* out, int64_t n) const {
  if (!decode && !encode) {
    fn(in, out, n, params);
  } else {
    alignas(64) float operands[3][kBlock];
    alignas(64) float result[kBlock];
    const int out_bytes = ElementTypeBytes(out_type);
    for (int64_t begin = 0; begin < n; begin += kBlock) {
      const int64_t count = std::min(kBlock, n - begin);
      const void* block_in[3];
      for (int k = 0; k < arity; ++k) {
        const char* from = static_cast<const char*>(in[k]) + begin * ElementTypeBytes(in_type[k]);
        if (decode && IsNarrow(in_type[k])) {
          LoadFloats(in_type[k], from, count, operands[k]);
          block_in[k] = operands[k];
        } else {
          block_in[k] = from;
        }
      }
      char* to = static_cast<char*>(out) + begin * out_bytes;
      fn(block_in, encode ? static_cast<void*>(result) : to, count, params);
      if (encode) StoreFloats(out_type, result, count, to);
    }
  }
  if (wrap) NormalizeElements(out_type, out, n);
}

LaneKernel FindLaneKernel(Opcode opcode, const Attributes* attrs,
                          absl::Span<const ElementType> operands, ElementType result) {
  LaneKernel k;
  if (operands.empty() || operands.size() > 3 || !IsArrayType(result)) return k;
  k.arity = static_cast<int>(operands.size());
  for (int i = 0; i < k.arity; ++i) {
    if (!IsArrayType(operands[i])) return k;
    k.in_type[i] = operands[i];
  }
  k.out_type = result;
  const ElementType type = operands[0];
  const ElementType machine = MachineType(type);
  switch (opcode) {
    case Opcode::kCopy: k.fn = FindCopyFn(ElementTypeBytes(type)); return k;
    case Opcode::kSelect:
      if (type == ElementType::kPred) k.fn = FindSelectFn(ElementTypeBytes(result));
      return k;
    case Opcode::kConvert:
      if (type == result) {
        k.fn = FindCopyFn(ElementTypeBytes(type));
        return k;
      }
      k.fn = FindConvertFn(machine, MachineType(result));
      if (IsFloat(type) && IsInteger(result) && ElementTypeBits(result) < 8) {
        k.fn = FindConvertFn(machine, result);  // saturates to the narrow range
      }
      // f64 to a narrow float rounds through f32, as XLA's CPU backend does.
      k.decode = IsNarrow(type);
      k.encode = IsNarrow(result);
      k.wrap = IsInteger(result) && ElementTypeBits(result) < 8;
      return k;
    case Opcode::kStochasticConvert:
      if (k.arity != 2) return k;
      k.fn = FindStochasticConvertFn(type, operands[1], result);
      k.params[0] = ElementTypeBits(operands[1]);
      k.params[1] = ElementTypeBits(result);
      break;
    case Opcode::kReducePrecision: {
      if (attrs == nullptr || attrs->kind != AttrKind::kReducePrecision) return k;
      const auto& a = *static_cast<const ReducePrecisionAttrs*>(attrs);
      if (a.exponent_bits < 1 || a.mantissa_bits < 0) return k;
      k.params[0] = a.exponent_bits;
      k.params[1] = a.mantissa_bits;
      if (type == ElementType::kF64) k.fn = ReducePrecision<uint64_t, 52, 11>;
      if (machine == ElementType::kF32) k.fn = ReducePrecision<uint32_t, 23, 8>;
      if (type == ElementType::kF8E5M2) {
        k.fn = ReducePrecision<uint8_t, 2, 5>;
        return k;
      }
      if (type != ElementType::kBF16 && type != ElementType::kF16) break;
      // On their own bits, since their exponents differ from those of f32.
      k.fn = type == ElementType::kF16 ? ReducePrecision<uint16_t, 10, 5>
                                       : ReducePrecision<uint16_t, 7, 8>;
      return k;
    }
    case Opcode::kCompare: {
      if (attrs == nullptr || attrs->kind != AttrKind::kCompare) return k;
      const auto& compare = *static_cast<const CompareAttrs*>(attrs);
      if (IsNarrow(type) && compare.type == CompareType::kTotalOrder) {
        k.fn = FindCompareFn(compare, type);  // on the bits, to keep the total order of NaNs
        k.params[0] = static_cast<int64_t>(type);
        return k;
      }
      k.fn = FindCompareFn(compare, machine);
      break;
    }
    default:
      k.fn = FindSignFn(opcode, type);
      if (k.fn != nullptr) return k;
      if (IsComplex(type) || opcode == Opcode::kComplex || opcode == Opcode::kReal ||
          opcode == Opcode::kImag) {
        k.fn = FindComplexFn(opcode, machine);
      }
      if (IsInteger(type) && ElementTypeBits(type) < 8) {
        k.fn = FindSubByteFn(opcode, type);
        k.params[0] = ElementTypeBits(type);
      }
      if (k.fn == nullptr) k.fn = FindArithmeticFn(opcode, machine);
      if (k.fn == nullptr) k.fn = FindBitwiseFn(opcode, machine);
      if (k.fn == nullptr) k.fn = FindFloatFn(opcode, machine);
  }
  k.decode = IsNarrow(type);
  k.encode = IsNarrow(result);
  k.wrap = IsInteger(result) && ElementTypeBits(result) < 8;
  return k;
}

}  // namespace shardcall::inline internal
