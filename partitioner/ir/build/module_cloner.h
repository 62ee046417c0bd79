// SPDX-License-Identifier: Apache-2.0
// Copies instructions of a module to another module of the same Context. Used by passes, imports
// and splices, which build a new module from an old one.
//
// A cloner maps each old instruction and computation to its copy. Operands, control predecessors
// and called computations of a copy are looked up in this map. So copy what an instruction needs
// before the instruction, or name it with Set.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_MODULE_CLONER_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_MODULE_CLONER_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

class ModuleCloner {
 public:
  // Both must outlive the cloner.
  ModuleCloner(const Module& from, Module* to);

  // Makes the new module share ownership of the texts that records of `from` point into.
  void KeepTexts();
  // Copies the header, calls KeepTexts, and reserves room for as many instructions and `more`.
  void CopyHeader(size_t more = 0);
  // Adds an empty computation as the copy of `c`, with its execution thread and with its name or
  // another one.
  CompId AddComputation(CompId c);
  CompId AddComputation(CompId c, absl::string_view name);
  // Makes the copy of the old root the root.
  void SetRoot(CompId c);

  // The copy, invalid if there is none yet.
  InstrId now(InstrId id) const { return instrs_[id.value]; }
  CompId now(CompId c) const { return comps_[c.value]; }
  void Set(InstrId id, InstrId now) { instrs_[id.value] = now; }
  void Set(CompId c, CompId now) { comps_[c.value] = now; }

  // The instruction for Add, with the copies of its called computations, and without rare
  // attributes.
  Instruction CopyOf(InstrId id) const;
  absl::InlinedVector<InstrId, 8> OperandsOf(InstrId id) const;
  // Appends `copy` to `computation` of the new module, as the copy of `id`.
  InstrId Add(InstrId id, const Instruction& copy, absl::Span<const InstrId> operands,
              CompId computation);
  // Gives `now` the copies of the control predecessors of `id`, except those that have no copy in
  // its computation.
  void CopyOrder(InstrId id, InstrId now);
  // Copies the control predecessors and the other rare attributes. `keeps(predecessor)`: whether
  // the edge from an old control predecessor is to be copied.
  void CopyRare(InstrId id, InstrId now);
  void CopyRare(InstrId id, InstrId now, absl::FunctionRef<bool(InstrId)> keeps);
  // Copies the instruction entirely, to the copy of its computation.
  InstrId Clone(InstrId id);
  // `now` was made in place of a copy: it gets the name, the sharding and the attributes.
  void Replace(InstrId id, InstrId now);

  // The copies by old id. The cloner must not be used afterwards.
  std::vector<InstrId> TakeInstructions() { return std::move(instrs_); }
  std::vector<CompId> TakeComputations() { return std::move(comps_); }

 private:
  std::vector<InstrId> NewPredecessors(const RareAttributes& rare, InstrId now,
                                       absl::FunctionRef<bool(InstrId)> keeps) const;

  const Module& from_;
  Module& to_;
  std::vector<InstrId> instrs_;
  std::vector<CompId> comps_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_MODULE_CLONER_H_
