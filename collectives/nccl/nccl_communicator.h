// SPDX-License-Identifier: Apache-2.0
// The NCCL backend. NCCL itself never gives up on a peer, so communicators are non-blocking, every
// call is polled until the deadline, and a failure aborts all communicators of the process and is
// sent to the others over the side channel. When the deadline has passed, members compare their
// calls over the side channel, which finds those that are absent or disagree.
//
// The communicators of prepared groups are split off the world communicator, which all ranks take
// part in. That of another group is made at the group's first call; its id is exchanged over the
// side channel, since the other ranks take no part.
#ifndef SHARDCALL_COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_
#define SHARDCALL_COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shardcall/collectives/backend.h"
#include "shardcall/collectives/call.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/collectives/flight_recorder.h"
#include "shardcall/collectives/nccl/nccl_device.h"
#include "shardcall/collectives/side_channel.h"

namespace shardcall {
inline namespace internal {

// Large since it has every collective of the interface, each with a form on the device and one
// through the host; what they share is in nccl_device.h and call.h.
class NcclCommunicator final : public BackendCommunicator {
 public:
  // Collective over all ranks of the side channel.
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(std::unique_ptr<SideChannel> side,
                                                              int device, absl::Duration deadline,
                                                              bool check_every_call,
                                                              bool register_buffers);
  ~NcclCommunicator() override;

  absl::string_view backend() const override { return "nccl"; }
  int rank() const override { return side_->rank(); }
  int size() const override { return side_->size(); }
  // The stream of all device work of this communicator.
  void* stream() const override { return stream_; }

  absl::Status PrepareGroups(absl::Span<const std::vector<int>> groups) override;
  absl::Status Barrier(Group group, CollectiveTag tag) override;
  absl::Status AllReduce(Group group, ReduceKind kind, ElementType type, const void* in, void* out,
                         int64_t count, CollectiveTag tag) override;
  absl::Status ReduceScatter(Group group, ReduceKind kind, ElementType type, const void* in,
                             void* out, int64_t count, CollectiveTag tag) override;
  absl::Status AllGather(Group group, const void* in, void* out, int64_t bytes,
                         CollectiveTag tag) override;
  absl::Status AllToAll(Group group, const void* in, void* out, int64_t bytes,
                        CollectiveTag tag) override;
  absl::Status AllToAllV(Group group, const void* in, absl::Span<const int64_t> send_offsets,
                         absl::Span<const int64_t> send_sizes, void* out,
                         absl::Span<const int64_t> recv_offsets,
                         absl::Span<const int64_t> recv_sizes, CollectiveTag tag) override;
  absl::Status Broadcast(Group group, int root, void* buffer, int64_t bytes,
                         CollectiveTag tag) override;
  void SetProgramNote(absl::string_view note) override { program_note_ = std::string(note); }
  void Abort(const absl::Status& reason) override;

 protected:
  absl::Status PermuteWith(const CallSignature& signature, int source, int target, const void* in,
                           void* out, CollectiveTag tag) override;
  absl::Status PointToPoint(const CallSignature& signature, int partner, void* data,
                            CollectiveTag tag) override;

 private:
  struct Clique {
    ncclComm_t comm = nullptr;
    std::vector<int> ranks;
    int me = 0;
    // By scratch buffer: the registered address, and NCCL's handle.
    const char* registered[2] = {nullptr, nullptr};
    void* handles[2] = {nullptr, nullptr};
    int count() const { return static_cast<int>(ranks.size()); }
  };
  struct Call {
    CallSignature signature;
    int64_t number = 0;
    absl::string_view name;
    Clique* clique = nullptr;
    std::vector<int> ranks;  // ranks that take part
  };
  using Body = absl::FunctionRef<absl::Status(Call&)>;

  NcclCommunicator(std::unique_ptr<SideChannel> side, int device, absl::Duration deadline,
                   bool check_every_call, bool register_buffers);

  // Sets up CUDA for this rank and the world communicator.
  absl::Status Start();
  absl::StatusOr<Clique*> FindClique(Group group);
  absl::StatusOr<Clique*> MakeClique(Group group);
  // Checks the group and the signature, and runs `body` with a flight record; its failure is
  // final.
  absl::Status Run(Group group, const CallSignature& signature, CollectiveTag tag, Body body);
  // The same over the world communicator, with only `ranks` taking part.
  absl::Status RunPairs(std::vector<int> ranks, const CallSignature& signature, CollectiveTag tag,
                        Body body);
  absl::Status Recorded(Call& call, Body body);

  // Waits until a call of NCCL, or the end of a group of calls, is enqueued.
  absl::Status Enqueued(Call& call, ncclResult_t result, absl::string_view what);
  // Waits for the work on the stream.
  absl::Status Finish(Call& call);
  absl::Status Await(Call& call, absl::FunctionRef<absl::StatusOr<bool>()> is_done);
  absl::Status Look(Call& call, absl::FunctionRef<absl::StatusOr<bool>()> is_done);
  // Reports what the members say about a call that does not end.
  absl::Status Explain(const Call& call);
  // E304 if a rank that takes part has ended, or if the job ends.
  absl::Status FindLost(const Call& call);
  absl::Status Compare(const Call& call, absl::Span<const int> group);
  void Fail(const absl::Status& status);
  absl::Status failure() const;

  // Device memory from which NCCL reads `in`, or to which it writes `out`; host memory is staged.
  // `apart`: in is copied if it is the same memory as out.
  absl::StatusOr<const char*> StageIn(Call& call, const void* in, int64_t bytes, bool apart);
  absl::StatusOr<char*> StageOut(Call& call, void* out, int64_t bytes);
  // Scratch of at least `bytes`, registered with the call's communicator: NCCL then sends directly
  // from it, instead of through its own buffers.
  enum Which { kIn, kOut };
  absl::StatusOr<char*> Scratch(Call& call, Which which, int64_t bytes);
  void Deregister(Clique& clique, Which which);
  // Aborts all communicators, split ones before the one they were split from.
  void AbortAll();
  // Copies to host memory only after the data has arrived: the copy would wait for it without a
  // deadline, and after a failure the caller's memory may be gone.
  absl::Status CopyBack(void* out, const char* staged, int64_t bytes);
  absl::Status CopyToHost(const void* in, int64_t bytes, std::vector<char>* host);
  absl::Status CopyFromHost(void* out, const std::vector<char>& host);

  struct Piece {
    int peer;  // position in the clique
    int64_t send_offset, send_bytes, receive_offset, receive_bytes;
  };
  absl::Status Exchange(Call& call, const char* in, char* out, absl::Span<const Piece> pieces);

  const std::unique_ptr<SideChannel> side_;
  const int device_;
  const absl::Duration deadline_;
  const bool check_every_call_, register_buffers_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
  DeviceScratch scratch_[2];
  std::set<std::vector<std::vector<int>>> prepared_;
  std::map<std::vector<int>, std::unique_ptr<Clique>> cliques_;
  Clique* world_ = nullptr;
  FlightRecorder recorder_;
  std::string program_note_ = "programs were not compared";

  mutable std::mutex failure_mutex_;
  absl::Status failure_;
  std::atomic<bool> failed_{false};
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_
