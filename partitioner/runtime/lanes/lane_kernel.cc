// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"

#include <algorithm>
#include <cstring>

#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
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

namespace {

struct Query {
  Opcode opcode;
  const Attributes* attrs;
  absl::Span<const ElementType> operands;
  ElementType result;

  ElementType type() const { return operands[0]; }
  ElementType machine() const { return MachineType(type()); }
};

// Sets what is done around a kernel on machine types.
void DecodeAndEncode(const Query& q, LaneKernel* k) {
  k->decode = IsNarrow(q.type());
  k->encode = IsNarrow(q.result);
  k->wrap = IsInteger(q.result) && ElementTypeBits(q.result) < 8;
}

void FindCopy(const Query& q, LaneKernel* k) { k->fn = FindCopyFn(ElementTypeBytes(q.type())); }

void FindSelect(const Query& q, LaneKernel* k) {
  if (q.type() == ElementType::kPred) k->fn = FindSelectFn(ElementTypeBytes(q.result));
}

void FindConvert(const Query& q, LaneKernel* k) {
  if (q.type() == q.result) return FindCopy(q, k);
  // To a narrow integer it saturates to the narrow range. f64 to a narrow float rounds through f32,
  // as XLA's CPU backend does.
  const bool saturates = IsFloat(q.type()) && IsInteger(q.result) && ElementTypeBits(q.result) < 8;
  k->fn = FindConvertFn(q.machine(), saturates ? q.result : MachineType(q.result));
  DecodeAndEncode(q, k);
}

void FindStochasticConvert(const Query& q, LaneKernel* k) {
  if (q.operands.size() != 2) return;
  k->fn = FindStochasticConvertFn(q.type(), q.operands[1], q.result);
  k->params[0] = ElementTypeBits(q.operands[1]);
  k->params[1] = ElementTypeBits(q.result);
  DecodeAndEncode(q, k);
}

void FindReducePrecision(const Query& q, LaneKernel* k) {
  if (q.attrs == nullptr || q.attrs->kind != AttrKind::kReducePrecision) return;
  const auto& a = *static_cast<const ReducePrecisionAttrs*>(q.attrs);
  if (a.exponent_bits < 1 || a.mantissa_bits < 0) return;
  k->params[0] = a.exponent_bits;
  k->params[1] = a.mantissa_bits;
  // 16-bit floats and f8e5m2 on their own bits, since their exponents differ from those of f32.
  switch (q.type()) {
    case ElementType::kF64: k->fn = ReducePrecision<uint64_t, 52, 11>; break;
    case ElementType::kF16: k->fn = ReducePrecision<uint16_t, 10, 5>; return;
    case ElementType::kBF16: k->fn = ReducePrecision<uint16_t, 7, 8>; return;
    case ElementType::kF8E5M2: k->fn = ReducePrecision<uint8_t, 2, 5>; return;
    default:
      if (q.machine() == ElementType::kF32) k->fn = ReducePrecision<uint32_t, 23, 8>;
  }
  DecodeAndEncode(q, k);
}

void FindCompare(const Query& q, LaneKernel* k) {
  if (q.attrs == nullptr || q.attrs->kind != AttrKind::kCompare) return;
  const auto& compare = *static_cast<const CompareAttrs*>(q.attrs);
  if (IsNarrow(q.type()) && compare.type == CompareType::kTotalOrder) {
    k->fn = FindCompareFn(compare, q.type());  // on the bits, to keep the total order of NaNs
    k->params[0] = static_cast<int64_t>(q.type());
    return;
  }
  k->fn = FindCompareFn(compare, q.machine());
  DecodeAndEncode(q, k);
}

// Ops whose kernel depends on more than one type, or on attributes.
struct Row {
  Opcode opcode;
  void (*find)(const Query& q, LaneKernel* k);
};
constexpr Row kRows[] = {
    {Opcode::kCopy, FindCopy},
    {Opcode::kSelect, FindSelect},
    {Opcode::kConvert, FindConvert},
    {Opcode::kStochasticConvert, FindStochasticConvert},
    {Opcode::kReducePrecision, FindReducePrecision},
    {Opcode::kCompare, FindCompare},
};

// All others, from the first family that has the op.
void FindInFamilies(const Query& q, LaneKernel* k) {
  k->fn = FindSignFn(q.opcode, q.type());
  if (k->fn != nullptr) return;
  if (IsComplex(q.type()) || IsComplex(q.result) || q.opcode == Opcode::kReal ||
      q.opcode == Opcode::kImag) {
    k->fn = FindComplexFn(q.opcode, q.machine());
  }
  if (IsInteger(q.type()) && ElementTypeBits(q.type()) < 8) {
    k->fn = FindSubByteFn(q.opcode, q.type());
    k->params[0] = ElementTypeBits(q.type());
  }
  if (k->fn == nullptr) k->fn = FindArithmeticFn(q.opcode, q.machine());
  if (k->fn == nullptr) k->fn = FindBitwiseFn(q.opcode, q.machine());
  if (k->fn == nullptr) k->fn = FindFloatFn(q.opcode, q.machine());
  DecodeAndEncode(q, k);
}

}  // namespace

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
  const Query q = {opcode, attrs, operands, result};
  const Row* const row = RowByOpcode(kRows, opcode);
  (row != nullptr ? row->find : FindInFamilies)(q, &k);
  return k;
}

}  // namespace internal
}  // namespace shardcall
