// SPDX-License-Identifier: Apache-2.0
// How calls of NCCL are awaited, and how those that do not end are reported. NCCL itself does not
// distinguish a rank that has ended from one that is late.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/collectives/nccl/nccl_communicator.h"
#include "shardcall/collectives/report.h"
#include "shardcall/collectives/wait_word.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kLooksBeforeSleep = 2000;
constexpr auto kBetweenQuestions = std::chrono::milliseconds(5);
constexpr auto kSleep = std::chrono::microseconds(20);

}  // namespace

absl::Status NcclCommunicator::Await(Call& call,
                                     absl::FunctionRef<absl::StatusOr<bool>()> is_done) {
  side_->BeginWait();
  const absl::Status status = Look(call, is_done);
  // A failure is final, and the launcher's SIGTERM must not come before its report.
  if (status.ok()) side_->EndWait();
  return status;
}

absl::Status NcclCommunicator::Look(Call& call, absl::FunctionRef<absl::StatusOr<bool>()> is_done) {
  const MonotonicTime end = DeadlineAfter(deadline_);
  MonotonicTime next_question = std::chrono::steady_clock::now() + kBetweenQuestions;
  for (int64_t look = 0;; ++look) {
    SHARDCALL_ASSIGN_OR_RETURN(const bool done, is_done());
    if (done) return absl::OkStatus();
    if (failed_.load(std::memory_order_acquire)) return failure();
    // Checks the clock and does not count polls: on a busy machine a poll may take a while, and a
    // launcher that ends a job gives its ranks only a second.
    const MonotonicTime now = std::chrono::steady_clock::now();
    if (now >= end) return Explain(call);
    if (now >= next_question) {
      next_question = now + kBetweenQuestions;
      // A rank that has failed sends no data any more; it reports over the side channel.
      SHARDCALL_RETURN_IF_ERROR(side_->Told());
      SHARDCALL_RETURN_IF_ERROR(FindLost(call));
    }
    if (look < kLooksBeforeSleep) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
  }
}

absl::Status NcclCommunicator::Enqueued(Call& call, ncclResult_t result, absl::string_view what) {
  if (result != ncclSuccess && result != ncclInProgress) return NcclStatus(result, what);
  return Await(call, [&]() -> absl::StatusOr<bool> {
    ncclResult_t state = ncclSuccess;
    SHARDCALL_RETURN_IF_ERROR(
        NcclStatus(ncclCommGetAsyncError(call.clique->comm, &state), "ncclCommGetAsyncError"));
    if (state == ncclInProgress) return false;
    SHARDCALL_RETURN_IF_ERROR(NcclStatus(state, what));
    return true;
  });
}

absl::Status NcclCommunicator::Finish(Call& call) {
  SHARDCALL_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(event_, stream_), "cudaEventRecord"));
  return Await(call, [&]() -> absl::StatusOr<bool> {
    const cudaError_t code = cudaEventQuery(event_);
    if (code == cudaSuccess) return true;
    if (code != cudaErrorNotReady) return CudaStatus(code, SignatureText(call.signature));
    ncclResult_t state = ncclSuccess;
    SHARDCALL_RETURN_IF_ERROR(
        NcclStatus(ncclCommGetAsyncError(call.clique->comm, &state), "ncclCommGetAsyncError"));
    if (state != ncclSuccess && state != ncclInProgress) {
      return NcclStatus(state, SignatureText(call.signature));
    }
    return false;
  });
}

absl::Status NcclCommunicator::Compare(const Call& call, absl::Span<const int> group) {
  std::string mine = absl::StrCat(SignatureText(call.signature), TagText(call.name));
  mine.resize(std::min(mine.size(), SideChannel::kMaxBytes));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                             side_->Gather(group, mine, mine));
  std::vector<MemberText> members;
  bool agreed = true;
  for (size_t i = 0; i < texts.size(); ++i) {
    members.push_back({group[i], texts[i]});
    agreed = agreed && texts[i] == texts.front();
  }
  if (agreed) return absl::OkStatus();
  return MismatchStatus(members, recorder_.History(absl::StrCat("  rank ", rank(), " ")));
}

absl::Status NcclCommunicator::Explain(const Call& call) {
  // In a permute each rank has different partners, so there is no group to compare in.
  const bool whole = call.ranks == call.clique->ranks;
  if (whole) SHARDCALL_RETURN_IF_ERROR(Compare(call, call.ranks));
  LateReport report;
  report.signature = call.signature;
  report.number = call.number;
  report.name = call.name;
  report.waiting = {rank()};
  for (int other : call.ranks) {
    if (other == rank()) continue;
    report.absent.push_back(other);
    report.last.push_back(whole ? "has called, but its data does not move"
                                : "is absent, or its data does not move");
  }
  report.waited = deadline_;
  report.programs = program_note_;
  report.history = recorder_.History(absl::StrCat("  rank ", rank(), " "));
  return LateStatus(report);
}

absl::Status NcclCommunicator::FindLost(const Call& call) {
  const Departures departures = side_->FindDeparted(call.ranks);
  if (!departures.any()) return absl::OkStatus();
  std::vector<std::string> ended;
  for (int r : departures.ended) ended.push_back(absl::StrCat("rank ", r, " has ended"));
  std::vector<int> others;
  for (int r : call.ranks) {
    if (r != rank()) others.push_back(r);
  }
  return ToStatus({.code = "E304",
                   .message = absl::StrCat(
                       departures.job_ends ? "the launcher ends this job (SIGTERM) while " : "",
                       SignatureText(call.signature), " #", call.number, TagText(call.name),
                       " waits", ended.empty() ? " for " : ": ",
                       ended.empty() ? RanksText(others) : absl::StrJoin(ended, "; ")),
                   .fix = "See what the process that ended printed, and how it ended",
                   .excerpt = recorder_.History(absl::StrCat("  rank ", rank(), " "))},
                  absl::StatusCode::kUnavailable);
}

}  // namespace internal
}  // namespace shardcall
