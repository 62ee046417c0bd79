// SPDX-License-Identifier: Apache-2.0
// Orders of instructions in which each stands behind what it needs: its operands and its control
// predecessors.
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_NEEDS_FIRST_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_NEEDS_FIRST_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

class NeedsFirst {
 public:
  // Refers to the module.
  explicit NeedsFirst(const Module& module) : module_(module), added_(module.num_instructions()) {}

  // Adds the instruction to the order, right behind what it needs, need by need, and whatever of
  // this has not been added before. Takes time linear in what is added and its needs.
  void Add(InstrId id, std::vector<InstrId>* order);

  // All of a computation, of which none has been added before, by their places, and each
  // behind what it needs. `place` has an entry for each instruction of the module.
  std::vector<InstrId> ByPlace(absl::Span<const InstrId> instructions,
                               absl::Span<const int32_t> place);

 private:
  const Module& module_;
  std::vector<bool> added_;                       // by instruction
  std::vector<std::pair<InstrId, size_t>> open_;  // with how many of its needs are added
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_NEEDS_FIRST_H_
