// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/stop.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/steady_time.h"

namespace shardcall {
namespace {

thread_local StopScope* innermost = nullptr;

}  // namespace

StopScope::StopScope(StopOptions options)
    : options_(std::move(options)),
      end_(SteadyNow() + options_.limit),
      outer_(std::exchange(innermost, this)) {}

StopScope::~StopScope() { innermost = outer_; }

StopScope* StopScope::Innermost() { return innermost; }

absl::Status StopScope::Check() {
  // A request may still come after the limit, and is more.
  if (!absl::IsCancelled(stopped_)) stopped_ = Find();
  return stopped_;
}

absl::Status StopScope::Find() {
  const absl::Duration now = SteadyNow();
  bool asked = options_.source != nullptr && options_.source->requested();
  if (!asked && options_.poll != nullptr && now - polled_ >= kStopPollEvery) {
    asked = options_.poll();
    polled_ = now;
  }
  if (asked) {
    return ToStatus({.code = "E346",
                     .message = "stopped, as was asked for",
                     .fix = "Start it again to have its result"},
                    absl::StatusCode::kCancelled);
  }
  if (now >= end_) {
    return ToStatus({.code = "E346",
                     .message = absl::StrCat("not done within the limit of ",
                                             absl::FormatDuration(options_.limit)),
                     .fix = "Give it longer (--deadline), or correct the program if it never ends"},
                    absl::StatusCode::kDeadlineExceeded);
  }
  return outer_ == nullptr ? absl::OkStatus() : outer_->Check();
}

}  // namespace shardcall
