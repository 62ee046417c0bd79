// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/timed_call.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/of_this_process.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/steady_time.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {
namespace {

// A child of fork() has none of them.
struct LeftBehind {
  std::atomic<int> threads{0};
};
std::atomic<int>& LeftBehindHere() { return OfThisProcess<LeftBehind>()->threads; }

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
  call->body = nullptr;  // destroys its captures while the caller may still wait for that
  const std::lock_guard<std::mutex> lock(call->mutex);
  call->returned = true;
  call->thrown = std::move(thrown);
  if (call->left) --LeftBehindHere();
  call->ended.notify_all();
}

}  // namespace

absl::Status CallWithin(absl::Duration deadline, std::function<void()> body,
                        absl::FunctionRef<absl::Status()> late) {
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
  const absl::Duration end = SteadyNow() + std::min(deadline, kLongestTimedWait);
  while (!call->returned) {
    const absl::Duration left = end - SteadyNow();
    // A limit of the caller is left to `late`, which says more.
    lock.unlock();
    const absl::Status stop = CheckStop();
    lock.lock();
    const bool asked = absl::IsCancelled(stop);
    if (asked || left <= absl::ZeroDuration()) {
      if (call->returned) break;
      call->left = true;
      ++LeftBehindHere();
      thread.detach();
      lock.unlock();
      return asked ? stop : late();
    }
    call->ended.wait_for(lock, absl::ToChronoNanoseconds(UntilCheckStop(left)),
                         [&] { return call->returned; });
  }
  lock.unlock();
  thread.join();
  if (call->thrown != nullptr) std::rethrow_exception(call->thrown);
  return absl::OkStatus();
}

absl::Status CallWithin(absl::Duration deadline, const std::string& what,
                        std::function<void()> body) {
  return CallWithin(deadline, std::move(body), [&] {
    return ToStatus(
        {.code = "E319",
         .message = absl::StrCat(what, " has not returned within ", absl::FormatDuration(deadline)),
         .fix = "Correct the library, or give it longer: --deadline of run, verify "
                "and check-rule"},
        absl::StatusCode::kDeadlineExceeded);
  });
}

int CallsLeftBehind() { return LeftBehindHere(); }

}  // namespace shardcall
