// SPDX-License-Identifier: Apache-2.0
// A fused step: elementwise ops that run together over blocks of the flat index space, so that
// intermediate values stay in cache. Values are registers of one block: an operand or a result in
// place, or scratch memory. bf16 values are held as f32 and rounded after each op, as unfused ops
// do. Reductions of such values may end the step.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSED_STEP_H_
#define SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSED_STEP_H_

#include <bit>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "shardcall/partitioner/runtime/fuse/fusible.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {
inline namespace internal {

// A register's memory.
struct FusedRegister {
  enum Place : uint8_t { kOperand, kResult, kScratch, kTable };
  Place place = kScratch;
  int index = 0;  // operand, result, scratch slot or table
  int bytes = 4;  // of an element
};

// A strided view of an operand by flat index: loops outermost first, strides in elements; the
// product of the sizes is the step's number of elements.
struct FusedView {
  struct Loop {
    int64_t size, stride;
  };
  absl::InlinedVector<Loop, 4> loops;
  int64_t offset = 0;
  bool scalar() const { return loops.empty(); }
};

// While a block runs, a register may hold a single element that stands for all: a broadcast
// scalar, or a value that is constant in a row. Instructions use it directly if they have such a
// form, else it is copied to the whole block first.
struct FusedInstr {
  enum Kind : uint8_t { kCompute, kLoadView, kDecode, kEncode, kReduce, kHorner };
  Kind kind = kCompute;
  bool round = false;  // kCompute: rounds the result to bf16, held in f32
  LaneKernel kernel;   // kCompute
  // Forms of the kernel that include the rounding: with operand k a single element, or with none.
  // Null: there is no such form.
  LaneFn same_form[3] = {nullptr, nullptr, nullptr}, form = nullptr;
  int in[3] = {-1, -1, -1};
  int out = -1;
  int operand = -1;  // kLoadView: the operand, read by `view`; decoded if bf16
  FusedView view;
  int reduction = -1;  // kReduce: reduces in[0]
  // kHorner: (in[0] * in[1] + c) * in[1] + c' and so on, in f32; registers of the scalars c.
  absl::InlinedVector<int, 1> coefficients;
};

// A reduction of one of the step's values (fused_reduce.h).
struct FusedReduceSpec {
  MonoidReduceData data;
  int init = -1;  // operand
  int result = -1;
};

// A view that repeats every `period` elements, stored (and decoded) once, long enough that any
// block lies within it.
struct FusedTable {
  int operand = -1;
  FusedView view;
  int64_t period = 0;
  int reg = -1;
};

struct FusedData : OpData {
  int64_t elements = 0, block = 0;
  std::vector<FusedRegister> registers;
  std::vector<FusedTable> tables;
  std::vector<FusedInstr> once;  // scalars, filled before the first block
  std::vector<FusedInstr> instrs;
  std::vector<FusedReduceSpec> reductions;
  int scratch_slots = 0;
  int64_t scratch_slot_bytes = 0;
  bool views_of_bf16 = false;  // one more slot, for decoding
  // By result: operands whose buffer it may reuse at their last use.
  std::vector<absl::InlinedVector<int, 2>> reuse;
};

absl::Status RunFused(StepRun& run);

// Makes kHorner of chains of products and sums; call this before scratch is allocated.
inline constexpr int kMostCoefficients = 32;
void FusePolynomials(FusedData* data);

// Elements [begin, begin + n) of a view of `source`, whose elements have 1, 2, 4, 8 or 16 bytes: a
// pointer into `source` if they are contiguous, else `scratch`, filled.
const void* LoadView(int bytes, const FusedView& view, const void* source, int64_t begin, int64_t n,
                     void* scratch);

// The form of an opcode's kernel with operand `same` a single element for all lanes (-1: none),
// and with f32 results rounded to bf16; null if there is none.
LaneFn FindFusedForm(Opcode opcode, const LaneKernel& kernel, int same, bool round);

// As FloatToBF16 does, but without branches; the result stays a float.
inline float RoundedToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
  const uint32_t nan = (bits & 0x80000000u) | 0x7fc00000u;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return std::bit_cast<float>(is_nan ? nan : rounded);
}

// Kernels that are not in the table: bf16 to f32 and back (without rounding), and the rounding.
void DecodeBf16(const uint16_t* in, float* out, int64_t n);
void EncodeBf16(const float* in, uint16_t* out, int64_t n);
void RoundToBf16(float* values, int64_t n);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSED_STEP_H_
