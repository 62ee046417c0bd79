// SPDX-License-Identifier: Apache-2.0
// Replaces the called computations in attributes, as every copy of an instruction into another
// module or within one needs.
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_CALLED_COMPUTATIONS_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_CALLED_COMPUTATIONS_H_

#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The attributes of `i` with the called computations replaced by `now`, in the order of
// CalledComputations.
const Attributes* WithComputations(Context& context, const Instruction& i,
                                   absl::Span<const CompId> now);

// The same, with each computation replaced by map(computation).
template <typename F>
const Attributes* MapComputations(const Module& module, const Instruction& i, F&& map) {
  absl::InlinedVector<CompId, 2> called = CalledComputations(module, i);
  if (called.empty()) return i.attrs;
  for (CompId& c : called) c = map(c);
  return WithComputations(module.context(), i, called);
}

// The while loops whose body no other loop has, in the order of the module.
std::vector<InstrId> LoopsWithOwnBody(const Module& m);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_CALLED_COMPUTATIONS_H_
