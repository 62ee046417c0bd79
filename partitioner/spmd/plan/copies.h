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

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
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

// The reshards of annotations that nobody takes: all that read such a value take it from another
// copy. They are dead code of the local program, so they are no part of what a plan costs. An op
// that reads the value in a way that is not noted here counts as one that takes it.
class UntakenReshards {
 public:
  struct Cost {
    double bytes = 0, seconds = 0;
  };

  explicit UntakenReshards(Context& context) : context_(context) {}

  void Clear() { reshards_.clear(), origin_.clear(), of_origin_.clear(); }
  // The annotation `id`, which `uses` ops read, reshards `operand`, so that its copies are `after`
  // and no longer `before`. It was charged with `cost`.
  void Add(InstrId id, LeafId operand, const Copies* before, const Copies* after, uint32_t uses,
           const Cost& cost);
  // `result`, of an annotation or of an op that makes the same, has the copies of `operand`.
  void AddName(LeafId operand, LeafId result);
  // An op takes an operand, which is leaf `leaf` of `read`, in state `to`.
  void Take(InstrId read, LeafId leaf, const Shape* shape, const Sharding* stored,
            const Copies* copies, const Sharding* to);
  // Any copy of the value of `leaf` may be taken.
  void TakeAll(LeafId leaf);
  // Of all that nobody takes.
  Cost Sum() const;

 private:
  struct Reshard {
    InstrId annotation;
    absl::InlinedVector<const Sharding*, 4> states;  // that it has by this
    uint32_t unknown_uses;                           // the others take another copy
    Cost cost;
    bool taken = false;
  };
  LeafId Origin(LeafId leaf) const;

  Context& context_;
  std::vector<Reshard> reshards_;
  // Their numbers, by the value that the annotations name, which is the origin of each such result.
  absl::flat_hash_map<LeafId, absl::InlinedVector<int, 2>> of_origin_;
  absl::flat_hash_map<LeafId, LeafId> origin_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_COPIES_H_
