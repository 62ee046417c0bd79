// SPDX-License-Identifier: Apache-2.0
// Top-k of lines that are sharded: what HLO's op and targets that mean the same have in common.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_TOP_K_OF_SHARDS_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_TOP_K_OF_SHARDS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/ir/ids.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

// The bits of a value that comes after all others in the total order of a top-k. Masked padding is
// at the end of a line, so among equals the elements come before it.
inline uint64_t LastOfAllBits(ElementType type, bool largest) {
  const int bits = ElementTypeBits(type);
  const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  // Floats: the NaN with all bits set, with or without the sign bit. Integers: the least or largest
  // value.
  if (IsFloat(type)) return largest ? ones : ones >> 1;
  if (IsSignedInteger(type)) return largest ? ones ^ (ones >> 1) : ones >> 1;
  return largest ? 0 : ones;
}

// The best elements of a line, and their labels.
using TopK = std::array<InstrId, 2>;

// How the parts of a top-k are built where it stands.
struct TopKParts {
  // The best of a line, as many of them as the result has, but no more than `line` has. Without
  // labels, an element's label is its place in `line`.
  absl::FunctionRef<absl::StatusOr<TopK>(InstrId line, std::optional<InstrId> labels)> best;
  // Places in this device's shard, as places in the line.
  absl::FunctionRef<absl::StatusOr<InstrId>(InstrId places)> global_places;
  // The parts of all devices of a line, in the order of the line.
  absl::FunctionRef<absl::StatusOr<InstrId>(InstrId part)> gather;
};

// Each device finds the best elements of its shard of the line, whose padding is masked by a value
// of LastOfAllBits. These are gathered, and the best of them are the result. The order of the line
// is kept, so among equals the first one wins, as in the whole line.
inline absl::StatusOr<TopK> TopKOfShards(InstrId line, std::optional<InstrId> labels,
                                         const TopKParts& parts) {
  SHARDCALL_ASSIGN_OR_RETURN(TopK best, parts.best(line, labels));
  if (!labels) {
    SHARDCALL_ASSIGN_OR_RETURN(best[1], parts.global_places(best[1]));
  }
  for (InstrId& part : best) {
    SHARDCALL_ASSIGN_OR_RETURN(part, parts.gather(part));
  }
  return parts.best(best[0], best[1]);
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_TOP_K_OF_SHARDS_H_
