// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/backend.h"

#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::Status BackendCommunicator::Permute(absl::Span<const std::pair<int, int>> pairs,
                                          const void* in, void* out, int64_t bytes,
                                          CollectiveTag tag) {
  const CallSignature signature{.op = CollectiveOp::kPermute, .amount = bytes};
  int source;
  int target;
  SHARDCALL_RETURN_IF_ERROR(Partners(pairs, &source, &target));
  SHARDCALL_RETURN_IF_ERROR(CheckSignature(signature, 1));
  SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, bytes, "input", signature));
  SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, bytes, "output", signature));
  return PermuteWith(signature, source, target, in, out, tag);
}

absl::Status BackendCommunicator::Partners(absl::Span<const std::pair<int, int>> pairs, int* source,
                                           int* target) {
  return FindPartners(pairs, rank(), size(), source, target);
}

absl::Status BackendCommunicator::Send(int to, const void* data, int64_t bytes, CollectiveTag tag) {
  return CheckedPointToPoint(CollectiveOp::kSend, to, const_cast<void*>(data), bytes, tag);
}

absl::Status BackendCommunicator::Recv(int from, void* data, int64_t bytes, CollectiveTag tag) {
  return CheckedPointToPoint(CollectiveOp::kRecv, from, data, bytes, tag);
}

absl::Status BackendCommunicator::CheckedPointToPoint(CollectiveOp op, int partner, void* data,
                                                      int64_t bytes, CollectiveTag tag) {
  const CallSignature signature{.op = op, .amount = bytes};
  const int ranks[] = {rank(), partner};
  SHARDCALL_RETURN_IF_ERROR(CheckGroup(ranks, rank(), size()));
  SHARDCALL_RETURN_IF_ERROR(CheckSignature(signature, 1));
  SHARDCALL_RETURN_IF_ERROR(CheckBuffer(data, bytes, "buffer", signature));
  return PointToPoint(signature, partner, data, tag);
}

}  // namespace internal
}  // namespace shardcall
