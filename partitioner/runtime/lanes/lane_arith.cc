// SPDX-License-Identifier: Apache-2.0
// Lane kernels of arithmetic on integers and reals (scalar_ops.h).
#include <cstdint>

#include "shardcall/partitioner/runtime/lanes/isa.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "shardcall/partitioner/runtime/lanes/scalar_ops.h"

namespace shardcall::inline internal {
namespace {

using namespace scalar_ops;  // NOLINT: the names are only used here

template <typename Op, typename T>
void Unary(const void* const* in, void* out, int64_t n, const int64_t*) {
  const T* a = static_cast<const T*>(in[0]);
  T* o = static_cast<T*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) o[i] = Op::template Do<T>(a[i]);
}
template <typename Op, typename T>
void Binary(const void* const* in, void* out, int64_t n, const int64_t*) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* o = static_cast<T*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) o[i] = Op::template Do<T>(a[i], b[i]);
}
template <typename Op, typename T>
void Ternary(const void* const* in, void* out, int64_t n, const int64_t*) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  const T* c = static_cast<const T*>(in[2]);
  T* o = static_cast<T*>(out);
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) o[i] = Op::template Do<T>(a[i], b[i], c[i]);
}

#define SHARDCALL_BY_TYPE(Form, Op)                                      \
  switch (type) {                                                        \
    case ElementType::kS8: return BestWideForCpu<Form<Op, int8_t>>();    \
    case ElementType::kS16: return BestWideForCpu<Form<Op, int16_t>>();  \
    case ElementType::kS32: return BestWideForCpu<Form<Op, int32_t>>();  \
    case ElementType::kS64: return BestWideForCpu<Form<Op, int64_t>>();  \
    case ElementType::kU8: return BestWideForCpu<Form<Op, uint8_t>>();   \
    case ElementType::kU16: return BestWideForCpu<Form<Op, uint16_t>>(); \
    case ElementType::kU32: return BestWideForCpu<Form<Op, uint32_t>>(); \
    case ElementType::kU64: return BestWideForCpu<Form<Op, uint64_t>>(); \
    case ElementType::kF32: return BestWideForCpu<Form<Op, float>>();    \
    case ElementType::kF64: return BestWideForCpu<Form<Op, double>>();   \
    default: return nullptr;                                             \
  }

}  // namespace

LaneFn FindArithmeticFn(Opcode opcode, ElementType type) {
  if (type == ElementType::kPred) {
    // Sums of predicates saturate: add is or, multiply is and. The values 0 and 1 compare as bytes.
    switch (opcode) {
      case Opcode::kAdd:
      case Opcode::kMaximum: return BestWideForCpu<Binary<Maximum, uint8_t>>();
      case Opcode::kMultiply:
      case Opcode::kMinimum: return BestWideForCpu<Binary<Minimum, uint8_t>>();
      case Opcode::kClamp: return BestWideForCpu<Ternary<Clamp, uint8_t>>();
      default: return nullptr;
    }
  }
  switch (opcode) {
    case Opcode::kAdd: SHARDCALL_BY_TYPE(Binary, Add)
    case Opcode::kSubtract: SHARDCALL_BY_TYPE(Binary, Subtract)
    case Opcode::kMultiply: SHARDCALL_BY_TYPE(Binary, Multiply)
    case Opcode::kDivide: SHARDCALL_BY_TYPE(Binary, Divide)
    case Opcode::kRemainder: SHARDCALL_BY_TYPE(Binary, Remainder)
    case Opcode::kMaximum: SHARDCALL_BY_TYPE(Binary, Maximum)
    case Opcode::kMinimum: SHARDCALL_BY_TYPE(Binary, Minimum)
    case Opcode::kPower: SHARDCALL_BY_TYPE(Binary, Power)
    case Opcode::kNegate: SHARDCALL_BY_TYPE(Unary, Negate)
    case Opcode::kAbs: SHARDCALL_BY_TYPE(Unary, Abs)
    case Opcode::kSign: SHARDCALL_BY_TYPE(Unary, Sign)
    case Opcode::kClamp: SHARDCALL_BY_TYPE(Ternary, Clamp)
    case Opcode::kMulhi:
      if (!IsInteger(type)) return nullptr;
      SHARDCALL_BY_TYPE(Binary, MulHigh)
    default: return nullptr;
  }
}

}  // namespace shardcall::inline internal
