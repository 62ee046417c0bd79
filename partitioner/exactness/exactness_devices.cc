// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/exactness/exactness_devices.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "shardcall/collectives/forwarding.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/partitioner/exactness/exactness_observer.h"
#include "shardcall/partitioner/runtime/execute/executor.h"
#include "shardcall/partitioner/runtime/execute/watched_threads.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// A device's communicator that also exchanges the exactness of the current step's operands with
// the other devices.
class TellingCommunicator final : public ForwardingCommunicator {
 public:
  TellingCommunicator(Communicator& inner, ExactnessObserver& observer)
      : ForwardingCommunicator(inner), observer_(observer) {}

  absl::Status AllReduce(Group group, ReduceKind kind, ElementType type, const void* in, void* out,
                         int64_t count, CollectiveTag tag) override {
    SHARDCALL_RETURN_IF_ERROR(Tell(group, kind, type, tag));
    return inner().AllReduce(group, kind, type, in, out, count, tag);
  }
  absl::Status ReduceScatter(Group group, ReduceKind kind, ElementType type, const void* in,
                             void* out, int64_t count, CollectiveTag tag) override {
    SHARDCALL_RETURN_IF_ERROR(Tell(group, kind, type, tag));
    return inner().ReduceScatter(group, kind, type, in, out, count, tag);
  }
  absl::Status AllGather(Group group, const void* in, void* out, int64_t bytes,
                         CollectiveTag tag) override {
    SHARDCALL_RETURN_IF_ERROR(Tell(group, tag));
    return inner().AllGather(group, in, out, bytes, tag);
  }
  absl::Status AllToAll(Group group, const void* in, void* out, int64_t bytes,
                        CollectiveTag tag) override {
    SHARDCALL_RETURN_IF_ERROR(Tell(group, tag));
    return inner().AllToAll(group, in, out, bytes, tag);
  }
  absl::Status AllToAllV(Group group, const void* in, absl::Span<const int64_t> send_offsets,
                         absl::Span<const int64_t> send_sizes, void* out,
                         absl::Span<const int64_t> recv_offsets,
                         absl::Span<const int64_t> recv_sizes, CollectiveTag tag) override {
    SHARDCALL_RETURN_IF_ERROR(Tell(group, tag));
    return inner().AllToAllV(group, in, send_offsets, send_sizes, out, recv_offsets, recv_sizes,
                             tag);
  }
  absl::Status Permute(absl::Span<const std::pair<int, int>> pairs, const void* in, void* out,
                       int64_t bytes, CollectiveTag tag) override {
    const Told mine{true, observer_.Brings()};
    Told theirs;  // stays unset if no device sends to this one
    SHARDCALL_RETURN_IF_ERROR(inner().Permute(pairs, &mine, &theirs, sizeof(Told), tag));
    if (theirs.there) Learn({theirs.value}, false, ElementType::kInvalid);
    return inner().Permute(pairs, in, out, bytes, tag);
  }
  absl::Status Broadcast(Group group, int root, void* buffer, int64_t bytes,
                         CollectiveTag tag) override {
    SHARDCALL_RETURN_IF_ERROR(Tell(group, tag));
    return inner().Broadcast(group, root, buffer, bytes, tag);
  }
  absl::Status Send(int to, const void* data, int64_t bytes, CollectiveTag tag) override {
    const Told mine{true, observer_.Brings()};
    SHARDCALL_RETURN_IF_ERROR(inner().Send(to, &mine, sizeof(Told), tag));
    return inner().Send(to, data, bytes, tag);
  }
  absl::Status Recv(int from, void* data, int64_t bytes, CollectiveTag tag) override {
    Told theirs;
    SHARDCALL_RETURN_IF_ERROR(inner().Recv(from, &theirs, sizeof(Told), tag));
    Learn({theirs.value}, false, ElementType::kInvalid);
    return inner().Recv(from, data, bytes, tag);
  }

 private:
  struct Told {
    bool there = false;
    Exactness value;
  };

  void Learn(std::vector<Exactness> group, bool added, ElementType type) {
    observer_.Met(group, added, type);
  }
  absl::Status Tell(Group group, ReduceKind kind, ElementType type, CollectiveTag tag) {
    return Tell(group, tag, kind == ReduceKind::kSum, type);
  }
  absl::Status Tell(Group group, CollectiveTag tag, bool added = false,
                    ElementType type = ElementType::kInvalid) {
    const Exactness mine = observer_.Brings();
    std::vector<Exactness> all(group.size());
    SHARDCALL_RETURN_IF_ERROR(inner().AllGather(group, &mine, all.data(), sizeof(mine), tag));
    Learn(std::move(all), added, type);
    return absl::OkStatus();
  }

