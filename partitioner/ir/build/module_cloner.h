// SPDX-License-Identifier: Apache-2.0
// Copies of a module's instructions in another one of the same Context: what passes, imports
// and splices share that build a module from an old one.
//
// A cloner knows what each instruction and computation has become. The operands, control
// predecessors and called computations of a copy are those, so what an instruction needs is
// copied before it, or said with Set.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_MODULE_CLONER_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_MODULE_CLONER_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall::inline internal {

class ModuleCloner {
 public:
  // Both outlive the cloner.
  ModuleCloner(const Module& from, Module* to);

  // The texts that records of `from` point to.
  void KeepTexts();
  // These and the header, with room for as many instructions and `more`.
  void CopyHeader(size_t more = 0);
  // An empty computation in place of `c`, on its thread, by its name or another one.
  CompId AddComputation(CompId c);
  CompId AddComputation(CompId c, absl::string_view name);
  // Its root is what the old one's became.
  void SetRoot(CompId c);

  // What became of it. Invalid: nothing yet.
  InstrId now(InstrId id) const { return instrs_[id.value]; }
  CompId now(CompId c) const { return comps_[c.value]; }
  void Set(InstrId id, InstrId now) { instrs_[id.value] = now; }
  void Set(CompId c, CompId now) { comps_[c.value] = now; }

  // The instruction as it stands, but that it calls the new computations; for Add.
  Instruction CopyOf(InstrId id) const;
  absl::InlinedVector<InstrId, 8> OperandsOf(InstrId id) const;
  // Adds `copy` behind what `computation` of the new module has; `id` has become that.
  InstrId Add(InstrId id, const Instruction& copy, absl::Span<const InstrId> operands,
              CompId computation);
  // Gives `now` the control predecessors of `id`, but for those that nothing of its computation
  // came of.
  void CopyOrder(InstrId id, InstrId now);
  // These, and the other rare attributes.
  void CopyRare(InstrId id, InstrId now);
  // All of it, into what its computation has become.
  InstrId Clone(InstrId id);

  // By old id; the cloner is used no more.
  std::vector<InstrId> TakeInstructions() { return std::move(instrs_); }
  std::vector<CompId> TakeComputations() { return std::move(comps_); }

 private:
  std::vector<InstrId> NewPredecessors(const RareAttributes& rare, InstrId now) const;

  const Module& from_;
  Module& to_;
  std::vector<InstrId> instrs_;
  std::vector<CompId> comps_;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_MODULE_CLONER_H_
