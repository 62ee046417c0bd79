// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/split.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "shardcall/collectives/call.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

class SubCommunicator final : public Communicator {
 public:
  SubCommunicator(Communicator& parent, Group group)
      : parent_(parent),
        ranks_(group.begin(), group.end()),
        rank_(static_cast<int>(std::find(group.begin(), group.end(), parent.rank()) -
                               group.begin())) {}

  absl::string_view backend() const override { return parent_.backend(); }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  void* stream() const override { return parent_.stream(); }

  absl::Status Barrier(Group group, CollectiveTag tag) override {
    SHARDCALL_ASSIGN_OR_RETURN(const Ranks ranks, Outer(group));
    return parent_.Barrier(ranks, tag);
  }
  absl::Status AllReduce(Group group, ReduceKind kind, ElementType type, const void* in, void* out,
                         int64_t count, CollectiveTag tag) override {
    SHARDCALL_ASSIGN_OR_RETURN(const Ranks ranks, Outer(group));
    return parent_.AllReduce(ranks, kind, type, in, out, count, tag);
  }
  absl::Status ReduceScatter(Group group, ReduceKind kind, ElementType type, const void* in,
                             void* out, int64_t count, CollectiveTag tag) override {
    SHARDCALL_ASSIGN_OR_RETURN(const Ranks ranks, Outer(group));
    return parent_.ReduceScatter(ranks, kind, type, in, out, count, tag);
  }
  absl::Status AllGather(Group group, const void* in, void* out, int64_t bytes,
                         CollectiveTag tag) override {
    SHARDCALL_ASSIGN_OR_RETURN(const Ranks ranks, Outer(group));
    return parent_.AllGather(ranks, in, out, bytes, tag);
  }
  absl::Status AllToAll(Group group, const void* in, void* out, int64_t bytes,
                        CollectiveTag tag) override {
    SHARDCALL_ASSIGN_OR_RETURN(const Ranks ranks, Outer(group));
    return parent_.AllToAll(ranks, in, out, bytes, tag);
  }
  absl::Status AllToAllV(Group group, const void* in, absl::Span<const int64_t> send_offsets,
                         absl::Span<const int64_t> send_sizes, void* out,
                         absl::Span<const int64_t> recv_offsets,
                         absl::Span<const int64_t> recv_sizes, CollectiveTag tag) override {
    SHARDCALL_ASSIGN_OR_RETURN(const Ranks ranks, Outer(group));
    return parent_.AllToAllV(ranks, in, send_offsets, send_sizes, out, recv_offsets, recv_sizes,
                             tag);
  }
  absl::Status Permute(absl::Span<const std::pair<int, int>> pairs, const void* in, void* out,
                       int64_t bytes, CollectiveTag tag) override {
    absl::InlinedVector<std::pair<int, int>, 16> outer;
    for (const auto& [from, to] : pairs) {
      const int ends[] = {from, to};
      SHARDCALL_ASSIGN_OR_RETURN(const Ranks ranks, Outer(ends));
      outer.push_back({ranks[0], ranks[1]});
    }
    return parent_.Permute(outer, in, out, bytes, tag);
  }
  absl::Status Broadcast(Group group, int root, void* buffer, int64_t bytes,
                         CollectiveTag tag) override {
    SHARDCALL_ASSIGN_OR_RETURN(const Ranks ranks, Outer(group));
    return parent_.Broadcast(ranks, root, buffer, bytes, tag);
  }
  absl::Status Send(int to, const void* data, int64_t bytes, CollectiveTag tag) override {
    SHARDCALL_ASSIGN_OR_RETURN(const Ranks ranks, Outer(absl::MakeConstSpan(&to, 1)));
    return parent_.Send(ranks[0], data, bytes, tag);
  }
  absl::Status Recv(int from, void* data, int64_t bytes, CollectiveTag tag) override {
    SHARDCALL_ASSIGN_OR_RETURN(const Ranks ranks, Outer(absl::MakeConstSpan(&from, 1)));
    return parent_.Recv(ranks[0], data, bytes, tag);
  }
  std::unique_ptr<Pending> Start(Call call) override {
    return parent_.Start([ranks = ranks_, call = std::move(call)](Communicator& parent) {
      SubCommunicator within(parent, ranks);
      return call(within);
    });
  }
  void Abort(const absl::Status& reason) override { parent_.Abort(reason); }

