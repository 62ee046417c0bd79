// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/guard/crash_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>
#include <memory>
#include <mutex>

#include "shardcall/kernels/ffi/guard/signal_names.h"
#include "shardcall/sharding/base/process_lock.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr size_t kStackBytes = size_t{1} << 16;

thread_local sigjmp_buf* landing = nullptr;
// Signal handlers are per process: they are installed while any thread is guarded, which may be
// forever.
int guarded = 0;
struct sigaction before[std::size(kCrashSignals)];

// Passes a crash of another thread on to the previous handler.
void PassOn(int signal_number, siginfo_t* info, void* context) {
  for (size_t k = 0; k < std::size(kCrashSignals); ++k) {
    if (kCrashSignals[k] != signal_number) continue;
    const struct sigaction& old = before[k];
    if ((old.sa_flags & SA_SIGINFO) != 0) return old.sa_sigaction(signal_number, info, context);
    if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
      return old.sa_handler(signal_number);
    }
  }
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void OnSignal(int signal_number, siginfo_t* info, void* context) {
  if (landing != nullptr) siglongjmp(*landing, 1);
  PassOn(signal_number, info, context);
}

// Installs signal handlers, with a stack of their own, while it lives.
class Handlers {
 public:
  Handlers() : stack_(new char[kStackBytes]) {
    stack_t own = {};
    own.ss_sp = stack_.get();
    own.ss_size = kStackBytes;
    sigaltstack(&own, &old_stack_);
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    if (guarded++ > 0) return;
    struct sigaction action = {};
    action.sa_sigaction = OnSignal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (size_t k = 0; k < std::size(kCrashSignals); ++k) {
      sigaction(kCrashSignals[k], &action, &before[k]);
    }
  }
  Handlers(const Handlers&) = delete;
  Handlers& operator=(const Handlers&) = delete;
  ~Handlers() {
    landing = nullptr;
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    for (size_t k = 0; guarded == 1 && k < std::size(kCrashSignals); ++k) {
      sigaction(kCrashSignals[k], &before[k], nullptr);
    }
    --guarded;
    sigaltstack(&old_stack_, nullptr);
  }

 private:
  const std::unique_ptr<char[]> stack_;
  stack_t old_stack_ = {};
};

size_t RoundedUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

}  // namespace

bool CallCatchingSignals(absl::FunctionRef<void()> body) {
  if (landing != nullptr) {
    body();
    return true;
  }
  sigjmp_buf here;
  const Handlers handlers;
  if (sigsetjmp(here, /*savemask=*/1) != 0) return false;
  landing = &here;
  body();
  return true;
}

FencedMemory::FencedMemory(size_t size) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size = RoundedUp(size, 16);
  mapped_ = RoundedUp(size, page) + page;
  void* const pages =
      mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return;
  pages_ = pages;
  char* const fence = static_cast<char*>(pages) + mapped_ - page;
  if (mprotect(fence, page, PROT_NONE) == 0) data_ = fence - size;
}

FencedMemory::~FencedMemory() {
  if (pages_ != nullptr) munmap(pages_, mapped_);
}

}  // namespace internal
}  // namespace shardcall
