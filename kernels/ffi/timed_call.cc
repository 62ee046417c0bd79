// SPDX-License-Identifier: Apache-2.0
#include "kernels/ffi/timed_call.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

std::atomic<int> left_behind{0};

struct Call {
  std::function<void()> body;
  std::mutex mutex;
  std::condition_variable ended;
  bool returned = false, left = false;
  std::exception_ptr thrown;
};

void Run(const std::shared_ptr<Call>& call) {
  std::exception_ptr thrown;
  try {
    call->body();
  } catch (...) {
    thrown = std::current_exception();
  }
  const std::lock_guard<std::mutex> lock(call->mutex);
  call->returned = true;
  call->thrown = std::move(thrown);
  if (call->left) --left_behind;
  call->ended.notify_all();
}

}  // namespace

absl::Status CallWithin(absl::Duration deadline, const std::string& what,
                        std::function<void()> body) {
  const auto call = std::make_shared<Call>();
  call->body = std::move(body);
  std::thread thread;
  try {
    thread = std::thread(Run, call);
  } catch (const std::system_error&) {
    call->body();
    return absl::OkStatus();
  }
  std::unique_lock<std::mutex> lock(call->mutex);
  const auto returned = [&] { return call->returned; };
  if (deadline == absl::InfiniteDuration()) {
    call->ended.wait(lock, returned);
  } else if (!call->ended.wait_for(lock, absl::ToChronoNanoseconds(deadline), returned)) {
    call->left = true;
    ++left_behind;
    thread.detach();
    return ToStatus({.code = "E319",
                     .message = absl::StrCat(what, " has not returned within ",
                                             absl::FormatDuration(deadline)),
                     .fix = "Correct the library, or give it longer: --deadline of run, verify "
                            "and check-rule"},
                    absl::StatusCode::kDeadlineExceeded);
  }
  lock.unlock();
  thread.join();
  if (call->thrown != nullptr) std::rethrow_exception(call->thrown);
  return absl::OkStatus();
}

int CallsLeftBehind() { return left_behind; }

}  // namespace shardcall
