// SPDX-License-Identifier: Apache-2.0
// The collectives of the NCCL backend: staging, NCCL's calls, and folds on the host for reductions
// that NCCL lacks.
#include <algorithm>
#include <cstring>

#include "shardcall/collectives/nccl/nccl_communicator.h"
#include "shardcall/collectives/reduce.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::StatusOr<const char*> NcclCommunicator::StageIn(Call& call, const void* in, int64_t bytes,
                                                      bool apart) {
  const bool on_device = IsDevicePointer(in);
  if (on_device && !apart) return static_cast<const char*>(in);
  SHARDCALL_ASSIGN_OR_RETURN(char* const staged, Scratch(call, kIn, bytes));
  if (bytes > 0) {
    SHARDCALL_RETURN_IF_ERROR(CudaStatus(
        cudaMemcpyAsync(staged, in, bytes,
                        on_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice, stream_),
        "cudaMemcpyAsync"));
  }
  return staged;
}

absl::StatusOr<char*> NcclCommunicator::StageOut(Call& call, void* out, int64_t bytes) {
  if (IsDevicePointer(out)) return static_cast<char*>(out);
  return Scratch(call, kOut, bytes);
}

absl::Status NcclCommunicator::CopyBack(void* out, const char* staged, int64_t bytes) {
  if (bytes == 0 || out == staged) return absl::OkStatus();
  SHARDCALL_RETURN_IF_ERROR(CudaStatus(
      cudaMemcpyAsync(out, staged, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync"));
  return CudaStatus(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

absl::Status NcclCommunicator::CopyToHost(const void* in, int64_t bytes, std::vector<char>* host) {
  host->resize(bytes);
  if (bytes == 0) return absl::OkStatus();
  return CudaStatus(cudaMemcpy(host->data(), in, bytes, cudaMemcpyDefault), "cudaMemcpy");
}

absl::Status NcclCommunicator::CopyFromHost(void* out, const std::vector<char>& host) {
  if (host.empty()) return absl::OkStatus();
  return CudaStatus(cudaMemcpy(out, host.data(), host.size(), cudaMemcpyDefault), "cudaMemcpy");
}

absl::Status NcclCommunicator::Exchange(Call& call, const char* in, char* out,
                                        absl::Span<const Piece> pieces) {
  const ncclComm_t comm = call.clique->comm;
  SHARDCALL_RETURN_IF_ERROR(NcclStatus(ncclGroupStart(), "ncclGroupStart"));
  absl::Status status;
  for (const Piece& p : pieces) {
    if (p.send_bytes > 0) {
      const ncclResult_t code =
          ncclSend(in + p.send_offset, p.send_bytes, ncclInt8, p.peer, comm, stream_);
      if (code != ncclInProgress) status.Update(NcclStatus(code, "ncclSend"));
    }
    if (p.receive_bytes > 0) {
      const ncclResult_t code =
          ncclRecv(out + p.receive_offset, p.receive_bytes, ncclInt8, p.peer, comm, stream_);
      if (code != ncclInProgress) status.Update(NcclStatus(code, "ncclRecv"));
    }
  }
  const ncclResult_t end = ncclGroupEnd();
  SHARDCALL_RETURN_IF_ERROR(status);
  return Enqueued(call, end, "ncclGroupEnd");
}

absl::Status NcclCommunicator::Barrier(Group group, CollectiveTag tag) {
  return Run(group, {.op = CollectiveOp::kBarrier}, tag, [&](Call& call) -> absl::Status {
    SHARDCALL_ASSIGN_OR_RETURN(char* const word, Scratch(call, kIn, sizeof(int32_t)));
    SHARDCALL_RETURN_IF_ERROR(
        CudaStatus(cudaMemsetAsync(word, 0, sizeof(int32_t), stream_), "cudaMemsetAsync"));
    SHARDCALL_RETURN_IF_ERROR(
        Enqueued(call, ncclAllReduce(word, word, 1, ncclInt32, ncclSum, call.clique->comm, stream_),
                 "ncclAllReduce"));
    return Finish(call);
  });
}

absl::Status NcclCommunicator::AllReduce(Group group, ReduceKind kind, ElementType type,
                                         const void* in, void* out, int64_t count,
                                         CollectiveTag tag) {
  const CallSignature signature{CollectiveOp::kAllReduce, kind, type, -1, count};
  return Run(group, signature, tag, [&](Call& call) -> absl::Status {
    const int64_t bytes = signature.block_bytes();
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, bytes, "input", signature));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, bytes, "output", signature));
    const int64_t n = call.clique->count();
    if (const auto native = FindNative(kind, type)) {
      SHARDCALL_ASSIGN_OR_RETURN(const char* const from, StageIn(call, in, bytes, false));
      SHARDCALL_ASSIGN_OR_RETURN(char* const to, StageOut(call, out, bytes));
      SHARDCALL_RETURN_IF_ERROR(
          Enqueued(call,
                   ncclAllReduce(from, to, count * native->units, native->type, native->op,
                                 call.clique->comm, stream_),
                   "ncclAllReduce"));
      SHARDCALL_RETURN_IF_ERROR(Finish(call));
      return CopyBack(out, to, bytes);
    }
    SHARDCALL_ASSIGN_OR_RETURN(const char* const from, StageIn(call, in, bytes, false));
    SHARDCALL_ASSIGN_OR_RETURN(char* const all, Scratch(call, kOut, n * bytes));
    SHARDCALL_RETURN_IF_ERROR(
        Enqueued(call, ncclAllGather(from, all, bytes, ncclInt8, call.clique->comm, stream_),
                 "ncclAllGather"));
    SHARDCALL_RETURN_IF_ERROR(Finish(call));
    std::vector<char> host;
    SHARDCALL_RETURN_IF_ERROR(CopyToHost(all, n * bytes, &host));
    std::vector<const void*> sources;
    for (int64_t j = 0; j < n; ++j) sources.push_back(host.data() + j * bytes);
    std::vector<char> folded(bytes);
    void* const to = folded.data();
    if (count > 0) ReduceRange(kind, type, sources, absl::MakeConstSpan(&to, 1), 0, count);
    return CopyFromHost(out, folded);
  });
}

absl::Status NcclCommunicator::ReduceScatter(Group group, ReduceKind kind, ElementType type,
                                             const void* in, void* out, int64_t count,
                                             CollectiveTag tag) {
  const CallSignature signature{CollectiveOp::kReduceScatter, kind, type, -1, count};
  return Run(group, signature, tag, [&](Call& call) -> absl::Status {
    const int64_t bytes = signature.block_bytes();
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, bytes, "input", signature));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, bytes, "output", signature));
    const int64_t n = call.clique->count();
    SHARDCALL_ASSIGN_OR_RETURN(const char* const from, StageIn(call, in, n * bytes, in == out));
    if (const auto native = FindNative(kind, type)) {
      SHARDCALL_ASSIGN_OR_RETURN(char* const to, StageOut(call, out, bytes));
      SHARDCALL_RETURN_IF_ERROR(
          Enqueued(call,
                   ncclReduceScatter(from, to, count * native->units, native->type, native->op,
                                     call.clique->comm, stream_),
                   "ncclReduceScatter"));
      SHARDCALL_RETURN_IF_ERROR(Finish(call));
      return CopyBack(out, to, bytes);
    }
    SHARDCALL_ASSIGN_OR_RETURN(char* const mine, Scratch(call, kOut, n * bytes));
    std::vector<Piece> pieces;
    for (int j = 0; j < n; ++j) pieces.push_back({j, j * bytes, bytes, j * bytes, bytes});
    SHARDCALL_RETURN_IF_ERROR(Exchange(call, from, mine, pieces));
    SHARDCALL_RETURN_IF_ERROR(Finish(call));
    std::vector<char> host;
    SHARDCALL_RETURN_IF_ERROR(CopyToHost(mine, n * bytes, &host));
    std::vector<const void*> sources;
    for (int64_t j = 0; j < n; ++j) sources.push_back(host.data() + j * bytes);
    std::vector<char> folded(bytes);
    void* const to = folded.data();
    if (count > 0) ReduceRange(kind, type, sources, absl::MakeConstSpan(&to, 1), 0, count);
    return CopyFromHost(out, folded);
  });
}

