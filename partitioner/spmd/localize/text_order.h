// SPDX-License-Identifier: Apache-2.0
// Programs are imported in an order of their values (canonical_order.h), so that what is decided
// does not depend on how they are written. Who wrote them has had reasons for their order, too:
// what stands side by side may run at once, and what is computed late need not be kept. So the
// local program has the order of the text again.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_TEXT_ORDER_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_TEXT_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/spmd/localize/localize.h"

namespace shardcall {
inline namespace internal {

class TextOrder {
 public:
  // `place`: Program::place, which must outlive it.
  explicit TextOrder(absl::Span<const int32_t> place) : place_(place) {}

  // All that was added to the local module since the last call is of the op `id`, or of the end of
  // a computation if it is not valid.
  void NoteEmitted(InstrId id, const Module& local);

  // Orders the instructions of the computations, which are all that has been noted, by the places
  // of their ops, and each behind what it needs; the collectives too.
  void Restore(absl::Span<const CompId> computations, LocalProgram* local) const;

 private:
  absl::Span<const int32_t> place_;  // by instruction of the program; may be empty
  std::vector<int32_t> place_of_;    // by local instruction
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_TEXT_ORDER_H_