 private:
  using Ranks = absl::InlinedVector<int, 16>;
  // The ranks of the parent for these ranks.
  absl::StatusOr<Ranks> Outer(absl::Span<const int> ranks) const {
    Ranks outer;
    for (int rank : ranks) {
      if (rank < 0 || rank >= size()) {
        return ToStatus({.code = "E306",
                         .message = absl::StrCat("rank ", rank, " is not one of the ", size(),
                                                 " devices of a split communicator"),
                         .fix = "Give a rank of the split communicator"});
      }
      outer.push_back(ranks_[rank]);
    }
    return outer;
  }

  Communicator& parent_;
  const std::vector<int> ranks_;
  const int rank_;
};

// Offsets relative to the lowest address among them.
template <typename T>
T* Lowest(absl::Span<T* const> buffers, std::vector<int64_t>* offsets) {
  T* const lowest = *std::min_element(buffers.begin(), buffers.end(), std::less<>());
  for (T* buffer : buffers) {
    offsets->push_back(static_cast<int64_t>(reinterpret_cast<uintptr_t>(buffer) -
                                            reinterpret_cast<uintptr_t>(lowest)));
  }
  return lowest;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> Split(Communicator& parent,
                                                    Communicator::Group group) {
  SHARDCALL_RETURN_IF_ERROR(CheckGroup(group, parent.rank(), parent.size()));
  return std::make_unique<SubCommunicator>(parent, group);
}

absl::Status AllToAllBuffers(Communicator& communicator, Communicator::Group group,
                             absl::Span<const void* const> in, absl::Span<void* const> out,
                             int64_t bytes, CollectiveTag tag) {
  const CallSignature call{.op = CollectiveOp::kAllToAllV, .amount = bytes};
  SHARDCALL_RETURN_IF_ERROR(CheckGroup(group, communicator.rank(), communicator.size()));
  SHARDCALL_RETURN_IF_ERROR(CheckSignature(call, static_cast<int64_t>(group.size())));
  if (in.size() != group.size() || out.size() != group.size()) {
    return ToStatus({.code = "E306",
                     .message = absl::StrCat("all-to-all over ", group.size(), " members has ",
                                             in.size(), " inputs and ", out.size(), " outputs"),
                     .fix = "Give as many inputs and outputs as the group has members"});
  }
  bool in_place = false;
  for (size_t j = 0; j < group.size(); ++j) {
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(in[j], bytes, "input", call));
    SHARDCALL_RETURN_IF_ERROR(CheckBuffer(out[j], bytes, "output", call));
    in_place = in_place || std::find(out.begin(), out.end(), in[j]) != out.end();
  }
  std::vector<char> copy;
  std::vector<const void*> copies;
  if (in_place && bytes > 0) {
    copy.resize(group.size() * bytes);
    for (size_t j = 0; j < group.size(); ++j) {
      std::memcpy(copy.data() + j * bytes, in[j], bytes);
      copies.push_back(copy.data() + j * bytes);
    }
    in = copies;
  }
  std::vector<int64_t> in_offsets, out_offsets;
  const std::vector<int64_t> sizes(group.size(), bytes);
  const void* const in_base = Lowest(in, &in_offsets);
  void* const out_base = Lowest(out, &out_offsets);
  return communicator.AllToAllV(group, in_base, in_offsets, sizes, out_base, out_offsets, sizes,
                                tag);
}

}  // namespace shardcall
