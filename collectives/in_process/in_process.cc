// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/in_process/in_process.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "shardcall/collectives/backend.h"
#include "shardcall/collectives/call.h"
#include "shardcall/collectives/in_process/in_process_state.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

int64_t Extent(absl::Span<const int64_t> offsets, absl::Span<const int64_t> sizes) {
  int64_t extent = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 0) extent = std::max(extent, offsets[i] + sizes[i]);
  }
  return extent;
}

std::vector<char> CopyOf(const void* data, int64_t bytes) {
  const char* from = static_cast<const char*>(data);
  return std::vector<char>(from, from + bytes);
}

class InProcessCommunicator final : public BackendCommunicator {
 public:
  InProcessCommunicator(std::shared_ptr<InProcessState> state, int rank)
      : state_(std::move(state)), rank_(rank) {
    state_->Join(rank);
  }
  ~InProcessCommunicator() override { state_->Leave(rank_); }

  absl::string_view backend() const override { return "inprocess"; }
  int rank() const override { return rank_; }
  int size() const override { return state_->size(); }

  absl::Status Barrier(Group group, CollectiveTag tag) override {
    return Meet(group, {.op = CollectiveOp::kBarrier}, {}, tag);
  }

  absl::Status AllReduce(Group group, ReduceKind kind, ElementType type, const void* in, void* out,
                         int64_t count, CollectiveTag tag) override {
    const CallSignature call{CollectiveOp::kAllReduce, kind, type, -1, count};
    MemberBuffers buffers;
    buffers.in = in;
    buffers.out = out;
    return Meet(group, call, buffers, tag);
  }

  absl::Status ReduceScatter(Group group, ReduceKind kind, ElementType type, const void* in,
                             void* out, int64_t count, CollectiveTag tag) override {
    const CallSignature call{CollectiveOp::kReduceScatter, kind, type, -1, count};
    SHARDCALL_RETURN_IF_ERROR(Check(group, call));
    MemberBuffers buffers;
    buffers.in = in;
    buffers.out = out;
    std::vector<char> first_block;
    if (in == out && count > 0 && in != nullptr) {
      first_block = CopyOf(in, call.block_bytes());
      buffers.first_block = first_block.data();
    }
    return Meet(group, call, buffers, tag);
  }

  absl::Status AllGather(Group group, const void* in, void* out, int64_t bytes,
                         CollectiveTag tag) override {
    const CallSignature call{.op = CollectiveOp::kAllGather, .amount = bytes};
    SHARDCALL_RETURN_IF_ERROR(Check(group, call));
    MemberBuffers buffers;
    buffers.in = in;
    buffers.out = out;
    std::vector<char> copy;
    if (in == out && bytes > 0 && in != nullptr) {
      copy = CopyOf(in, bytes);
      buffers.in = copy.data();
    }
    return Meet(group, call, buffers, tag);
  }

  absl::Status AllToAll(Group group, const void* in, void* out, int64_t bytes,
                        CollectiveTag tag) override {
    MemberBuffers buffers;
    buffers.in = in;
    buffers.out = out;
    return Meet(group, {.op = CollectiveOp::kAllToAll, .amount = bytes}, buffers, tag);
  }

  absl::Status AllToAllV(Group group, const void* in, absl::Span<const int64_t> send_offsets,
                         absl::Span<const int64_t> send_sizes, void* out,
                         absl::Span<const int64_t> recv_offsets,
                         absl::Span<const int64_t> recv_sizes, CollectiveTag tag) override {
    const CallSignature call{.op = CollectiveOp::kAllToAllV};
    SHARDCALL_RETURN_IF_ERROR(
        CheckBlocks(group.size(), send_offsets, send_sizes, recv_offsets, recv_sizes));
    const int64_t in_bytes = Extent(send_offsets, send_sizes);
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in, in_bytes, "input", call));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out, Extent(recv_offsets, recv_sizes), "output", call));
    MemberBuffers buffers{in, out, nullptr, send_offsets, send_sizes, recv_offsets, recv_sizes};
    std::vector<char> copy;
    if (in == out && in_bytes > 0) {
      copy = CopyOf(in, in_bytes);
      buffers.in = copy.data();
    }
    return Meet(group, call, buffers, tag);
  }

  absl::Status Broadcast(Group group, int root, void* buffer, int64_t bytes,
                         CollectiveTag tag) override {
    MemberBuffers buffers;
    buffers.in = buffer;
    buffers.out = buffer;
    return Meet(group, {.op = CollectiveOp::kBroadcast, .root = root, .amount = bytes}, buffers,
                tag);
  }

  void Abort(const absl::Status& reason) override { state_->Abort(reason); }

 protected:
  absl::Status Partners(absl::Span<const std::pair<int, int>> pairs, int* source,
                        int* target) override {
    auto it = permutations_.find(pairs);
    if (it == permutations_.end()) {
      SHARDCALL_ASSIGN_OR_RETURN(const InProcessState::Permutation* found,
                                 state_->FindPermutation(pairs));
      it = permutations_.emplace(absl::MakeConstSpan(found->pairs), found).first;
    }
    *source = it->second->source_of[rank_];
    *target = it->second->target_of[rank_];
    return absl::OkStatus();
  }
  absl::Status PermuteWith(const CallSignature& call, int source, int target, const void* in,
                           void* out, CollectiveTag tag) override;
  absl::Status PointToPoint(const CallSignature& call, int partner, void* data,
                            CollectiveTag tag) override;

 private:
  struct Membership {
    InProcessGroup* group;
    const InProcessGroup::Order* order;
    int index;
  };

  absl::StatusOr<const Membership*> Find(Group group) {
    const auto it = memberships_.find(group);
    if (it != memberships_.end()) return &it->second;
    SHARDCALL_ASSIGN_OR_RETURN(const InProcessState::Meeting meeting,
                               state_->FindGroup(group, rank_));
    Membership membership{meeting.group, meeting.order, meeting.group->IndexOf(rank_)};
    return &memberships_.emplace(absl::MakeConstSpan(meeting.order->ranks), membership)
                .first->second;
  }

  absl::Status Check(Group group, const CallSignature& call) {
    SHARDCALL_RETURN_IF_ERROR(Find(group).status());
    return CheckSignature(call, static_cast<int64_t>(group.size()));
  }

  absl::Status Meet(Group group, const CallSignature& call, const MemberBuffers& buffers,
                    CollectiveTag tag) {
    SHARDCALL_ASSIGN_OR_RETURN(const Membership* member, Find(group));
    SHARDCALL_RETURN_IF_ERROR(CheckSignature(call, static_cast<int64_t>(group.size())));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(buffers.in, call.block_bytes(), "input", call));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(buffers.out, call.block_bytes(), "output", call));
    FlightRecorder& recorder = state_->recorder(rank_);
    const int64_t number = recorder.Begin(call, group, tag.name);
    absl::Status status = member->group->Run(member->index, member->order, call, buffers, tag.name,
                                             number, state_->deadline());
    recorder.End(status.ok());
    return status;
  }

  InProcessPair* Pair(int sender, int receiver) {
    InProcessPair*& pair = pairs_[{sender, receiver}];
    if (pair == nullptr) pair = state_->FindPair(sender, receiver);
    return pair;
  }

  const std::shared_ptr<InProcessState> state_;
  const int rank_;
  // By lists that the state owns.
  ByList<int, Membership> memberships_;
  ByList<std::pair<int, int>, const InProcessState::Permutation*> permutations_;
  std::map<std::pair<int, int>, InProcessPair*> pairs_;
};

