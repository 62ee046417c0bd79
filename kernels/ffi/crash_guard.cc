// SPDX-License-Identifier: Apache-2.0
#include "kernels/ffi/crash_guard.h"

#include <setjmp.h>
#include <signal.h>

#include <iterator>
#include <mutex>

namespace shardcall {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};

thread_local sigjmp_buf* landing = nullptr;

extern "C" void ShardcallOnSignal(int signal_number) {
  if (landing != nullptr) siglongjmp(*landing, 1);
  signal(signal_number, SIG_DFL);  // another thread's own crash
  raise(signal_number);
}

class Handlers {
 public:
  explicit Handlers(sigjmp_buf* to) {
    struct sigaction action = {};
    action.sa_handler = ShardcallOnSignal;
    sigemptyset(&action.sa_mask);
    for (size_t k = 0; k < std::size(kSignals); ++k) sigaction(kSignals[k], &action, &before_[k]);
    landing = to;
  }
  Handlers(const Handlers&) = delete;
  Handlers& operator=(const Handlers&) = delete;
  ~Handlers() {
    landing = nullptr;
    for (size_t k = 0; k < std::size(kSignals); ++k) sigaction(kSignals[k], &before_[k], nullptr);
  }

 private:
  struct sigaction before_[std::size(kSignals)];
};

}  // namespace

bool CallCatchingSignals(absl::FunctionRef<void()> body) {
  static std::mutex* const one = new std::mutex;
  const std::lock_guard<std::mutex> lock(*one);
  sigjmp_buf here;
  const Handlers handlers(&here);
  if (sigsetjmp(here, /*savemask=*/1) != 0) return false;
  body();
  return true;
}

}  // namespace shardcall
