// SPDX-License-Identifier: Apache-2.0
// Lane kernels of arithmetic on integers and reals (scalar_ops.h).
#include <cstdint>

#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/partitioner/runtime/lanes/isa.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "shardcall/partitioner/runtime/lanes/lane_loops.h"
#include "shardcall/partitioner/runtime/lanes/scalar_ops.h"

namespace shardcall {
inline namespace internal {
namespace {

using namespace scalar_ops;  // NOLINT: the names are only used here

template <typename Op, typename T>
void Ternary(const void* const* in, void* out, int64_t n, const int64_t*) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  const T* c = static_cast<const T*>(in[2]);
  T* o = static_cast<T*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) o[i] = Op::template Do<T>(a[i], b[i], c[i]);
}

// The form for an element type. Each form is a function template whose instances have one type.
template <typename Forms>
LaneFn ByType(ElementType type) {
  switch (type) {
    case ElementType::kS8: return Forms::template For<int8_t>();
    case ElementType::kS16: return Forms::template For<int16_t>();
    case ElementType::kS32: return Forms::template For<int32_t>();
    case ElementType::kS64: return Forms::template For<int64_t>();
    case ElementType::kU8: return Forms::template For<uint8_t>();
    case ElementType::kU16: return Forms::template For<uint16_t>();
    case ElementType::kU32: return Forms::template For<uint32_t>();
    case ElementType::kU64: return Forms::template For<uint64_t>();
    case ElementType::kF32: return Forms::template For<float>();
    case ElementType::kF64: return Forms::template For<double>();
    default: return nullptr;
  }
}
template <typename Op>
struct OfOne {
  template <typename T>
  static LaneFn For() {
    return BestWideForCpu<UnaryLanes<Op, T>>();
  }
};
template <typename Op>
struct OfTwo {
  template <typename T>
  static LaneFn For() {
    return BestWideForCpu<BinaryLanes<Op, T>>();
  }
};
template <typename Op>
struct OfThree {
  template <typename T>
  static LaneFn For() {
    return BestWideForCpu<Ternary<Op, T>>();
  }
};
LaneFn MulHighByType(ElementType type) {
  return IsInteger(type) ? ByType<OfTwo<MulHigh>>(type) : nullptr;
}

struct Row {
  Opcode opcode;
  LaneFn (*of_numbers)(ElementType type);
  LaneFn (*of_predicates)();
};
// Sums of predicates saturate: add is or, multiply is and. The values 0 and 1 compare as bytes.
constexpr Row kRows[] = {
    {Opcode::kAdd, ByType<OfTwo<Add>>, OfTwo<Maximum>::For<uint8_t>},
    {Opcode::kSubtract, ByType<OfTwo<Subtract>>, nullptr},
    {Opcode::kMultiply, ByType<OfTwo<Multiply>>, OfTwo<Minimum>::For<uint8_t>},
    {Opcode::kDivide, ByType<OfTwo<Divide>>, nullptr},
    {Opcode::kRemainder, ByType<OfTwo<Remainder>>, nullptr},
    {Opcode::kMaximum, ByType<OfTwo<Maximum>>, OfTwo<Maximum>::For<uint8_t>},
    {Opcode::kMinimum, ByType<OfTwo<Minimum>>, OfTwo<Minimum>::For<uint8_t>},
    {Opcode::kPower, ByType<OfTwo<Power>>, nullptr},
    {Opcode::kNegate, ByType<OfOne<Negate>>, nullptr},
    {Opcode::kAbs, ByType<OfOne<Abs>>, nullptr},
    {Opcode::kSign, ByType<OfOne<Sign>>, nullptr},
    {Opcode::kClamp, ByType<OfThree<Clamp>>, OfThree<Clamp>::For<uint8_t>},
    {Opcode::kMulhi, MulHighByType, nullptr},
};

}  // namespace

LaneFn FindArithmeticFn(Opcode opcode, ElementType type) {
  const Row* const row = RowByOpcode(kRows, opcode);
  if (row == nullptr) return nullptr;
  if (type != ElementType::kPred) return row->of_numbers(type);
  return row->of_predicates != nullptr ? row->of_predicates() : nullptr;
}

}  // namespace internal
}  // namespace shardcall
