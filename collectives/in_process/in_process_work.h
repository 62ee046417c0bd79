// SPDX-License-Identifier: Apache-2.0
// A collective among threads, cut into items that any thread may execute. Items access the
// members' buffers directly, and a byte that one item writes is not accessed by another. So the
// threads that are running do all the work, and sleeping members need not be scheduled.
#ifndef SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_WORK_H_
#define SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_WORK_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/collectives/call.h"

namespace shardcall {
inline namespace internal {

// One member's buffers. For all-to-all-v (ragged-all-to-all) the lists have one entry per member,
// in bytes.
struct MemberBuffers {
  const void* in = nullptr;
  void* out = nullptr;
  // Replaces block 0 of `in` where out is the same memory (reduce-scatter).
  const void* first_block = nullptr;
  absl::Span<const int64_t> send_offsets, send_sizes, recv_offsets, recv_sizes;
};

class InProcessWork {
 public:
  // `members` in group order. The caller has checked that all agree, and that `in` of all-gather
  // and ragged-all-to-all does not overlap any `out`.
  void Plan(const CallSignature& signature, std::vector<const MemberBuffers*> members);

  int64_t num_items() const { return num_items_; }
  // Whether there is so little work that distributing it would cost more than doing it.
  bool is_small() const { return small_; }
  void RunItem(int64_t item) const;

 private:
  void RunAllReduce(int64_t first, int64_t count) const;
  void RunReduceScatter(size_t target, int64_t first, int64_t count) const;
  void RunAllGather(size_t source, int64_t first, int64_t count) const;
  void RunAllToAll(size_t a, size_t b, int64_t first, int64_t count) const;
  void RunAllToAllRow(size_t a) const;
  void RunAllToAllV(size_t receiver) const;
  // Copies `from` to byte `offset` of every member's out, except where it is there already.
  void CopyToAll(const char* from, int64_t offset, int64_t bytes) const;

  CallSignature signature_;
  std::vector<const MemberBuffers*> members_;
  int64_t grain_ = 1;   // elements (reductions) or bytes of one item
  int64_t ranges_ = 1;  // number of items per block
  int64_t num_items_ = 0;
  int64_t piece_bytes_ = 1;  // of data that is copied to all members
  bool small_ = true;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_WORK_H_