absl::Status InProcessCommunicator::PointToPoint(const CallSignature& call, int partner, void* data,
                                                 CollectiveTag tag) {
  const int ranks[] = {rank_, partner};
  FlightRecorder& recorder = state_->recorder(rank_);
  const int64_t number = recorder.Begin(call, absl::MakeConstSpan(ranks), tag.name);
  const bool sends = call.op == CollectiveOp::kSend;
  InProcessPair* pair = sends ? Pair(rank_, partner) : Pair(partner, rank_);
  const InProcessPair::Side side = sends ? InProcessPair::kSender : InProcessPair::kReceiver;
  pair->Post(side, call, data, tag.name, number);
  absl::Status status = pair->Await(side, state_->deadline(), DeadlineAfter(state_->deadline()));
  recorder.End(status.ok());
  return status;
}

absl::Status InProcessCommunicator::PermuteWith(const CallSignature& call, int source, int target,
                                                const void* in, void* out, CollectiveTag tag) {
  const int64_t bytes = call.amount;
  SHARDCALL_RETURN_IF_ERROR(state_->aborted());
  const bool sends = target >= 0 && target != rank_;
  const bool receives = source >= 0 && source != rank_;
  if (source == rank_ && in != out && bytes > 0) std::memcpy(out, in, bytes);
  if (sends || receives) {
    std::vector<char> copy;
    if (sends && receives && in == out) {
      copy = CopyOf(in, bytes);
      in = copy.data();
    }
    const int partners[] = {receives ? source : target, sends ? target : source};
    FlightRecorder& recorder = state_->recorder(rank_);
    const int64_t number = recorder.Begin(
        call, absl::MakeConstSpan(partners).first(partners[0] == partners[1] ? 1 : 2), tag.name);
    const absl::Duration patience = state_->deadline();
    const MonotonicTime deadline = DeadlineAfter(patience);
    InProcessPair* outgoing = sends ? Pair(rank_, target) : nullptr;
    if (sends) {
      outgoing->Post(InProcessPair::kSender, call, const_cast<void*>(in), tag.name, number);
    }
    absl::Status status;
    if (receives) {
      InProcessPair* incoming = Pair(source, rank_);
      incoming->Post(InProcessPair::kReceiver, call, out, tag.name, number);
      status = incoming->Await(InProcessPair::kReceiver, patience, deadline);
    }
    if (sends && status.ok()) {
      status = outgoing->Await(InProcessPair::kSender, patience, deadline);
    } else if (sends) {
      outgoing->Withdraw(InProcessPair::kSender, status);
    }
    recorder.End(status.ok());
    SHARDCALL_RETURN_IF_ERROR(status);
  }
  // Last, since out may be the buffer that was sent.
  if (source < 0 && bytes > 0) std::memset(out, 0, bytes);
  return absl::OkStatus();
}

}  // namespace

InProcessWorld::InProcessWorld(int size, absl::Duration deadline)
    : state_(std::make_shared<InProcessState>(size, deadline)) {
  SHARDCALL_CHECK(size >= 1);
}

std::unique_ptr<Communicator> InProcessWorld::Rank(int r) {
  return std::make_unique<InProcessCommunicator>(state_, r);
}

}  // namespace shardcall
