// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/in_process/in_process_group.h"

#include <sched.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/collectives/report.h"

namespace shardcall {
inline namespace internal {

namespace {

const int num_cores = std::max(1u, std::thread::hardware_concurrency());

// A rendezvous ends when each device has had the core. With many devices this takes so long that
// it is better to sleep.
int YieldsFor(size_t members) {
  return members > 1024 ? 0 : std::clamp(static_cast<int>(6400 / members), 8, 100);
}

}  // namespace

InProcessGroup::InProcessGroup(std::vector<int> sorted_ranks, absl::Span<FlightRecorder> recorders)
    : ranks_(std::move(sorted_ranks)), recorders_(recorders), yields_(YieldsFor(ranks_.size())) {
  for (Call& call : calls_) call.slots.resize(ranks_.size());
}

int InProcessGroup::IndexOf(int rank) const {
  const auto it = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  return it == ranks_.end() || *it != rank ? -1 : static_cast<int>(it - ranks_.begin());
}

const InProcessGroup::Order* InProcessGroup::InternOrder(absl::Span<const int> ranks) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& order : orders_) {
    if (absl::MakeConstSpan(order->ranks) == ranks) return order.get();
  }
  auto order = std::make_unique<Order>();
  order->ranks.assign(ranks.begin(), ranks.end());
  for (int rank : ranks) order->slots.push_back(IndexOf(rank));
  orders_.push_back(std::move(order));
  return orders_.back().get();
}

absl::Status InProcessGroup::Run(int index, const Order* order, const CallSignature& signature,
                                 const MemberBuffers& buffers, absl::string_view name,
                                 int64_t number, absl::Duration patience) {
  const MonotonicTime deadline = DeadlineAfter(patience);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!failure_.ok()) return failure_;
  Call& call = calls_[round_ % 2];
  call.slots[index] = Slot{true, order, signature, buffers, name};
  if (++call.arrived == ranks_.size()) {
    Call& next = calls_[++round_ % 2];
    next.arrived = 0;
    for (Slot& slot : next.slots) slot.here = false;
    next.state.Store(kGathering);
    absl::Status agreed = CheckAgreement(call);
    if (!agreed.ok()) {
      failure_ = agreed;
      call.state.StoreAndWakeAll(kDead);
      return agreed;
    }
    std::vector<const MemberBuffers*> members;
    members.reserve(ranks_.size());
    for (int slot : order->slots) members.push_back(&call.slots[slot].buffers);
    lock.unlock();
    call.work.Plan(signature, std::move(members));
    if (call.work.is_small() || call.work.num_items() <= 1) {
      for (int64_t i = 0; i < call.work.num_items(); ++i) call.work.RunItem(i);
      call.state.StoreAndWakeAll(kDone);
      return absl::OkStatus();
    }
    Open(call);
    call.state.StoreAndWakeAll(kRunning);
  } else {
    lock.unlock();
    if (call.state.AwaitChange(kGathering, deadline, yields_) == kGathering) {
      lock.lock();
      if (call.arrived < ranks_.size() && call.state.Load() == kGathering) {
        FailLocked(Late(call, signature, name, number, patience));
      }
      lock.unlock();
      // All members may just have arrived: then the work will soon be done.
      call.state.AwaitChange(kGathering, kNever);
    }
    if (call.state.Load() == kDead) {
      lock.lock();
      return failure_;
    }
  }
  Help(call);
  call.state.AwaitChange(kRunning, kNever, yields_);
  return absl::OkStatus();
}

void InProcessGroup::Open(Call& call) const {
  const int64_t items = call.work.num_items();
  for (int s = 0; s < kSegments; ++s) {
    call.segments[s].next.store(items * s / kSegments, std::memory_order_relaxed);
    call.segments[s].end = items * (s + 1) / kSegments;
  }
  call.items_done.store(0, std::memory_order_relaxed);
}

void InProcessGroup::Help(Call& call) const {
  if (call.state.Load() != kRunning) return;
  const int first = std::max(0, sched_getcpu()) % num_cores * kSegments / num_cores;
  for (int s = 0; s < kSegments; ++s) {
    Segment& segment = call.segments[(first + s) % kSegments];
    int64_t done = 0;
    while (segment.next.load(std::memory_order_relaxed) < segment.end) {
      const int64_t item = segment.next.fetch_add(1, std::memory_order_relaxed);
      if (item >= segment.end) break;
      call.work.RunItem(item);
      ++done;
    }
    if (done == 0) continue;
    if (call.items_done.fetch_add(done, std::memory_order_acq_rel) + done ==
        call.work.num_items()) {
      call.state.StoreAndWakeAll(kDone);
      return;
    }
  }
}

void InProcessGroup::Fail(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  FailLocked(status);
}

void InProcessGroup::FailLocked(const absl::Status& status) {
  if (!failure_.ok()) return;
  failure_ = status;
  calls_[round_ % 2].state.StoreAndWakeAll(kDead);
}

absl::Status InProcessGroup::CheckAgreement(const Call& call) const {
  const Slot& first = call.slots.front();
  const bool agreed = std::all_of(call.slots.begin(), call.slots.end(), [&](const Slot& slot) {
    return slot.signature == first.signature && slot.order == first.order;
  });
  if (!agreed) {
    const bool same_order =
        std::all_of(call.slots.begin(), call.slots.end(),
                    [&](const Slot& slot) { return slot.order == first.order; });
    std::vector<MemberText> texts;
    for (size_t i = 0; i < call.slots.size(); ++i) {
      const Slot& slot = call.slots[i];
      std::string text = absl::StrCat(SignatureText(slot.signature), TagText(slot.name));
      if (!same_order) {
        absl::StrAppend(&text, " in the order ", absl::StrJoin(slot.order->ranks, ","));
      }
      texts.push_back({ranks_[i], std::move(text)});
    }
    return MismatchStatus(texts);
  }
  if (first.signature.op != CollectiveOp::kAllToAllV) return absl::OkStatus();
  const size_t n = call.slots.size();
  for (size_t i = 0; i < n; ++i) {
    const Slot& from = call.slots[first.order->slots[i]];
    for (size_t j = 0; j < n; ++j) {
      const Slot& to = call.slots[first.order->slots[j]];
      const int64_t sent = from.buffers.send_sizes[j];
      const int64_t awaited = to.buffers.recv_sizes[i];
      if (sent == awaited) continue;
      return MismatchStatus(
          {{first.order->ranks[i],
            absl::StrCat(SignatureText(from.signature), TagText(from.name), " with ", sent,
                         " bytes for rank ", first.order->ranks[j])},
           {first.order->ranks[j],
            absl::StrCat(SignatureText(to.signature), TagText(to.name), " with ", awaited,
                         " bytes from rank ", first.order->ranks[i])}});
    }
  }
  return absl::OkStatus();
}

absl::Status InProcessGroup::Late(const Call& call, const CallSignature& signature,
                                  absl::string_view name, int64_t number,
                                  absl::Duration patience) const {
  LateReport report;
  report.signature = signature;
  report.number = number;
  report.name = name;
  report.waited = patience;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (call.slots[i].here) {
      report.waiting.push_back(ranks_[i]);
      continue;
    }
    report.absent.push_back(ranks_[i]);
    report.last.push_back(recorders_[ranks_[i]].Summary());
  }
  const int shown = report.absent.front();
  report.history = recorders_[shown].History(absl::StrCat("  rank ", shown, " "));
  return LateStatus(report);
}

}  // namespace internal
}  // namespace shardcall
