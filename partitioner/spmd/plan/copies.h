// SPDX-License-Identifier: Apache-2.0
// The states in which a value is available beside the one it is stored in. A value that was
// resharded once need not be resharded again: a later user starts from the cheapest available
// state, and the intermediate states of a reshard are available too. The plan keeps this table
// while it decides; localize keeps the values themselves, in the same order.
//
// Example: x [{"a"}, {"b"}] was gathered to [{}, {}] for one user, by way of [{"a"}, {}]. The next
// user that wants it replicated, or [{"a"}, {}], or any slice of the whole, causes no
// communication.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_COPIES_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_COPIES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/sharding/base/intern_table.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {

// The states in which a value is available, in the order in which they were made. Interned, so that
// equal lists are the same pointer. Null if there are none.
struct Copies {
  absl::Span<const Sharding* const> states;
};

// The copies of operand k. `copies` is by operand, or empty if no operand has copies.
inline const Copies* CopiesAt(absl::Span<const Copies* const> copies, size_t k) {
  return copies.empty() ? nullptr : copies[k];
}

class CopyTable {
 public:
  // `lists` interns the lists, and may be that of other tables of the Context.
  CopyTable(Context& context, InternTable<Copies>* lists, int num_leaves)
      : context_(context), of_(num_leaves, nullptr), lists_(*lists) {}

  const Copies* of(LeafId canonical) const { return of_[canonical.value]; }
  void Set(LeafId canonical, const Copies* copies) {
    if (of_[canonical.value] == copies) return;
    of_[canonical.value] = copies;
    touched_.push_back(canonical);
  }
  // Copies of one computation are not available in the next.
  void Clear();

  // The cheapest reshard to `to` from `stored` or one of `copies`.
  const ReshardPlan& Plan(const Shape* shape, const Sharding* stored, const Copies* copies,
                          const Sharding* to);
  // `copies` of a value stored as `stored`, extended by the states that this reshard to `to` makes.
  const Copies* After(const Shape* shape, const Sharding* stored, const Copies* copies,
                      const Sharding* to);
  // The copies of an annotation's result, which is stored as `now`. Its value is that of its
  // operand, so the operand's copies and its stored state are available too.
  const Copies* AfterAnnotation(const Sharding* stored, const Copies* copies, const Sharding* now);
  // `copies` and one more, unless it is among them.
  const Copies* With(const Copies* copies, const Sharding* more);
  // The copies of a result that is produced in one state and stored in another.
  const Copies* AfterResult(const Shape* shape, const Sharding* produced, const Sharding* stored);

 private:
  const Copies* Intern(absl::Span<const Sharding* const> states);

  Context& context_;
  std::vector<const Copies*> of_;  // by canonical leaf
  std::vector<LeafId> touched_;
  InternTable<Copies>& lists_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_COPIES_H_