absl::Status NcclCommunicator::AllGather(Group group, const void* in, void* out, int64_t bytes,
                                         CollectiveTag tag) {
  const CallSignature signature{.op = CollectiveOp::kAllGather, .amount = bytes};
  return Run(group, signature, tag, [&](Call& call) -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, bytes, "input", signature));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, bytes, "output", signature));
    const int64_t total = bytes * call.clique->count();
    SHARDCALL_ASSIGN_OR_RETURN(const char* const from, StageIn(call, in, bytes, in == out));
    SHARDCALL_ASSIGN_OR_RETURN(char* const to, StageOut(call, out, total));
    SHARDCALL_RETURN_IF_ERROR(
        Enqueued(call, ncclAllGather(from, to, bytes, ncclInt8, call.clique->comm, stream_),
                 "ncclAllGather"));
    SHARDCALL_RETURN_IF_ERROR(Finish(call));
    return CopyBack(out, to, total);
  });
}

absl::Status NcclCommunicator::AllToAll(Group group, const void* in, void* out, int64_t bytes,
                                        CollectiveTag tag) {
  const CallSignature signature{.op = CollectiveOp::kAllToAll, .amount = bytes};
  return Run(group, signature, tag, [&](Call& call) -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, bytes, "input", signature));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, bytes, "output", signature));
    const int n = call.clique->count();
    SHARDCALL_ASSIGN_OR_RETURN(const char* const from, StageIn(call, in, n * bytes, in == out));
    SHARDCALL_ASSIGN_OR_RETURN(char* const to, StageOut(call, out, n * bytes));
    std::vector<Piece> pieces;
    for (int j = 0; j < n; ++j) pieces.push_back({j, j * bytes, bytes, j * bytes, bytes});
    SHARDCALL_RETURN_IF_ERROR(Exchange(call, from, to, pieces));
    SHARDCALL_RETURN_IF_ERROR(Finish(call));
    return CopyBack(out, to, n * bytes);
  });
}

