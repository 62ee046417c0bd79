// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/nccl/nccl_communicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

static_assert(sizeof(ncclUniqueId) <= SideChannel::kMaxBytes);

}  // namespace

NcclCommunicator::NcclCommunicator(std::unique_ptr<SideChannel> side, int device,
                                   absl::Duration deadline, bool check_every_call,
                                   bool register_buffers)
    : side_(std::move(side)),
      device_(device),
      deadline_(deadline),
      check_every_call_(check_every_call),
      register_buffers_(register_buffers) {}

absl::StatusOr<std::unique_ptr<Communicator>> NcclCommunicator::Create(
    std::unique_ptr<SideChannel> side, int device, absl::Duration deadline, bool check_every_call,
    bool register_buffers) {
  auto made = std::unique_ptr<NcclCommunicator>(
      new NcclCommunicator(std::move(side), device, deadline, check_every_call, register_buffers));
  // The other ranks wait for this one, so they are notified if it cannot start.
  const absl::Status started = made->Start();
  if (started.ok()) return made;
  made->Fail(started);
  return started;
}

absl::Status NcclCommunicator::Start() {
  SHARDCALL_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device_), "cudaSetDevice"));
  SHARDCALL_RETURN_IF_ERROR(
      CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"));
  SHARDCALL_RETURN_IF_ERROR(
      CudaStatus(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"));
  std::vector<int> all(size());
  std::iota(all.begin(), all.end(), 0);
  SHARDCALL_ASSIGN_OR_RETURN(world_, FindClique(all));
  return absl::OkStatus();
}

NcclCommunicator::~NcclCommunicator() {
  cudaSetDevice(device_);
  for (auto& [ranks, clique] : cliques_) {
    for (Which which : {kIn, kOut}) Deregister(*clique, which);
  }
  // An orderly destruction would wait for all members without a deadline. No work is in progress
  // here, so aborting loses nothing.
  AbortAll();
  if (event_ != nullptr) cudaEventDestroy(event_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

absl::StatusOr<NcclCommunicator::Clique*> NcclCommunicator::FindClique(Group group) {
  std::vector<int> ranks(group.begin(), group.end());
  const auto it = cliques_.find(ranks);
  if (it != cliques_.end()) return it->second.get();
  SHARDCALL_RETURN_IF_ERROR(CheckGroup(group, rank(), size()));
  SHARDCALL_RETURN_IF_ERROR(failure());
  absl::StatusOr<Clique*> made = MakeClique(group);
  if (!made.ok()) Fail(made.status());
  return made;
}

absl::StatusOr<NcclCommunicator::Clique*> NcclCommunicator::MakeClique(Group group) {
  SHARDCALL_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device_), "cudaSetDevice"));
  auto clique = std::make_unique<Clique>();
  clique->ranks.assign(group.begin(), group.end());
  clique->me = static_cast<int>(std::find(group.begin(), group.end(), rank()) - group.begin());
  ncclUniqueId id;
  std::string mine;
  if (clique->me == 0) {
    SHARDCALL_RETURN_IF_ERROR(NcclStatus(ncclGetUniqueId(&id), "ncclGetUniqueId"));
    mine.assign(id.internal, sizeof(id.internal));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<std::string> ids,
                             side_->Gather(group, mine, "id of a group"));
  if (ids.front().size() != sizeof(id.internal)) {
    return ToStatus({.code = "E309",
                     .message = "the id of a group is none",
                     .fix = "Exchange the id that the first member of the group made"},
                    absl::StatusCode::kInternal);
  }
  std::memcpy(id.internal, ids.front().data(), sizeof(id.internal));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  Clique* const kept = clique.get();
  const ncclResult_t result =
      ncclCommInitRankConfig(&kept->comm, kept->count(), id, kept->me, &config);
  std::vector<int> key = kept->ranks;
  cliques_.emplace(std::move(key), std::move(clique));
  Call call;
  call.name = "ncclCommInitRankConfig";
  call.clique = kept;
  call.ranks = kept->ranks;
  SHARDCALL_RETURN_IF_ERROR(Enqueued(call, result, "ncclCommInitRankConfig"));
  return kept;
}

absl::Status NcclCommunicator::PrepareGroups(absl::Span<const std::vector<int>> groups) {
  SHARDCALL_RETURN_IF_ERROR(failure());
  std::vector<int> all;
  int mine = -1;
  for (size_t g = 0; g < groups.size(); ++g) {
    all.insert(all.end(), groups[g].begin(), groups[g].end());
    const bool holds = std::find(groups[g].begin(), groups[g].end(), rank()) != groups[g].end();
    if (holds) mine = static_cast<int>(g);
  }
  std::sort(all.begin(), all.end());
  if (!all.empty() && (all.front() < 0 || all.back() >= size() ||
                       std::adjacent_find(all.begin(), all.end()) != all.end())) {
    return ToStatus({.code = "E306",
                     .message = "groups to be prepared share a rank, or name one "
                                "that is not there",
                     .fix = "Give groups that share no rank"});
  }
  // These conditions are the same on every rank, so either all ranks take part or none.
  if (!prepared_.emplace(groups.begin(), groups.end()).second || world_ == nullptr) {
    return absl::OkStatus();
  }
  SHARDCALL_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device_), "cudaSetDevice"));
  // A group has its communicator either on all of its ranks or on none.
  if (mine >= 0 && cliques_.count(groups[mine]) > 0) mine = -1;
  auto clique = std::make_unique<Clique>();
  int key = 0;
  if (mine >= 0) {
    clique->ranks = groups[mine];
    clique->me = key = static_cast<int>(
        std::find(groups[mine].begin(), groups[mine].end(), rank()) - groups[mine].begin());
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.splitShare = 1;
  Call call;
  call.name = "ncclCommSplit";
  call.clique = world_;
  call.ranks = world_->ranks;
  const ncclResult_t result = ncclCommSplit(world_->comm, mine >= 0 ? mine : NCCL_SPLIT_NOCOLOR,
                                            key, &clique->comm, &config);
  absl::Status status = Enqueued(call, result, "ncclCommSplit");
  if (status.ok() && mine >= 0) {
    call.clique = clique.get();
    call.ranks = clique->ranks;
    status = Enqueued(call, ncclSuccess, "ncclCommSplit");
  }
  if (mine >= 0) {
    std::vector<int> ranks = clique->ranks;
    cliques_.emplace(std::move(ranks), std::move(clique));
  }
  if (status.ok()) return status;
  Fail(status);
  return failure();
}

