// SPDX-License-Identifier: Apache-2.0
// Describes a collective call by what all members must agree on. Has its text in diagnostics and
// the argument checks of every backend.
#ifndef SHARDCALL_COLLECTIVES_CALL_H_
#define SHARDCALL_COLLECTIVES_CALL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

enum class CollectiveOp : uint8_t {
  kBarrier,
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kAllToAllV,
  kPermute,
  kBroadcast,
  kSend,
  kRecv,
  kLast = kRecv,
};
absl::string_view CollectiveOpName(CollectiveOp op);  // "all-reduce"

// What members must agree on, besides the group and its order.
struct CallSignature {
  CollectiveOp op = CollectiveOp::kBarrier;
  ReduceKind kind = ReduceKind::kSum;        // all-reduce and reduce-scatter
  ElementType type = ElementType::kInvalid;  // of all-reduce and reduce-scatter
  int32_t root = -1;                         // broadcast: index into the group
  int64_t amount = 0;                        // elements if there is a type, else bytes

  // Bytes of one block; `amount` counts the elements of a block, or its bytes.
  int64_t block_bytes() const {
    return type == ElementType::kInvalid ? amount : amount * ElementTypeBytes(type);
  }
  friend bool operator==(const CallSignature&, const CallSignature&) = default;
};

// "all-reduce(sum, f32[1024])", "all-gather(4096 bytes)", "broadcast(8 bytes from 1)".
std::string SignatureText(const CallSignature& signature);

// Sorted ranks with runs joined: {4, 0, 2, 3} gives "0,2-4".
std::string RankListText(absl::Span<const int> ranks);
// "rank 3" or "ranks 0,2-4".
std::string RanksText(absl::Span<const int> ranks);
// " (%ar.2)", or nothing if there is no name.
std::string TagText(absl::string_view name);

// The group of all ranks, in order.
std::vector<int> EveryRank(const Communicator& communicator);

// E306 unless the group's ranks are distinct, within [0, size), and hold `rank`.
absl::Status CheckGroup(Communicator::Group group, int rank, int size);
// E306 for a negative or too large amount, a reduction that does not exist, or
// a root outside of the group.
absl::Status CheckSignature(const CallSignature& signature, int64_t group_size);
// E306 if data is null where there are bytes.
absl::Status CheckBuffer(const void* data, int64_t bytes, absl::string_view what,
                         const CallSignature& signature);
// E306 unless all four lists have one non-negative entry per member.
absl::Status CheckBlocks(size_t group_size, absl::Span<const int64_t> send_offsets,
                         absl::Span<const int64_t> send_sizes,
                         absl::Span<const int64_t> recv_offsets,
                         absl::Span<const int64_t> recv_sizes);
// E306 unless sources are unique, targets are unique, and all are in [0, size). Returns this
// rank's partners, -1 for none.
absl::Status FindPartners(absl::Span<const std::pair<int, int>> pairs, int rank, int size,
                          int* source, int* target);

// The status of calls after an abort: kAborted with the reason's text, under E304 unless it has a
// code of its own.
absl::Status AbortedStatus(const absl::Status& reason);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_CALL_H_
