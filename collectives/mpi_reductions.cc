// SPDX-License-Identifier: Apache-2.0
// All-reduce and reduce-scatter over MPI, with the fold of reduce.h, so that
// they give the bytes that threads of one process give.
#include <algorithm>
#include <vector>

#include "collectives/mpi_communicator.h"
#include "collectives/reduce.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

constexpr int kBulkTag = 2;
// Long reductions go through a scratch of about this size, which stays in use.
constexpr int64_t kPieceBytes = 4 << 20;

void Fold(const CallSignature& signature, const std::vector<const void*>& sources, void* out,
          int64_t count) {
  ReduceRange(signature.kind, signature.type, sources, absl::MakeConstSpan(&out, 1), 0, count);
}

}  // namespace

absl::Status MpiCommunicator::AllReduce(Group group, ReduceKind kind, ElementType type,
                                        const void* in, void* out, int64_t count,
                                        CollectiveTag tag) {
  const CallSignature signature{CollectiveOp::kAllReduce, kind, type, -1, count};
  return Run(group, signature, tag, [&](Call& call) {
    const int64_t bytes = signature.block_bytes();
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, bytes, "input", signature));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, bytes, "output", signature));
    const char* const data = static_cast<const char*>(in);
    SHARDCALL_RETURN_IF_ERROR(Meet(call, [&](int) { return Block{data, bytes, bytes}; }));
    if (bytes > kInlineBytes) return LongAllReduce(call, data, static_cast<char*>(out));
    std::vector<const void*> sources;
    for (int j = 0; j < call.members->count(); ++j) {
      sources.push_back(j == call.members->me ? in : Received(call, j));
    }
    if (count > 0) Fold(signature, sources, out, count);
    return absl::OkStatus();
  });
}

absl::Status MpiCommunicator::ReduceScatter(Group group, ReduceKind kind, ElementType type,
                                            const void* in, void* out, int64_t count,
                                            CollectiveTag tag) {
  const CallSignature signature{CollectiveOp::kReduceScatter, kind, type, -1, count};
  return Run(group, signature, tag, [&](Call& call) {
    const int64_t bytes = signature.block_bytes();
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, bytes, "input", signature));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, bytes, "output", signature));
    const char* const data = static_cast<const char*>(in);
    SHARDCALL_RETURN_IF_ERROR(Meet(call, [&](int j) {
      return Block{data + j * bytes, bytes, bytes};
    }));
    if (bytes > kInlineBytes) return LongReduceScatter(call, data, static_cast<char*>(out));
    std::vector<const void*> sources;
    for (int j = 0; j < call.members->count(); ++j) {
      sources.push_back(j == call.members->me ? data + j * bytes : Received(call, j));
    }
    if (count > 0) Fold(signature, sources, out, count);
    return absl::OkStatus();
  });
}

absl::Status MpiCommunicator::LongAllReduce(Call& call, const char* in, char* out) {
  const Members& members = *call.members;
  const CallSignature& signature = call.meeting.signature;
  const int64_t element = ElementTypeBytes(signature.type);
  const int64_t n = members.count();
  if (n == 1) {
    Fold(signature, {in}, out, signature.amount);
    return absl::OkStatus();
  }
  const int64_t piece = kPieceBytes / element;
  for (int64_t first = 0; first < signature.amount; first += piece) {
    const int64_t count = std::min(piece, signature.amount - first);
    // Chunk j of a piece is elements [begin(j), begin(j + 1)); member j folds it.
    const auto begin = [&](int64_t j) { return first + count * j / n; };
    const auto bytes = [&](int64_t j) { return (begin(j + 1) - begin(j)) * element; };
    const int64_t mine = bytes(members.me);
    char* const scratch = session_.Scratch(n * mine);
    std::vector<const void*> sources;
    MpiMessages chunks(session_);
    for (int j = 0; j < n; ++j) {
      if (j == members.me) {
        sources.push_back(in + begin(j) * element);
        continue;
      }
      sources.push_back(scratch + j * mine);
      if (mine > 0) chunks.Receive(members.ranks[j], kBulkTag, scratch + j * mine, mine);
    }
    for (int step = 1; step < n; ++step) {
      const int j = static_cast<int>((members.me + step) % n);
      if (bytes(j) > 0) {
        chunks.Send(members.ranks[j], kBulkTag, in + begin(j) * element, bytes(j));
      }
    }
    // All of it: results are received where chunks of `in` may lie.
    SHARDCALL_RETURN_IF_ERROR(Await(call.meeting, chunks));
    char* const folded = out + begin(members.me) * element;
    Fold(signature, sources, folded, mine / element);

    MpiMessages results(session_);
    for (int step = 1; step < n; ++step) {
      const int j = static_cast<int>((members.me + n - step) % n);
      if (bytes(j) > 0) {
        results.Receive(members.ranks[j], kBulkTag, out + begin(j) * element, bytes(j));
      }
    }
    for (int step = 1; step < n && mine > 0; ++step) {
      results.Send(members.ranks[(members.me + step) % n], kBulkTag, folded, mine);
    }
    SHARDCALL_RETURN_IF_ERROR(Await(call.meeting, results));
  }
  return absl::OkStatus();
}

absl::Status MpiCommunicator::LongReduceScatter(Call& call, const char* in, char* out) {
  const Members& members = *call.members;
  const CallSignature& signature = call.meeting.signature;
  const int64_t element = ElementTypeBytes(signature.type);
  const int64_t block = signature.block_bytes();
  const int64_t n = members.count();
  const int64_t piece = std::max<int64_t>(1, kPieceBytes / element / n);
  for (int64_t first = 0; first < signature.amount; first += piece) {
    const int64_t count = std::min(piece, signature.amount - first);
    const int64_t at = first * element;
    const int64_t bytes = count * element;
    char* const scratch = session_.Scratch(n * bytes);
    std::vector<const void*> sources;
    MpiMessages messages(session_);
    for (int j = 0; j < n; ++j) {
      if (j == members.me) {
        sources.push_back(in + j * block + at);
        continue;
      }
      sources.push_back(scratch + j * bytes);
      messages.Receive(members.ranks[j], kBulkTag, scratch + j * bytes, bytes);
    }
    for (int step = 1; step < n; ++step) {
      const int64_t j = (members.me + step) % n;
      messages.Send(members.ranks[j], kBulkTag, in + j * block + at, bytes);
    }
    // What is sent from [at, at + bytes) of block 0 is gone before `out`, which
    // may lie there, is written.
    SHARDCALL_RETURN_IF_ERROR(Await(call.meeting, messages));
    Fold(signature, sources, out + at, count);
  }
  return absl::OkStatus();
}

}  // namespace shardcall
