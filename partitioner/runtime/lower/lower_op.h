// SPDX-License-Identifier: Apache-2.0
// Lowering by op family: each function fills in a step's `fn` and `data`. Opcode, name, operands,
// results and shapes are set already.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_OP_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_OP_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/lower/lower.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {
inline namespace internal {

// The instruction to lower, and its module.
class LowerContext {
 public:
  LowerContext(const Module& module, const LowerOptions& options, InstrId id)
      : module(module), options(options), id(id), instr(module.instr(id)) {}

  const Module& module;
  const LowerOptions& options;
  const InstrId id;
  const Instruction& instr;

  int num_operands() const { return static_cast<int>(instr.operand_count); }
  const Shape* operand_shape(int k) const { return module.instr(module.operands(instr)[k]).shape; }
  // The attribute record; the parser and the verifier guarantee its kind.
  template <typename T>
  const T& attrs() const {
    return instr.as<T>();
  }
  // Computations keep their numbers.
  int computation(CompId comp) const { return static_cast<int>(comp.value); }

  absl::Status Error(absl::string_view code, absl::string_view message, absl::string_view fix = "",
                     absl::StatusCode status = absl::StatusCode::kInvalidArgument) const;
  absl::Status Unimplemented(absl::string_view message) const;
};

LeafShape MakeLeafShape(const Shape& shape);
inline Dims ToDims(Ints v) { return Dims(v.begin(), v.end()); }

using LowerFn = absl::Status (*)(const LowerContext& context, Step* step);

// The lowering functions that the op table names.
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  absl::Status Lower##lower(const LowerContext& context, Step* step);
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP
// Custom calls that enter and leave a manual region (global mode).
absl::Status LowerManualBoundary(const LowerContext& context, Step* step);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_OP_H_
