// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/in_process/in_process_work.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "shardcall/collectives/reduce.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kItemBytes = 256 << 10;  // read and written by an item, approximately
constexpr int64_t kMinGrainBytes = 4 << 10;
constexpr int64_t kSmallBytes = 128 << 10;  // of a whole collective
constexpr int64_t kSwapBytes = 8 << 10;
// Piece sizes for data that is copied to all members. C libraries copy short pieces with vector
// instructions and long ones with `rep movsb`, which does not read the destination. That is better
// if a collective writes more than the caches hold.
constexpr int64_t kNearBytes = 2 << 10, kFarBytes = 4 << 10;
constexpr int64_t kBeyondCaches = 128 << 20;

using Sources = absl::InlinedVector<const void*, 16>;
using Outs = absl::InlinedVector<void*, 16>;

const char* In(const MemberBuffers& member) { return static_cast<const char*>(member.in); }
char* Out(const MemberBuffers& member) { return static_cast<char*>(member.out); }

void Copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

// Exchanges the blocks from a to b and from b to a. Reads both sides of a piece before it writes
// either, since a member's in and out may be the same memory.
void Swap(const char* a_in, char* a_out, const char* b_in, char* b_out, int64_t bytes) {
  char a_piece[kSwapBytes];
  char b_piece[kSwapBytes];
  for (int64_t at = 0; at < bytes; at += kSwapBytes) {
    const int64_t piece = std::min(kSwapBytes, bytes - at);
    std::memcpy(a_piece, a_in + at, piece);
    std::memcpy(b_piece, b_in + at, piece);
    std::memcpy(a_out + at, b_piece, piece);
    std::memcpy(b_out + at, a_piece, piece);
  }
}

}  // namespace

void InProcessWork::Plan(const CallSignature& signature,
                         std::vector<const MemberBuffers*> members) {
  signature_ = signature;
  members_ = std::move(members);
  const int64_t n = static_cast<int64_t>(members_.size());
  const int64_t amount = signature.amount;
  const int64_t unit = signature.block_bytes() == 0 ? 1 : signature.block_bytes() / amount;
  // An item of a reduction or an all-gather accesses `grain_` elements at every member.
  const int64_t grain_bytes = std::clamp(kItemBytes / (2 * n), kMinGrainBytes, kItemBytes / 4);
  grain_ = std::max<int64_t>(64, grain_bytes / unit);
  if (signature.op == CollectiveOp::kAllToAll) grain_ = kItemBytes / 4;
  ranges_ = (amount + grain_ - 1) / grain_;
  int64_t total_bytes = amount * unit * n;
  switch (signature.op) {
    case CollectiveOp::kAllReduce:
    case CollectiveOp::kBroadcast: num_items_ = ranges_; break;
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kAllGather:
      num_items_ = n * ranges_;
      total_bytes *= n;
      break;
    case CollectiveOp::kAllToAll:
      total_bytes *= n;
      // Short blocks: an item is a whole row of the matrix of blocks.
      if (amount <= kMinGrainBytes) ranges_ = 0;
      num_items_ = ranges_ == 0 ? (amount == 0 ? 0 : n) : n * n * ranges_;
      break;
    case CollectiveOp::kAllToAllV:
      num_items_ = n;
      total_bytes = 0;
      for (const MemberBuffers* member : members_) {
        for (int64_t size : member->recv_sizes) total_bytes += size;
      }
      break;
    default: num_items_ = 0;
  }
  small_ = total_bytes <= kSmallBytes;
  piece_bytes_ = total_bytes < kBeyondCaches ? kNearBytes : kFarBytes;
}

void InProcessWork::RunItem(int64_t item) const {
  const int64_t n = static_cast<int64_t>(members_.size());
  if (signature_.op == CollectiveOp::kAllToAllV) return RunAllToAllV(item);
  if (ranges_ == 0) return RunAllToAllRow(item);
  const int64_t first = item % ranges_ * grain_;
  const int64_t count = std::min(grain_, signature_.amount - first);
  const int64_t block = item / ranges_;
  switch (signature_.op) {
    case CollectiveOp::kAllReduce: return RunAllReduce(first, count);
    case CollectiveOp::kReduceScatter: return RunReduceScatter(block, first, count);
    case CollectiveOp::kAllGather: return RunAllGather(block, first, count);
    case CollectiveOp::kAllToAll: return RunAllToAll(block / n, block % n, first, count);
    case CollectiveOp::kBroadcast:
      return CopyToAll(In(*members_[signature_.root]) + first, first, count);
    default: return;
  }
}

// Copies piece by piece, so that each is read from memory only once.
void InProcessWork::CopyToAll(const char* from, int64_t offset, int64_t bytes) const {
  absl::InlinedVector<char*, 16> outs;
  for (const MemberBuffers* member : members_) {
    char* const out = Out(*member) + offset;
    if (out != from) outs.push_back(out);
  }
  for (int64_t at = 0; at < bytes; at += piece_bytes_) {
    const int64_t piece = std::min(piece_bytes_, bytes - at);
    for (char* out : outs) std::memcpy(out + at, from + at, piece);
  }
}

// A range of the result depends only on the same range of every `in`, so it may overwrite an `in`.
void InProcessWork::RunAllReduce(int64_t first, int64_t count) const {
  Sources sources;
  Outs outs;
  for (const MemberBuffers* member : members_) {
    sources.push_back(member->in);
    outs.push_back(member->out);
  }
  ReduceRange(signature_.kind, signature_.type, sources, outs, first, count);
}

void InProcessWork::RunReduceScatter(size_t target, int64_t first, int64_t count) const {
  Sources sources;
  for (const MemberBuffers* member : members_) {
    sources.push_back(target == 0 && member->first_block != nullptr
                          ? member->first_block
                          : In(*member) + static_cast<int64_t>(target) * signature_.block_bytes());
  }
  void* const out = members_[target]->out;
  ReduceRange(signature_.kind, signature_.type, sources, absl::MakeConstSpan(&out, 1), first,
              count);
}

void InProcessWork::RunAllGather(size_t source, int64_t first, int64_t count) const {
  CopyToAll(In(*members_[source]) + first, static_cast<int64_t>(source) * signature_.amount + first,
            count);
}

void InProcessWork::RunAllToAll(size_t a, size_t b, int64_t first, int64_t count) const {
  if (a > b) return;  // done with (b, a)
  const int64_t bytes = signature_.amount;
  const int64_t at_a = static_cast<int64_t>(a) * bytes + first;
  const int64_t at_b = static_cast<int64_t>(b) * bytes + first;
  if (a == b) return Copy(Out(*members_[a]) + at_a, In(*members_[a]) + at_a, count);
  Swap(In(*members_[a]) + at_b, Out(*members_[a]) + at_b, In(*members_[b]) + at_a,
       Out(*members_[b]) + at_a, count);
}

void InProcessWork::RunAllToAllRow(size_t a) const {
  for (size_t b = a; b < members_.size(); ++b) RunAllToAll(a, b, 0, signature_.amount);
}

void InProcessWork::RunAllToAllV(size_t receiver) const {
  const MemberBuffers& to = *members_[receiver];
  for (size_t i = 0; i < members_.size(); ++i) {
    Copy(Out(to) + to.recv_offsets[i], In(*members_[i]) + members_[i]->send_offsets[receiver],
         to.recv_sizes[i]);
  }
}

}  // namespace internal
}  // namespace shardcall
