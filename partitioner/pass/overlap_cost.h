// SPDX-License-Identifier: Apache-2.0
// Estimated times of instructions, for scheduling.
#ifndef SHARDCALL_PARTITIONER_PASS_OVERLAP_COST_H_
#define SHARDCALL_PARTITIONER_PASS_OVERLAP_COST_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/pass/overlap.h"

namespace shardcall {
inline namespace internal {

// Whether a collective can become a pair: it has static arrays and is not asynchronous yet.
bool CanOverlap(const Module& module, const Instruction& instr);

// True for instructions that only name or reinterpret values.
bool IsFree(const Instruction& instr);

class OverlapCosts {
 public:
  OverlapCosts(const Module& module, const CostModel& cost);

  // Microseconds of computation: 0 for collectives that can overlap.
  double Work(InstrId id) const;
  // Microseconds that a collective takes.
  double Transfer(InstrId id) const;

 private:
  const Module& m_;
  const CostModel cost_;
  std::vector<double> comps_;  // work of each computation, collectives included
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_OVERLAP_COST_H_
