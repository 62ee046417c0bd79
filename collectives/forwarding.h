// SPDX-License-Identifier: Apache-2.0
// A communicator that forwards every call to another one.
#ifndef SHARDCALL_COLLECTIVES_FORWARDING_H_
#define SHARDCALL_COLLECTIVES_FORWARDING_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// `inner` outlives it. A derived class adds code before the calls, or overrides some of them.
class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(Communicator& inner) : inner_(inner) {}

  absl::string_view backend() const override { return inner_.backend(); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void* stream() const override { return inner_.stream(); }

  absl::Status PrepareGroups(absl::Span<const std::vector<int>> groups) override {
    Before();
    return inner_.PrepareGroups(groups);
  }
  absl::Status Barrier(Group group, CollectiveTag tag) override {
    Before();
    return inner_.Barrier(group, tag);
  }
  absl::Status AllReduce(Group group, ReduceKind kind, ElementType type, const void* in, void* out,
                         int64_t count, CollectiveTag tag) override {
    Before();
    return inner_.AllReduce(group, kind, type, in, out, count, tag);
  }
  absl::Status ReduceScatter(Group group, ReduceKind kind, ElementType type, const void* in,
                             void* out, int64_t count, CollectiveTag tag) override {
    Before();
    return inner_.ReduceScatter(group, kind, type, in, out, count, tag);
  }
  absl::Status AllGather(Group group, const void* in, void* out, int64_t bytes,
                         CollectiveTag tag) override {
    Before();
    return inner_.AllGather(group, in, out, bytes, tag);
  }
  absl::Status AllToAll(Group group, const void* in, void* out, int64_t bytes,
                        CollectiveTag tag) override {
    Before();
    return inner_.AllToAll(group, in, out, bytes, tag);
  }
  absl::Status AllToAllV(Group group, const void* in, absl::Span<const int64_t> send_offsets,
                         absl::Span<const int64_t> send_sizes, void* out,
                         absl::Span<const int64_t> recv_offsets,
                         absl::Span<const int64_t> recv_sizes, CollectiveTag tag) override {
    Before();
    return inner_.AllToAllV(group, in, send_offsets, send_sizes, out, recv_offsets, recv_sizes,
                            tag);
  }
  absl::Status Permute(absl::Span<const std::pair<int, int>> pairs, const void* in, void* out,
                       int64_t bytes, CollectiveTag tag) override {
    Before();
    return inner_.Permute(pairs, in, out, bytes, tag);
  }
  absl::Status Broadcast(Group group, int root, void* buffer, int64_t bytes,
                         CollectiveTag tag) override {
    Before();
    return inner_.Broadcast(group, root, buffer, bytes, tag);
  }
  absl::Status Send(int to, const void* data, int64_t bytes, CollectiveTag tag) override {
    Before();
    return inner_.Send(to, data, bytes, tag);
  }
  absl::Status Recv(int from, void* data, int64_t bytes, CollectiveTag tag) override {
    Before();
    return inner_.Recv(from, data, bytes, tag);
  }
  void SetProgramNote(absl::string_view note) override { inner_.SetProgramNote(note); }
  absl::Status Told() override { return inner_.Told(); }
  void BeginWait() override { inner_.BeginWait(); }
  void EndWait() override { inner_.EndWait(); }
  Departures FindDeparted(Group group) override { return inner_.FindDeparted(group); }
  void Abort(const absl::Status& reason) override { inner_.Abort(reason); }

 protected:
  virtual void Before() {}
  Communicator& inner() const { return inner_; }

 private:
  Communicator& inner_;
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_FORWARDING_H_
