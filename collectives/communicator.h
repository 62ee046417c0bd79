// SPDX-License-Identifier: Apache-2.0
// The one interface that executors and custom-call handlers have to the other
// devices, whatever the backend. A device is a rank 0..size()-1; groups are
// lists of ranks, and the order of a group is the order of concatenation and
// of summation.
//
// Every call is collective over its group: all members call with equal
// arguments (but for the data). A rendezvous is per group, so devices of
// different groups may run different sequences. Buffers are dense, host memory
// (a device pointer where the backend says so), owned by the caller, and may
// not overlap unless in == out. Every wait has a deadline; past it the call
// returns kDeadlineExceeded with E301, which names the ranks that are absent.
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

namespace shardcall SHARDCALL_PUBLIC {

enum class ReduceKind : uint8_t { kSum, kProduct, kMax, kMin, kAnd, kOr, kXor };
inline absl::string_view ReduceKindName(ReduceKind kind) {
  constexpr absl::string_view kNames[] = {"sum", "product", "max", "min", "and", "or", "xor"};
  return kNames[static_cast<int>(kind)];
}

// Names a collective in diagnostics and flight records; never a key.
struct CollectiveTag {
  absl::string_view name;  // instruction's name, "%ar.2"
};

// Ranks that no one needs to wait for.
struct Departures {
  bool job_ends = false;   // the launcher has said so
  std::vector<int> ended;  // ranks whose processes are no more
  bool any() const { return job_ends || !ended.empty(); }
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual absl::string_view backend() const = 0;  // "inprocess", "mpi", "nccl"
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The accelerator's stream on which the backend moves device memory (NCCL's
  // cudaStream_t); null where buffers are host memory.
  virtual void* stream() const { return nullptr; }

  using Group = absl::Span<const int>;  // ranks in group order; holds rank()

  // Makes what the backend keeps for these groups, in which each rank stands at
  // most once; every rank of the communicator calls, with the same groups. Groups
  // that were not prepared are made when they first meet, which may cost more.
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
  // Blocks of differing sizes, offsets and sizes in bytes, one per member.
  // send_sizes[j] at the sender equals recv_sizes[i] at the receiver. What no
  // block covers in out is left as it is.
  virtual absl::Status AllToAllV(Group group, const void* in,
                                 absl::Span<const int64_t> send_offsets,
                                 absl::Span<const int64_t> send_sizes, void* out,
                                 absl::Span<const int64_t> recv_offsets,
                                 absl::Span<const int64_t> recv_sizes, CollectiveTag tag) = 0;
  // Pairs (source, target) of ranks with unique sources and unique targets; every
  // rank of the communicator that runs the instruction calls. out is zero where
  // this rank is no target. Meets per pair: ranks in no pair return at once.
  virtual absl::Status Permute(absl::Span<const std::pair<int, int>> pairs, const void* in,
                               void* out, int64_t bytes, CollectiveTag tag) = 0;
  // buffer of `root` (index into the group) to all.
  virtual absl::Status Broadcast(Group group, int root, void* buffer, int64_t bytes,
                                 CollectiveTag tag) = 0;
  // Point to point; the receiver names the same byte count.
  virtual absl::Status Send(int to, const void* data, int64_t bytes, CollectiveTag tag) = 0;
  virtual absl::Status Recv(int from, void* data, int64_t bytes, CollectiveTag tag) = 0;

  // A call that goes on while the caller does something else.
  class Pending {
   public:
    virtual ~Pending() = default;     // awaits it too
    virtual absl::Status Done() = 0;  // awaits the call; its status
  };
  using Call = std::function<absl::Status(Communicator&)>;
  // Starts `call`, which calls this communicator's collectives by way of its
  // argument. Calls run in the order in which they are started, later ordinary
  // ones after them, so ranks must start them in one order; Done may come in any.
  // What the call refers to stays until then. Backends that cannot go on by
  // themselves run the call here and now; async.h makes them.
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

  // Around a wait for other ranks by other means than this communicator's calls, as NCCL's
  // beside one over MPI: the end that a launcher gives the job is then found by
  // FindDeparted, and does not end the process before it has said whom it waits for.
  virtual void BeginWait() {}
  virtual void EndWait() {}
  // What is known of an end of the job, and of processes that have ended; asks nobody.
  virtual Departures FindDeparted(Group /*group*/) { return {}; }

  // For reports of failures: whether all ranks run the same program.
  virtual void SetProgramNote(absl::string_view /*note*/) {}

  // OK, or the failure that another rank has told this one of, which its next call
  // would give. Meets nobody, does not wait.
  virtual absl::Status Told() { return absl::OkStatus(); }

  // Makes every pending and later call, on every device that can be reached,
  // return kAborted with `reason`.
  virtual void Abort(const absl::Status& reason) = 0;
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_COMMUNICATOR_H_
