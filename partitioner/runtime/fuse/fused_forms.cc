// SPDX-License-Identifier: Apache-2.0
// Frequent lane kernels in variants for fused steps: with an operand that is one element for all
// lanes, and with f32 results rounded to bf16.
#include <cstdint>

#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/partitioner/runtime/fuse/fused_step.h"
#include "shardcall/partitioner/runtime/lanes/isa.h"
#include "shardcall/partitioner/runtime/lanes/scalar_ops.h"

namespace shardcall {
inline namespace internal {
namespace {

using namespace scalar_ops;  // NOLINT: the names are only used here

template <typename Op, typename T, int kSame, bool kRound>
void Binary(const void* const* in, void* out, int64_t n, const int64_t*) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* o = static_cast<T*>(out);
  const T a0 = *a, b0 = *b;
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) {
    const T x = kSame == 0 ? a0 : a[i], y = kSame == 1 ? b0 : b[i];
    T result = Op::template Do<T>(x, y);
    if constexpr (kRound) result = RoundedToBf16(result);
    o[i] = result;
  }
}

// Select of elements with 4 bytes.
template <int kSame>
void Select(const void* const* in, void* out, int64_t n, const int64_t*) {
  const uint8_t* p = static_cast<const uint8_t*>(in[0]);
  const uint32_t* a = static_cast<const uint32_t*>(in[1]);
  const uint32_t* b = static_cast<const uint32_t*>(in[2]);
  uint32_t* o = static_cast<uint32_t*>(out);
  const uint32_t a0 = *a, b0 = *b;
  SHARDCALL_LANES
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t x = kSame == 1 ? a0 : a[i], y = kSame == 2 ? b0 : b[i];
    o[i] = p[i] != 0 ? x : y;
  }
}

template <typename Op, typename T>
LaneFn FindSame(int same) {
  return same == 0 ? BestWideForCpu<Binary<Op, T, 0, false>>()
                   : BestWideForCpu<Binary<Op, T, 1, false>>();
}
template <typename Op>
LaneFn FindFloat(int same, bool round) {
  if (!round) return FindSame<Op, float>(same);
  return same == 0   ? BestWideForCpu<Binary<Op, float, 0, true>>()
         : same == 1 ? BestWideForCpu<Binary<Op, float, 1, true>>()
                     : BestWideForCpu<Binary<Op, float, -1, true>>();
}
template <typename Op>
LaneFn FindBinary(ElementType type, int same, bool round) {
  if (type == ElementType::kS32) return FindSame<Op, int32_t>(same);
  if (type == ElementType::kU32) return FindSame<Op, uint32_t>(same);
  return type == ElementType::kF32 ? FindFloat<Op>(same, round) : nullptr;
}

LaneFn FindDivide(ElementType type, int same, bool round) {
  return type == ElementType::kF32 ? FindFloat<Divide>(same, round) : nullptr;
}

struct Row {
  Opcode opcode;
  LaneFn (*find)(ElementType type, int same, bool round);
};
constexpr Row kRows[] = {
    {Opcode::kAdd, FindBinary<Add>},           {Opcode::kSubtract, FindBinary<Subtract>},
    {Opcode::kMultiply, FindBinary<Multiply>}, {Opcode::kDivide, FindDivide},
    {Opcode::kMaximum, FindBinary<Maximum>},   {Opcode::kMinimum, FindBinary<Minimum>},
};

}  // namespace

LaneFn FindFusedForm(Opcode opcode, const LaneKernel& kernel, int same, bool round) {
  if (kernel.decode || kernel.encode || kernel.wrap || (same < 0 && !round)) return nullptr;
  const ElementType type = kernel.out_type;
  if (opcode == Opcode::kSelect && kernel.arity == 3) {
    if (round || same == 0 || ElementTypeBytes(type) != 4) return nullptr;
    return same == 1 ? BestWideForCpu<Select<1>>() : BestWideForCpu<Select<2>>();
  }
  if (kernel.arity != 2 || kernel.in_type[0] != type || kernel.in_type[1] != type) return nullptr;
  const Row* const row = RowByOpcode(kRows, opcode);
  return row == nullptr ? nullptr : row->find(type, same, round);
}

}  // namespace internal
}  // namespace shardcall
