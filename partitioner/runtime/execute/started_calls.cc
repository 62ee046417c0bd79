// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/execute/started_calls.h"

#include <algorithm>
#include <new>
#include <utility>

#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

struct StartedCalls::Open {
  int64_t number = 0;
  absl::StatusOr<Results> results = Results();
  std::unique_ptr<Communicator::Pending> pending;  // null: the call was made immediately
};

namespace {

// Runs on a thread on which no caller catches exceptions.
absl::StatusOr<StartedCalls::Results> Make(const StartedCalls::Call& call, Communicator* comm) {
  try {
    return call(comm);
  } catch (const std::bad_alloc&) {
    return ToStatus({.code = "E314",
                     .message = "out of memory in a collective",
                     .fix = "Run a smaller program, or over more devices"},
                    absl::StatusCode::kResourceExhausted);
  }
}

}  // namespace

StartedCalls::StartedCalls(Communicator* inner, bool meanwhile) : inner_(inner) {
  if (inner != nullptr && meanwhile) async_.emplace(*inner);
}

StartedCalls::~StartedCalls() = default;

int64_t StartedCalls::Start(Call call) {
  open_.push_back(std::make_unique<Open>());
  Open& open = *open_.back();
  open.number = ++last_;
  if (!async_) {
    open.results = Make(call, inner_);
    return open.number;
  }
  open.pending = async_->Start([&open, call = std::move(call)](Communicator& comm) {
    open.results = Make(call, &comm);
    return open.results.status();
  });
  return open.number;
}

absl::StatusOr<StartedCalls::Results> StartedCalls::Finish(int64_t number) {
  const auto it = std::find_if(open_.begin(), open_.end(),
                               [&](const auto& open) { return open->number == number; });
  SHARDCALL_CHECK(it != open_.end());
  const std::unique_ptr<Open> open = std::move(*it);
  open_.erase(it);
  if (open->pending != nullptr) SHARDCALL_RETURN_IF_ERROR(open->pending->Done());
  return std::move(open->results);
}

}  // namespace internal
}  // namespace shardcall