absl::Status NcclCommunicator::AllToAllV(Group group, const void* in,
                                         absl::Span<const int64_t> send_offsets,
                                         absl::Span<const int64_t> send_sizes, void* out,
                                         absl::Span<const int64_t> recv_offsets,
                                         absl::Span<const int64_t> recv_sizes, CollectiveTag tag) {
  const CallSignature signature{.op = CollectiveOp::kAllToAllV};
  SHARDCALL_RETURN_IF_ERROR(
      CheckBlocks(group.size(), send_offsets, send_sizes, recv_offsets, recv_sizes));
  return Run(group, signature, tag, [&](Call& call) -> absl::Status {
    const int n = call.clique->count();
    // Blocks may be far apart, so each is staged separately, one after another.
    std::vector<Piece> staged;
    int64_t in_bytes = 0, out_bytes = 0;
    bool any_in = false, any_out = false;
    for (int j = 0; j < n; ++j) {
      staged.push_back({j, in_bytes, send_sizes[j], out_bytes, recv_sizes[j]});
      in_bytes += send_sizes[j];
      out_bytes += recv_sizes[j];
      any_in = any_in || send_sizes[j] > 0;
      any_out = any_out || recv_sizes[j] > 0;
    }
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, any_in ? 1 : 0, "input", signature));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, any_out ? 1 : 0, "output", signature));
    SHARDCALL_ASSIGN_OR_RETURN(char* const from, Scratch(call, kIn, in_bytes));
    SHARDCALL_ASSIGN_OR_RETURN(char* const to, Scratch(call, kOut, out_bytes));
    for (int j = 0; j < n; ++j) {
      if (send_sizes[j] == 0) continue;
      SHARDCALL_RETURN_IF_ERROR(
          CudaStatus(cudaMemcpyAsync(from + staged[j].send_offset,
                                     static_cast<const char*>(in) + send_offsets[j], send_sizes[j],
                                     cudaMemcpyDefault, stream_),
                     "cudaMemcpyAsync"));
    }
    SHARDCALL_RETURN_IF_ERROR(Exchange(call, from, to, staged));
    SHARDCALL_RETURN_IF_ERROR(Finish(call));
    for (int j = 0; j < n; ++j) {
      if (recv_sizes[j] == 0) continue;
      SHARDCALL_RETURN_IF_ERROR(CudaStatus(
          cudaMemcpyAsync(static_cast<char*>(out) + recv_offsets[j], to + staged[j].receive_offset,
                          recv_sizes[j], cudaMemcpyDefault, stream_),
          "cudaMemcpyAsync"));
    }
    return CudaStatus(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  });
}

