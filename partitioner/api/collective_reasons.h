// SPDX-License-Identifier: Apache-2.0
// Which value each collective moves, and why that value is sharded as it is.
#ifndef SHARDCALL_PARTITIONER_API_COLLECTIVE_REASONS_H_
#define SHARDCALL_PARTITIONER_API_COLLECTIVE_REASONS_H_

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/propagation/reasons.h"

namespace shardcall {
inline namespace internal {

// Keeps what it found for the collectives that are asked about next: all of a program's take time
// linear in the program.
class CollectiveReasons {
 public:
  // Refers to `p`, which must outlive it. `whole`: chains of reasons are not shortened.
  explicit CollectiveReasons(const PartitionedProgram& p, bool whole = false)
      : program_(p.global->program),
        plan_(p.plan),
        shardings_(p.global->shardings),
        reasons_(p.global->program, p.global->shardings, whole) {}

  // The leaf of the propagated program that a collective moves; invalid if none is recorded.
  LeafId MovedLeaf(const CollectiveRecord& r);
  // Why the value that the collective moves is sharded as it is; of a sum over devices, why what is
  // added up is sharded over them. Empty if unknown.
  std::string WhySharded(const CollectiveRecord& r);
  // Where an operand is moved from axes to others, which the result of the op has, or what a loop
  // or branch begins or ends with to those of what it carries or gives, or a sum is reduced into
  // shards: why that has them, or is whole. Else empty.
  std::string WhyWanted(const CollectiveRecord& r);
  // Why a leaf of the propagated program is.
  std::string WhySharded(LeafId leaf) { return reasons_.Of(leaf); }

 private:
  // Whether the value is moved for what a loop, branch or call is given; else, if it is carried,
  // for the result of a computation.
  bool IsGiven(const CollectiveRecord& r) const;
  // The leaf whose axes a value is moved to, if there is one.
  LeafId WantedLeaf(const CollectiveRecord& r);
  // The loop whose body, or conditional a branch of which, has this root; invalid if none has.
  InstrId OpThatEndsWith(InstrId root);
  // Of a sum over devices that waited, a value whose sum it is: what a loop accumulated, or an op
  // passed on or added to another one. Invalid if the value did not wait.
  LeafId SummedBefore(LeafId sum) const;
  // Why an operand of the op that makes `sum` is sharded over axes of `from` that it is a sum over.
  std::string WhySummed(LeafId sum, const Sharding& from);
  // Why a sum is reduced into shards over `taken`.
  std::string WhyScattered(LeafId sum, const AxisList& taken);

  const Program& program_;
  const Plan& plan_;
  const PropagationResult& shardings_;
  Reasons reasons_;
  // The leaves of the operands of the instruction that was asked about last.
  InstrId consumer_;
  absl::InlinedVector<LeafId, 8> operands_;
  // Loops and conditionals by the roots of their computations.
  std::optional<absl::flat_hash_map<InstrId, InstrId>> ends_with_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_COLLECTIVE_REASONS_H_
