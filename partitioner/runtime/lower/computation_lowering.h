// SPDX-License-Identifier: Apache-2.0
// The lowering of one computation. lower_aliases.cc has the ops that need no step.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_COMPUTATION_LOWERING_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_COMPUTATION_LOWERING_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/analysis/liveness.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"

namespace shardcall {
inline namespace internal {

class ComputationLowering {
 public:
  ComputationLowering(const Module& module, const LowerOptions& options, const Computation& comp,
                      const Liveness& live, std::vector<uint32_t>* position, int64_t* inline_budget,
                      DeviceProgram* program, ProgramComputation* out, int depth)
      : m_(module),
        options_(options),
        comp_(comp),
        live_(live),
        inline_budget_(inline_budget),
        program_(program),
        out_(out),
        depth_(depth),
        slots_(comp.instructions.size()),
        position_(*position) {}

  absl::Status Run();

 private:
  using Slots = absl::InlinedVector<int32_t, 2>;

  absl::Status Survey();
  // Emits steps for all live instructions except parameters, which have slots already.
  absl::Status LowerInstructions();
  // Emits the callee's steps in place of a call; false if it must be called.
  absl::StatusOr<bool> Inline(const LowerContext& context, Slots* result);

  Slots& slots(InstrId id) { return slots_[position_[id.value]]; }
  Slots OperandSlots(const Instruction& i) {
    Slots all;
    for (InstrId operand : m_.operands(i)) {
      const Slots& s = slots(operand);
      all.insert(all.end(), s.begin(), s.end());
    }
    return all;
  }
  int32_t NewSlot() { return out_->num_slots++; }
  int32_t ConstantSlot(Tensor value) {
    const int32_t slot = NewSlot();
    out_->constants.emplace_back(slot, std::move(value));
    return slot;
  }
  // The slots of instructions whose results exist already (tuple, bitcast and the like); false for
  // others.
  absl::StatusOr<bool> Alias(const LowerContext& context, Slots* result);
  // Each of them for one kind of op; lower_aliases.cc.
  struct AliasRow {
    Opcode opcode;
    absl::StatusOr<bool> (ComputationLowering::*alias)(const LowerContext& context, Slots* result);
  };
  absl::StatusOr<bool> AllOperands(const LowerContext& context, Slots* result);
  absl::StatusOr<bool> FirstOperand(const LowerContext& context, Slots* result);
  absl::StatusOr<bool> TupleElement(const LowerContext& context, Slots* result);
  absl::StatusOr<bool> CopyStart(const LowerContext& context, Slots* result);
  absl::StatusOr<bool> CopyDone(const LowerContext& context, Slots* result);
  absl::StatusOr<bool> ResultsOfStart(const LowerContext& context, Slots* result);
  absl::StatusOr<bool> Constant(const LowerContext& context, Slots* result);
  absl::StatusOr<bool> Token(const LowerContext& context, Slots* result);
  absl::StatusOr<bool> KnownCall(const LowerContext& context, Slots* result);
  // Emits a step for leaves [first, first + count) of the instruction's shape.
  absl::Status Emit(const LowerContext& context, int first, int count, Slots* result);
  absl::Status EmitStart(const LowerContext& context, Slots* result);
  // The start and the end of an asynchronous collective.
  absl::Status EmitStarted(const LowerContext& context, Slots* result);
  absl::Status EmitDone(const LowerContext& context, Slots* result);
  Step NewStep(const LowerContext& context) const;
  // Adds slots and shapes of leaves [first, first + count) to the step's results.
  absl::Status AddResults(const LowerContext& context, int first, int count, Step* step,
                          Slots* result);
  bool IsStarted(InstrId id) const { return !started_.empty() && started_[position_[id.value]]; }
  void FindLastUses();

  const Module& m_;
  const LowerOptions& options_;
  const Computation& comp_;
  const Liveness& live_;
  int64_t* inline_budget_;
  DeviceProgram* program_;
  ProgramComputation* out_;
  const int depth_;                  // of calls that were inlined to get here
  std::vector<Slots> slots_;         // by position in the computation
  std::vector<uint32_t>& position_;  // by id
  std::vector<bool> started_;        // by position, or empty; FindStarted
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_COMPUTATION_LOWERING_H_
