// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_EXPANSION_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_EXPANSION_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/ir/build/rewritten.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// What an instruction becomes.
struct CallExpansion {
  std::vector<const Shape*> results;
  // Makes them of the operands, each by itself or, with one op that gives several, all as a tuple.
  std::function<std::vector<InstrId>(GraphBuilder& b, absl::Span<const InstrId> operands)> make;
  bool leaves_out = false;  // some operands
};

// The module with these instructions expanded; none if there are none. The op or the tuple that
// gives what an instruction gave has its name, its sharding and its attributes. What stands in the
// computation of an async-start stays, since that may hold one op only, and in the computation of a
// fusion what leaves out operands, since all its parameters are to be used. Computations keep their
// ids.
std::optional<Rewritten> Expand(const Module& module,
                                absl::flat_hash_map<InstrId, CallExpansion> expansions);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_EXPANSION_H_
