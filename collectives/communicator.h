// SPDX-License-Identifier: Apache-2.0
// The one interface of executors and custom-call handlers to other devices, for every backend. A
// device is a rank 0..size()-1; groups are lists of ranks, and the order of a group is the order
// of concatenation and of summation.
//
// Every call is collective over its group: all members call with equal arguments (except for the
// data). Members synchronise per group, so devices of different groups may run different
// sequences. Buffers are dense, in host memory (device memory where the backend says so), owned by
// the caller, and may not overlap unless in == out. Every wait has a deadline; past it the call
// returns kDeadlineExceeded with E301, which names the absent ranks.
//
// An object of this class is one rank's, and one thread at a time calls it; ranks of one process
// have one each, which their threads use at once.
//
// Sums: a reduction is a left fold in group order, in f32 for types narrower
// than f32 with one rounding at the end, else in the element type. Every
// backend but NCCL keeps that, so results are byte-identical across backends.
#ifndef SHARDCALL_COLLECTIVES_COMMUNICATOR_H_
#define SHARDCALL_COLLECTIVES_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/element_type.h"
#include "shardcall/sharding/partial_op.h"

namespace shardcall SHARDCALL_PUBLIC {

using ReduceKind = PartialOp;
// As MPI and NCCL name them.
inline absl::string_view ReduceKindName(ReduceKind kind) {
  constexpr absl::string_view kNames[] = {"sum", "product", "max", "min", "and", "or", "xor"};
  return kNames[static_cast<int>(kind)];
}

// Names a collective in diagnostics and flight records; it does not identify a call.
struct CollectiveTag {
  absl::string_view name;  // instruction's name, "%ar.2"
};

// Ranks that will not take part any more, so there is no need to wait for them.
struct Departures {
  bool job_ends = false;   // the launcher has announced the end of the job
  std::vector<int> ended;  // ranks whose processes have ended
  bool any() const { return job_ends || !ended.empty(); }
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual absl::string_view backend() const = 0;  // "inprocess", "mpi", "nccl"
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The stream on which the backend moves device memory (a cudaStream_t with NCCL); null where
  // buffers are in host memory.
  virtual void* stream() const { return nullptr; }

  using Group = absl::Span<const int>;  // ranks in group order; holds rank()

  // Prepares the backend's state, such as NCCL communicators, for these groups; each rank is in at
  // most one of them. Every rank of the communicator must call this with the same groups. Groups
  // that were not prepared are set up at their first call, which may cost more.
  virtual absl::Status PrepareGroups(absl::Span<const std::vector<int>> /*groups*/) {
    return absl::OkStatus();
  }

  virtual absl::Status Barrier(Group group, CollectiveTag tag) = 0;

  // out and in: count elements each.
  virtual absl::Status AllReduce(Group group, ReduceKind kind, ElementType type, const void* in,
                                 void* out, int64_t count, CollectiveTag tag) = 0;
  // in: group.size() * count elements, block j goes to member j; out: count.
  virtual absl::Status ReduceScatter(Group group, ReduceKind kind, ElementType type, const void* in,
                                     void* out, int64_t count, CollectiveTag tag) = 0;
  // in: bytes; out: group.size() * bytes, in group order.
  virtual absl::Status AllGather(Group group, const void* in, void* out, int64_t bytes,
                                 CollectiveTag tag) = 0;
  // in and out: group.size() blocks of `bytes`; block j of in goes to member j,
  // block i of out came from member i.
  virtual absl::Status AllToAll(Group group, const void* in, void* out, int64_t bytes,
                                CollectiveTag tag) = 0;
  // Blocks of different sizes; offsets and sizes are in bytes, one per member. send_sizes[j] at
  // the sender equals recv_sizes[i] at the receiver. Bytes of out that no block covers are left
  // unchanged.
  virtual absl::Status AllToAllV(Group group, const void* in,
                                 absl::Span<const int64_t> send_offsets,
                                 absl::Span<const int64_t> send_sizes, void* out,
                                 absl::Span<const int64_t> recv_offsets,
                                 absl::Span<const int64_t> recv_sizes, CollectiveTag tag) = 0;
  // Pairs (source, target) of ranks with unique sources and unique targets. Every rank that runs
  // the instruction calls this. out is zeroed where this rank is not a target. Synchronises per
  // pair: ranks in no pair return at once.
  virtual absl::Status Permute(absl::Span<const std::pair<int, int>> pairs, const void* in,
                               void* out, int64_t bytes, CollectiveTag tag) = 0;
  // Broadcasts the buffer of `root` (index into the group) to all members.
  virtual absl::Status Broadcast(Group group, int root, void* buffer, int64_t bytes,
                                 CollectiveTag tag) = 0;
  // Point to point; the receiver gives the same byte count as the sender.
  virtual absl::Status Send(int to, const void* data, int64_t bytes, CollectiveTag tag) = 0;
  virtual absl::Status Recv(int from, void* data, int64_t bytes, CollectiveTag tag) = 0;

  // An asynchronous call.
  class Pending {
   public:
    virtual ~Pending() = default;     // also waits for the call
    virtual absl::Status Done() = 0;  // waits for the call; returns its status
  };
  using Call = std::function<absl::Status(Communicator&)>;
  // Starts `call`, which makes this communicator's collectives through its argument. Started calls
  // run in the order of their starts, and ordinary calls after them, so all ranks must start them
  // in one order; Done may be called in any order. Memory that the call refers to must stay valid
  // until then. The default runs the call immediately, for backends that cannot progress by
  // themselves; async.h makes them asynchronous.
  virtual std::unique_ptr<Pending> Start(Call call) {
    class Over final : public Pending {
     public:
      explicit Over(absl::Status status) : status_(std::move(status)) {}
      absl::Status Done() override { return status_; }

     private:
      const absl::Status status_;
    };
    return std::make_unique<Over>(call(*this));
  }

  // Bracket a wait for other ranks by other means than this communicator's calls, such as NCCL
  // over MPI. During such a wait, FindDeparted reports a job that the launcher ends, and the
  // process stays alive to report which ranks it waited for.
  virtual void BeginWait() {}
  virtual void EndWait() {}
  // Whether the job is ending, and which processes of the group have ended, as far as this rank
  // knows; does not communicate.
  virtual Departures FindDeparted(Group /*group*/) { return {}; }

  // Whether all ranks run the same program, for reports of failures.
  virtual void SetProgramNote(absl::string_view /*note*/) {}

  // OK, or the failure that another rank has sent to this one, which the next call would return.
  // Does not wait for other ranks.
  virtual absl::Status Told() { return absl::OkStatus(); }

  // Makes every pending and later call, on every device that can be reached,
  // return kAborted with `reason`.
  virtual void Abort(const absl::Status& reason) = 0;
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_COMMUNICATOR_H_