absl::Status NcclCommunicator::PermuteWith(const CallSignature& signature, int source, int target,
                                           const void* in, void* out, CollectiveTag tag) {
  const int64_t bytes = signature.amount;
  std::vector<int> ranks;
  if (target >= 0) ranks.push_back(target);
  if (source >= 0 && source != target) ranks.push_back(source);
  return RunPairs(std::move(ranks), signature, tag, [&](Call& call) -> absl::Status {
    SHARDCALL_ASSIGN_OR_RETURN(const char* const from, StageIn(call, in, bytes, in == out));
    SHARDCALL_ASSIGN_OR_RETURN(char* const to, StageOut(call, out, bytes));
    std::vector<Piece> pieces;
    if (target >= 0) pieces.push_back({target, 0, bytes, 0, 0});
    if (source >= 0) pieces.push_back({source, 0, 0, 0, bytes});
    if (source < 0) {
      SHARDCALL_RETURN_IF_ERROR(CudaStatus(cudaMemsetAsync(to, 0, bytes, stream_), "cudaMemset"));
    }
    if (!pieces.empty()) SHARDCALL_RETURN_IF_ERROR(Exchange(call, from, to, pieces));
    SHARDCALL_RETURN_IF_ERROR(Finish(call));
    return CopyBack(out, to, bytes);
  });
}

absl::Status NcclCommunicator::Broadcast(Group group, int root, void* buffer, int64_t bytes,
                                         CollectiveTag tag) {
  const CallSignature signature{.op = CollectiveOp::kBroadcast, .root = root, .amount = bytes};
  return Run(group, signature, tag, [&](Call& call) -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(buffer, bytes, "buffer", signature));
    SHARDCALL_ASSIGN_OR_RETURN(const char* const from, StageIn(call, buffer, bytes, false));
    char* const data = const_cast<char*>(from);
    SHARDCALL_RETURN_IF_ERROR(
        Enqueued(call, ncclBroadcast(data, data, bytes, ncclInt8, root, call.clique->comm, stream_),
                 "ncclBroadcast"));
    SHARDCALL_RETURN_IF_ERROR(Finish(call));
    return CopyBack(buffer, data, bytes);
  });
}

absl::Status NcclCommunicator::PointToPoint(const CallSignature& signature, int partner, void* data,
                                            CollectiveTag tag) {
  const int64_t bytes = signature.amount;
  return RunPairs({rank(), partner}, signature, tag, [&](Call& call) -> absl::Status {
    if (signature.op == CollectiveOp::kSend) {
      SHARDCALL_ASSIGN_OR_RETURN(const char* const from, StageIn(call, data, bytes, false));
      const Piece piece{partner, 0, bytes, 0, 0};
      SHARDCALL_RETURN_IF_ERROR(Exchange(call, from, nullptr, absl::MakeConstSpan(&piece, 1)));
      return Finish(call);
    }
    SHARDCALL_ASSIGN_OR_RETURN(char* const to, StageOut(call, data, bytes));
    const Piece piece{partner, 0, 0, 0, bytes};
    SHARDCALL_RETURN_IF_ERROR(Exchange(call, nullptr, to, absl::MakeConstSpan(&piece, 1)));
    SHARDCALL_RETURN_IF_ERROR(Finish(call));
    return CopyBack(data, to, bytes);
  });
}

}  // namespace internal
}  // namespace shardcall
