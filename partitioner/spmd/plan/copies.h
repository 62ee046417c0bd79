// SPDX-License-Identifier: Apache-2.0
// Which states a value has been brought into beside the one it is stored in. What is
// on a device once need not come again: a later user takes the nearest of them, and
// what stands on the way of a reshard counts too. The plan keeps this table as it
// decides; localize has the values themselves, in the same order.
//
// Example: x [{"a"}, {"b"}] gathered whole for one user went over [{"a"}, {}]. The
// next user that wants it whole, or [{"a"}, {}], or any cut of the whole, sends nothing.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_COPIES_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_COPIES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/sharding/base/intern_table.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall::inline internal {

// The states in which a value is at hand, in the order they came; interned, so that
// equal lists are one pointer. Null stands for none.
struct Copies {
  absl::Span<const Sharding* const> states;
};

// Of operand k; null where `copies`, of all operands or of none, has none.
inline const Copies* CopiesAt(absl::Span<const Copies* const> copies, size_t k) {
  return copies.empty() ? nullptr : copies[k];
}

class CopyTable {
 public:
  CopyTable(Context& context, int num_leaves) : context_(context), of_(num_leaves, nullptr) {}

  const Copies* of(LeafId canonical) const { return of_[canonical.value]; }
  void Set(LeafId canonical, const Copies* copies) {
    if (of_[canonical.value] == copies) return;
    of_[canonical.value] = copies;
    touched_.push_back(canonical);
  }
  // Values of one computation are not at hand in the next.
  void Clear();

  // The cheapest way to `to` from `stored` or one of `copies`.
  const ReshardPlan& Plan(const Shape* shape, const Sharding* stored, const Copies* copies,
                          const Sharding* to);
  // `copies` of a value stored as `stored`, and what that way makes.
  const Copies* After(const Shape* shape, const Sharding* stored, const Copies* copies,
                      const Sharding* to);
  // Of an annotated value, which is stored as `now`: it is its operand still.
  const Copies* AfterAnnotation(const Sharding* stored, const Copies* copies, const Sharding* now);
  // Of a result that is made in one state and stored in another.
  const Copies* AfterResult(const Shape* shape, const Sharding* produced, const Sharding* stored);

 private:
  const Copies* Intern(absl::Span<const Sharding* const> states);

  Context& context_;
  std::vector<const Copies*> of_;  // by canonical leaf
  std::vector<LeafId> touched_;
  InternTable<Copies> table_;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_COPIES_H_