void NcclCommunicator::Deregister(Clique& clique, Which which) {
  if (clique.registered[which] == nullptr || clique.comm == nullptr) return;
  ncclCommDeregister(clique.comm, clique.handles[which]);
  clique.registered[which] = nullptr;
}

absl::StatusOr<char*> NcclCommunicator::Scratch(Call& call, Which which, int64_t bytes) {
  DeviceScratch& scratch = scratch_[which];
  if (scratch.data() == nullptr || scratch.bytes() < bytes) {
    for (auto& [ranks, clique] : cliques_) Deregister(*clique, which);
    SHARDCALL_RETURN_IF_ERROR(scratch.Grow(bytes));
  }
  Clique& clique = *call.clique;
  if (register_buffers_ && clique.registered[which] != scratch.data()) {
    // If NCCL does not register the memory, it copies through its own buffers.
    const ncclResult_t result =
        ncclCommRegister(clique.comm, scratch.data(), scratch.bytes(), &clique.handles[which]);
    if (result == ncclSuccess) clique.registered[which] = scratch.data();
  }
  return scratch.data();
}

absl::Status NcclCommunicator::Run(Group group, const CallSignature& signature, CollectiveTag tag,
                                   Body body) {
  Call call;
  SHARDCALL_ASSIGN_OR_RETURN(call.clique, FindClique(group));
  SHARDCALL_RETURN_IF_ERROR(CheckSignature(signature, call.clique->count()));
  call.signature = signature;
  call.name = tag.name;
  call.ranks = call.clique->ranks;
  return Recorded(call, body);
}

absl::Status NcclCommunicator::RunPairs(std::vector<int> ranks, const CallSignature& signature,
                                        CollectiveTag tag, Body body) {
  Call call;
  call.clique = world_;
  call.signature = signature;
  call.name = tag.name;
  call.ranks = std::move(ranks);
  return Recorded(call, body);
}

absl::Status NcclCommunicator::Recorded(Call& call, Body body) {
  SHARDCALL_RETURN_IF_ERROR(failure());
  SHARDCALL_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(device_), "cudaSetDevice"));
  call.number = recorder_.Begin(call.signature, call.ranks, call.name);
  absl::Status status;
  // A permute over pairs has no group in which all ranks could compare.
  if (check_every_call_ && call.ranks.size() > 1 && call.ranks == call.clique->ranks) {
    status = Compare(call, call.ranks);
  }
  if (status.ok()) status = body(call);
  recorder_.End(status.ok());
  if (!status.ok() && status.code() != absl::StatusCode::kInvalidArgument) {
    Fail(status);
    return failure();
  }
  return status;
}

absl::Status NcclCommunicator::failure() const {
  if (!failed_.load(std::memory_order_acquire)) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(failure_mutex_);
  return failure_;
}

void NcclCommunicator::AbortAll() {
  const auto abort = [](Clique& clique) {
    if (clique.comm != nullptr) ncclCommAbort(clique.comm);
    clique.comm = nullptr;
    for (Which which : {kIn, kOut}) clique.registered[which] = nullptr;
  };
  for (auto& [ranks, clique] : cliques_) {
    if (clique.get() != world_) abort(*clique);
  }
  if (world_ != nullptr) abort(*world_);
}

// Called on the thread that makes the calls.
void NcclCommunicator::Fail(const absl::Status& status) {
  {
    std::lock_guard<std::mutex> lock(failure_mutex_);
    if (failure_.ok()) failure_ = status;
    failed_.store(true, std::memory_order_release);
  }
  // This ends kernels that wait for peers, so that nothing waits forever.
  AbortAll();
  side_->Abort(failure());
}

void NcclCommunicator::Abort(const absl::Status& reason) {
  {
    std::lock_guard<std::mutex> lock(failure_mutex_);
    if (!failure_.ok()) return;
    failure_ = AbortedStatus(reason);
  }
  // A call in progress detects this, and aborts NCCL's communicators.
  failed_.store(true, std::memory_order_release);
  side_->Abort(failure());
}

}  // namespace internal
}  // namespace shardcall
