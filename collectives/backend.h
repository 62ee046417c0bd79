// SPDX-License-Identifier: Apache-2.0
// Shared by backends for calls between pairs of ranks: argument checks, and send and receive as
// one function. Backends derive from it.
#ifndef SHARDCALL_COLLECTIVES_BACKEND_H_
#define SHARDCALL_COLLECTIVES_BACKEND_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/collectives/call.h"
#include "shardcall/collectives/communicator.h"

namespace shardcall {
inline namespace internal {

class BackendCommunicator : public Communicator {
 public:
  absl::Status Permute(absl::Span<const std::pair<int, int>> pairs, const void* in, void* out,
                       int64_t bytes, CollectiveTag tag) final;
  absl::Status Send(int to, const void* data, int64_t bytes, CollectiveTag tag) final;
  absl::Status Recv(int from, void* data, int64_t bytes, CollectiveTag tag) final;

 protected:
  // FindPartners for this rank. A backend may remember what it was for the same pairs.
  virtual absl::Status Partners(absl::Span<const std::pair<int, int>> pairs, int* source,
                                int* target);
  // A permute of signature.amount bytes: `in` is sent to `target`, and `out` received from
  // `source`. Either may be -1 for none (`out` is then zeroed) or this rank. The arguments have
  // been checked.
  virtual absl::Status PermuteWith(const CallSignature& signature, int source, int target,
                                   const void* in, void* out, CollectiveTag tag) = 0;
  // A send, which only reads `data`, or a receive. The arguments have been checked.
  virtual absl::Status PointToPoint(const CallSignature& signature, int partner, void* data,
                                    CollectiveTag tag) = 0;

 private:
  absl::Status CheckedPointToPoint(CollectiveOp op, int partner, void* data, int64_t bytes,
                                   CollectiveTag tag);
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_BACKEND_H_