  ExactnessObserver& observer_;
};

// Everything that the devices use. It lives as long as a handler that does not return.
class Run {
 public:
  Run(std::shared_ptr<const DeviceProgram> program, std::shared_ptr<const OrderOfSums> sums,
      std::vector<Tensor> inputs, const ExactOptions& options, int num_devices,
      const BaseMesh* mesh)
      : program_(std::move(program)),
        inputs_(std::move(inputs)),
        options_(options),
        outputs_(num_devices) {
    if (mesh != nullptr) mesh_ = *mesh;
    if (num_devices > 1) world_.emplace(num_devices, options.deadline);
    for (int d = 0; d < num_devices; ++d) {
      observers_.push_back(std::make_unique<ExactnessObserver>(sums, options));
      if (num_devices == 1) continue;
      comms_.push_back(world_->Rank(d));
      telling_.push_back(std::make_unique<TellingCommunicator>(*comms_[d], *observers_[d]));
    }
  }

  int num_devices() const { return static_cast<int>(observers_.size()); }
  // Whether to run on watched threads, because a device may wait forever.
  bool watched() const { return num_devices() > 1 || NeedsWatch(*program_); }
  const DeviceProgram& program() const { return *program_; }

  void RunDevice(int d, RunningSteps* running = nullptr) {
    DeviceContext device;
    device.device = d;
    device.num_devices = num_devices();
    device.comm = telling_.empty() ? nullptr : telling_[d].get();
    device.mesh = mesh_.has_value() ? &*mesh_ : nullptr;
    device.handlers = options_.handlers;
    device.cancelled = &cancelled_;
    device.running = running;
    device.deadline = options_.deadline;
    const StepObserver::Scope scope(observers_[d].get());
    std::vector<Tensor> mine = num_devices() == 1 ? std::move(inputs_) : inputs_;
    absl::StatusOr<std::vector<Tensor>> outputs = Execute(*program_, std::move(mine), device);
    if (outputs.ok()) {
      outputs_[d] = *std::move(outputs);
    } else {
      Stop(outputs.status());
    }
  }

  // The first failure ends the others.
  void Stop(const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return;
    status_ = status;
    cancelled_ = true;
    if (!comms_.empty()) comms_[0]->Abort(status);
  }

  absl::StatusOr<ExactResults> Results() {
    SHARDCALL_RETURN_IF_ERROR(status_);
    ExactResults results;
    for (const Tensor& t : outputs_[0]) results.exact.push_back(observers_[0]->IsExact(t));
    results.outputs = std::move(outputs_[0]);
    return results;
  }

 private:
  const std::shared_ptr<const DeviceProgram> program_;
  std::vector<Tensor> inputs_;
  const ExactOptions options_;
  std::optional<BaseMesh> mesh_;
  std::optional<InProcessWorld> world_;
  std::vector<std::unique_ptr<Communicator>> comms_;
  std::vector<std::unique_ptr<ExactnessObserver>> observers_;
  std::vector<std::unique_ptr<TellingCommunicator>> telling_;
  std::vector<std::vector<Tensor>> outputs_;
  std::mutex mutex_;
  absl::Status status_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace

absl::StatusOr<ExactResults> RunExactly(std::shared_ptr<const DeviceProgram> program,
                                        std::shared_ptr<const OrderOfSums> sums,
                                        std::vector<Tensor> inputs, const ExactOptions& options,
                                        int num_devices, const BaseMesh* mesh) {
  const auto run = std::make_shared<Run>(std::move(program), std::move(sums), std::move(inputs),
                                         options, num_devices, mesh);
  if (!run->watched()) {
    run->RunDevice(0);
  } else {
    SHARDCALL_RETURN_IF_ERROR(RunWatched(
        run->program().name, num_devices, options.deadline,
        [run](int d, RunningSteps* running) { run->RunDevice(d, running); },
        [&](const absl::Status& status) { run->Stop(status); }));
  }
  return run->Results();
}

}  // namespace internal
}  // namespace shardcall
