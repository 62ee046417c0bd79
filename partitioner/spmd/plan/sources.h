// SPDX-License-Identifier: Apache-2.0
// Sources: an op that shifts rows (slice, pad, concatenate) need not wait for an operand that is
// itself a slice or a pad. It may read what that operand was cut out of, so that rows are sent
// once: a roll is a concatenation of two slices of one value, a shift is a pad that is cut at the
// end.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_SOURCES_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_SOURCES_H_

#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

// Row j of an operand along dimension d is row j + shift(d) of its source, or padding where the
// source has no such row.
struct Source {
  Opcode opcode = Opcode::kSlice;  // of the operand, and its attributes
  const Attributes* attrs = nullptr;
  const Shape* shape = nullptr;  // null: the operand has no source
  const Sharding* state = nullptr;
  double saved = 0;         // seconds that the operand costs, if nothing else reads it
  bool with_first = false;  // the source of the first operand is the same value

  int64_t shift(int d) const;
  friend bool operator==(const Source& a, const Source& b) = default;
};
using Sources = absl::InlinedVector<Source, 3>;

// The value that `operand` is a slice of, without strides, or has padded with a constant, without
// interior padding; else invalid.
InstrId SourceOf(const Module& module, InstrId operand);

// Where a dynamic-update-slice places its update, by dimension, clamped; empty if that is known at
// run time only, and for all other ops.
absl::InlinedVector<int64_t, 8> PlaceOfUpdate(const Module& module, InstrId id);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_SOURCES_H_
