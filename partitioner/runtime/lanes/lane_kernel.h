// SPDX-License-Identifier: Apache-2.0
// Elementwise operations as functions over n lanes: lane i of the result depends on lane i of each
// operand. The same kernels run over whole arrays (an elementwise instruction), over rows
// (reductions, scatters) and over one lane (comparators), so there is one table of them.
//
// A kernel exists for the machine types; narrow floats are decoded to f32,
// computed there and rounded once, and integers narrower than a byte are
// computed as 8-bit ones and wrapped.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LANES_LANE_KERNEL_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LANES_LANE_KERNEL_H_

#include <cstdint>

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

// in[k]: lanes of operand k. `out` may equal an in[k] with the same element width. `params` are
// those of LaneKernel.
using LaneFn = void (*)(const void* const* in, void* out, int64_t n, const int64_t* params);

struct LaneKernel {
  LaneFn fn = nullptr;
  int arity = 0;
  ElementType in_type[3] = {};
  ElementType out_type = ElementType::kInvalid;
  // Operands are first decoded to f32, or the result is encoded afterwards.
  bool decode = false, encode = false;
  bool wrap = false;  // normalise sub-byte results
  int64_t params[2] = {0, 0};

  bool valid() const { return fn != nullptr; }
  void Run(const void* const* in, void* out, int64_t n) const;
};

// The kernel of an elementwise opcode for those types; not valid() if there is none. `attrs` may
// be null if the opcode has no attributes.
LaneKernel FindLaneKernel(Opcode opcode, const Attributes* attrs,
                          absl::Span<const ElementType> operands, ElementType result);

// Parts of the table, by family: the function on machine types, or null.
LaneFn FindArithmeticFn(Opcode opcode, ElementType type);
LaneFn FindBitwiseFn(Opcode opcode, ElementType type);
// Integers of params[0] < 8 bits, for which wrapping the result of the 8-bit kernel would be
// wrong.
LaneFn FindSubByteFn(Opcode opcode, ElementType type);
LaneFn FindFloatFn(Opcode opcode, ElementType type);    // f32 and f64, also for predicates
LaneFn FindComplexFn(Opcode opcode, ElementType type);  // by the operand's type
// Machine types; for total order also narrow floats, with the type in params[0].
LaneFn FindCompareFn(const CompareAttrs& attrs, ElementType type);
LaneFn FindSelectFn(int element_bytes);
// negate and abs of f16, bf16 and f8e5m2 on the sign bit, which keeps the payload of NaN.
LaneFn FindSignFn(Opcode opcode, ElementType type);
LaneFn FindConvertFn(ElementType from, ElementType to);  // machine types

// Floats are decoded; the caller sets params to the bits of `random` and of `to`.
LaneFn FindStochasticConvertFn(ElementType from, ElementType random, ElementType to);

// Machine types: pred, 8 to 64 bit integers, f32, f64, c64, c128.
bool IsMachineType(ElementType type);
// The machine type in which elements of `type` are stored or computed: f32 for
// narrow floats, s8 and u8 for sub-byte integers.
ElementType MachineType(ElementType type);
inline bool IsNarrow(ElementType type) {
  return IsFloat(type) && type != ElementType::kF32 && type != ElementType::kF64;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LANES_LANE_KERNEL_H_
