// SPDX-License-Identifier: Apache-2.0
// Lane kernels of bitwise operations and select: logic, shifts (beyond the width: zero, or the
// sign), bit counts.
#include <bit>
#include <cstdint>
#include <type_traits>

#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/partitioner/runtime/lanes/isa.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "shardcall/partitioner/runtime/lanes/lane_loops.h"

namespace shardcall {
inline namespace internal {
namespace {

struct And {
  template <typename T>
  static T Do(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <typename T>
  static T Do(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <typename T>
  static T Do(T a, T b) {
    return a ^ b;
  }
};
struct ShiftLeft {
  template <typename T>
  static T Do(T a, T b) {
    return b >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << b);
  }
};
struct ShiftRightLogical {
  template <typename T>
  static T Do(T a, T b) {
    return b >= 8 * sizeof(T) ? T{0} : static_cast<T>(a >> b);
  }
};
struct ShiftRightArithmetic {
  template <typename T>
  static T Do(T a, T b) {
    const T past = 8 * sizeof(T) - 1;
    return static_cast<T>(static_cast<std::make_signed_t<T>>(a) >> (b > past ? past : b));
  }
};

struct Not {
  template <typename T>
  static T Do(T a) {
    return static_cast<T>(~a);
  }
};
struct NotPred {
  template <typename T>
  static T Do(T a) {
    return a == 0;
  }
};
struct PopCount {
  template <typename T>
  static T Do(T a) {
    return static_cast<T>(std::popcount(a));
  }
};
struct CountLeadingZeros {
  template <typename T>
  static T Do(T a) {
    return static_cast<T>(std::countl_zero(a));
  }
};

// The highest bit is the sign of a float.
struct FlipSign {
  template <typename T>
  static T Do(T a) {
    return a ^ static_cast<T>(T{1} << (8 * sizeof(T) - 1));
  }
};
struct ClearSign {
  template <typename T>
  static T Do(T a) {
    return a & static_cast<T>(~(T{1} << (8 * sizeof(T) - 1)));
  }
};

template <typename T>
void Select(const void* const* in, void* out, int64_t n, const int64_t*) {
  const uint8_t* p = static_cast<const uint8_t*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  T* o = static_cast<T*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) {
    const T yes = a[i], no = b[i];  // both are loaded, so no branch is needed
    o[i] = p[i] != 0 ? yes : no;
  }
}

struct Word128 {
  uint64_t low, high;
};

// For integers of params[0] < 8 bits, which are extended to a byte. The caller wraps the results.
struct SubByteShiftRightLogical {
  static int Do(int a, int b, int bits) { return b < 0 || b >= bits ? 0 : Low(a, bits) >> b; }
  static int Low(int a, int bits) { return a & ((1 << bits) - 1); }
};
struct SubByteShiftRightArithmetic {
  static int Do(int a, int b, int bits) {
    const int sign = 1 << (bits - 1);
    const int extended = (SubByteShiftRightLogical::Low(a, bits) ^ sign) - sign;
    return extended >> (b < 0 || b >= bits ? bits - 1 : b);
  }
};
struct SubByteMulHigh {
  static int Do(int a, int b, int bits) { return (a * b) >> bits; }
};
template <typename Op, typename T>
void SubByteBinary(const void* const* in, void* out, int64_t n, const int64_t* params) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* o = static_cast<T*>(out);
  const int bits = static_cast<int>(params[0]);
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<T>(Op::Do(a[i], b[i], bits));
}
void SubBytePopCount(const void* const* in, void* out, int64_t n, const int64_t* params) {
  const uint8_t* a = static_cast<const uint8_t*>(in[0]);
  uint8_t* o = static_cast<uint8_t*>(out);
  const uint32_t mask = (1u << params[0]) - 1;
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<uint8_t>(std::popcount(a[i] & mask));
}
void SubByteLeadingZeros(const void* const* in, void* out, int64_t n, const int64_t* params) {
  const uint8_t* a = static_cast<const uint8_t*>(in[0]);
  uint8_t* o = static_cast<uint8_t*>(out);
  const int bits = static_cast<int>(params[0]);
  const uint32_t mask = (1u << bits) - 1;
  for (int64_t i = 0; i < n; ++i) {
    o[i] = static_cast<uint8_t>(std::countl_zero(a[i] & mask) - (32 - bits));
  }
}
// The forms for the bytes of an element.
template <typename Op>
LaneFn OfOne(int bytes) {
  switch (bytes) {
    case 1: return BestForCpu<UnaryLanes<Op, uint8_t>>();
    case 2: return BestForCpu<UnaryLanes<Op, uint16_t>>();
    case 4: return BestForCpu<UnaryLanes<Op, uint32_t>>();
    case 8: return BestForCpu<UnaryLanes<Op, uint64_t>>();
    default: return nullptr;
  }
}
template <typename Op>
LaneFn OfTwo(int bytes) {
  switch (bytes) {
    case 1: return BestForCpu<BinaryLanes<Op, uint8_t>>();
    case 2: return BestForCpu<BinaryLanes<Op, uint16_t>>();
    case 4: return BestForCpu<BinaryLanes<Op, uint32_t>>();
    case 8: return BestForCpu<BinaryLanes<Op, uint64_t>>();
    default: return nullptr;
  }
}

struct Row {
  Opcode opcode;
  LaneFn (*of_integers)(int bytes);
  LaneFn (*of_predicates)(int bytes);
};
constexpr Row kRows[] = {
    {Opcode::kAnd, OfTwo<And>, OfTwo<And>},
    {Opcode::kOr, OfTwo<Or>, OfTwo<Or>},
    {Opcode::kXor, OfTwo<Xor>, OfTwo<Xor>},
    {Opcode::kNot, OfOne<Not>, OfOne<NotPred>},
    {Opcode::kShiftLeft, OfTwo<ShiftLeft>, nullptr},
    {Opcode::kShiftRightLogical, OfTwo<ShiftRightLogical>, nullptr},
    {Opcode::kShiftRightArithmetic, OfTwo<ShiftRightArithmetic>, nullptr},
    {Opcode::kPopcnt, OfOne<PopCount>, nullptr},
    {Opcode::kCountLeadingZeros, OfOne<CountLeadingZeros>, nullptr},
};

struct SubByteRow {
  Opcode opcode;
  LaneFn of_signed, of_unsigned;
};
template <typename Op>
constexpr SubByteRow SubByte(Opcode opcode) {
  return {opcode, SubByteBinary<Op, int8_t>, SubByteBinary<Op, uint8_t>};
}
constexpr SubByteRow kSubByteRows[] = {
    SubByte<SubByteShiftRightLogical>(Opcode::kShiftRightLogical),
    SubByte<SubByteShiftRightArithmetic>(Opcode::kShiftRightArithmetic),
    SubByte<SubByteMulHigh>(Opcode::kMulhi),
    {Opcode::kPopcnt, SubBytePopCount, SubBytePopCount},
    {Opcode::kCountLeadingZeros, SubByteLeadingZeros, SubByteLeadingZeros},
};

}  // namespace

LaneFn FindBitwiseFn(Opcode opcode, ElementType type) {
  const Row* const row = RowByOpcode(kRows, opcode);
  if (row == nullptr) return nullptr;
  if (IsInteger(type)) return row->of_integers(ElementTypeBytes(type));
  if (type != ElementType::kPred || row->of_predicates == nullptr) return nullptr;
  return row->of_predicates(ElementTypeBytes(type));
}

LaneFn FindSubByteFn(Opcode opcode, ElementType type) {
  const SubByteRow* const row = RowByOpcode(kSubByteRows, opcode);
  if (row == nullptr) return nullptr;
  return IsSignedInteger(type) ? row->of_signed : row->of_unsigned;
}

LaneFn FindSignFn(Opcode opcode, ElementType type) {
  if (opcode != Opcode::kNegate && opcode != Opcode::kAbs) return nullptr;
  const bool flip = opcode == Opcode::kNegate;
  switch (type) {
    case ElementType::kF16:
    case ElementType::kBF16:
      return flip ? UnaryLanes<FlipSign, uint16_t> : UnaryLanes<ClearSign, uint16_t>;
    case ElementType::kF8E5M2:
      return flip ? UnaryLanes<FlipSign, uint8_t> : UnaryLanes<ClearSign, uint8_t>;
    default: return nullptr;
  }
}

LaneFn FindSelectFn(int element_bytes) {
  switch (element_bytes) {
    case 1: return BestForCpu<Select<uint8_t>>();
    case 2: return BestForCpu<Select<uint16_t>>();
    case 4: return BestForCpu<Select<uint32_t>>();
    case 8: return BestForCpu<Select<uint64_t>>();
    case 16: return BestForCpu<Select<Word128>>();
    default: return nullptr;
  }
}

}  // namespace internal
}  // namespace shardcall
