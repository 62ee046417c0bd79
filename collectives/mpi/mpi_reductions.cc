// SPDX-License-Identifier: Apache-2.0
// All-reduce and reduce-scatter over MPI, with the fold of reduce.h, so that results are
// byte-identical to those of the in-process backend.
#include <algorithm>
#include <vector>

#include "shardcall/collectives/mpi/mpi_communicator.h"
#include "shardcall/collectives/reduce.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// Up to this size an all-reduce takes one step, in which every rank sends its data to all others.
constexpr int64_t kShortBytes = 8 << 10;
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
    SHARDCALL_RETURN_IF_ERROR(BeginWithAll(call, bytes));
    const char* const from = static_cast<const char*>(in);
    char* const to = static_cast<char*>(out);
    SHARDCALL_RETURN_IF_ERROR(bytes <= kShortBytes ? ShortAllReduce(call, from, to)
                                                   : LongAllReduce(call, from, to));
    rendezvous_.End();
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
    SHARDCALL_RETURN_IF_ERROR(BeginWithAll(call, bytes));
    SHARDCALL_RETURN_IF_ERROR(
        LongReduceScatter(call, static_cast<const char*>(in), static_cast<char*>(out)));
    rendezvous_.End();
    return absl::OkStatus();
  });
}

absl::Status MpiCommunicator::ShortAllReduce(Call& call, const char* in, char* out) {
  const Members& members = *call.members;
  const int64_t bytes = call.meeting.signature.block_bytes();
  char* const scratch = session_.Scratch(members.count() * bytes);
  SHARDCALL_RETURN_IF_ERROR(Move(call, [&](int j) {
    return j == members.me ? Transfer() : Transfer{in, bytes, scratch + j * bytes, bytes};
  }));
  if (bytes == 0) return absl::OkStatus();
  std::vector<const void*> sources;
  for (int j = 0; j < members.count(); ++j) {
    sources.push_back(j == members.me ? in : scratch + j * bytes);
  }
  Fold(call.meeting.signature, sources, out, call.meeting.signature.amount);
  return absl::OkStatus();
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
    for (int j = 0; j < n; ++j) {
      sources.push_back(j == members.me ? in + begin(j) * element : scratch + j * mine);
    }
    // After this all sends are complete too: results may overwrite chunks of `in`.
    SHARDCALL_RETURN_IF_ERROR(Move(call, [&](int j) {
      if (j == members.me) return Transfer();
      return Transfer{in + begin(j) * element, bytes(j), scratch + j * mine, mine};
    }));
    char* const folded = out + begin(members.me) * element;
    Fold(signature, sources, folded, mine / element);
    SHARDCALL_RETURN_IF_ERROR(Move(call, [&](int j) {
      if (j == members.me) return Transfer();
      return Transfer{folded, mine, out + begin(j) * element, bytes(j)};
    }));
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
  int64_t first = 0;
  do {  // at least once, since the members must synchronise
    const int64_t count = std::min(piece, signature.amount - first);
    const int64_t at = first * element;
    const int64_t bytes = count * element;
    char* const scratch = session_.Scratch(n * bytes);
    std::vector<const void*> sources;
    for (int j = 0; j < n; ++j) {
      sources.push_back(j == members.me ? in + j * block + at : scratch + j * bytes);
    }
    // The sends of [at, at + bytes) of block 0 are complete before `out`, which may be the same
    // memory, is written.
    SHARDCALL_RETURN_IF_ERROR(Move(call, [&](int j) {
      if (j == members.me) return Transfer();
      return Transfer{in + j * block + at, bytes, scratch + j * bytes, bytes};
    }));
    if (count > 0) Fold(signature, sources, out + at, count);
    first += count;
  } while (first < signature.amount);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
