// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/trial_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <new>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/guarded_call.h"
#include "shardcall/kernels/ffi/guard/signal_names.h"
#include "shardcall/sharding/base/steady_time.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {
namespace {

constexpr int kCrashed = 99;  // exit status of a child that has reported its crash
constexpr int64_t kMillisecondsToCheckStop = 50;
constexpr size_t kStackBytes = size_t{1} << 16;

// The crash report of a child, in shared memory.
struct LastWords {
  int signal_number = 0;
  bool fence = false, writes = false;
  char beside[256] = {};
};
LastWords* mine = nullptr;

void OnCrash(int signal_number, siginfo_t* info, void* context) {
  mine->signal_number = signal_number;
  if (signal_number == SIGSEGV || signal_number == SIGBUS) {
    mine->fence = DescribeFence(info->si_addr, mine->beside, sizeof(mine->beside));
#if defined(__x86_64__)
    mine->writes = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#endif
  }
  (void)context;
  _exit(kCrashed);
}

void CatchCrashes() {
  stack_t stack = {};
  stack.ss_sp = new char[kStackBytes];  // never freed
  stack.ss_size = kStackBytes;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = OnCrash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int signal_number : kCrashSignals) sigaction(signal_number, &action, nullptr);
}

ForkHooks fork_hooks;

bool WriteAll(int file, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = write(file, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

void SetForkHooks(const ForkHooks& hooks) { fork_hooks = hooks; }

TrialProcess::~TrialProcess() {
  if (child_) {
    std::fflush(nullptr);
    _exit(0);
  }
  if (pid_ > 0) Ended(Answer::End::kReturned);
  if (last_words_ != nullptr) munmap(last_words_, sizeof(LastWords));
}

bool TrialProcess::Start() {
  if (!forks_) return false;
  if (last_words_ == nullptr) {
    void* const memory =
        mmap(nullptr, sizeof(LastWords), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    last_words_ = memory;
  }
  mine = new (last_words_) LastWords;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  std::fflush(nullptr);  // otherwise both processes write what is buffered
  const pid_t parent = getpid();
  if (fork_hooks.before != nullptr) fork_hooks.before();
  pid_ = fork();
  const auto after = pid_ == 0 ? fork_hooks.in_child : fork_hooks.in_parent;
  if (after != nullptr) after();
  if (pid_ < 0) {
    close(ends[0]);
    close(ends[1]);
    return false;
  }
  if (pid_ > 0) {
    close(ends[1]);
    pipe_ = ends[0];
    return true;
  }
  child_ = true;
  close(ends[0]);
  pipe_ = ends[1];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  CatchCrashes();
  return true;
}

TrialProcess::Answer TrialProcess::Ask(absl::FunctionRef<std::string()> question) {
  if (!child_ && !CheckStop().ok()) return {Answer::End::kLate, "was stopped"};
  if (!child_ && pid_ < 0 && !Start()) return {Answer::End::kReturned, question()};
  if (child_) {
    const std::string text = question();
    const uint64_t size = text.size();
    if (!WriteAll(pipe_, &size, sizeof(size)) || !WriteAll(pipe_, text.data(), size)) _exit(0);
    return {Answer::End::kReturned, text};
  }
  const absl::Duration until = SteadyNow() + limit_;
  uint64_t size = 0;
  bool late = false;
  Answer answer;
  if (Read(&size, sizeof(size), until, &late)) {
    answer.text.resize(size);
    if (Read(answer.text.data(), size, until, &late)) return answer;
  }
  return Ended(late ? Answer::End::kLate : Answer::End::kCrashed);
}

TrialProcess::Answer TrialProcess::Ended(Answer::End end) {
  // A child that has crashed ends by itself; one that is late or no longer needed does not.
  if (end != Answer::End::kCrashed) kill(pid_, SIGKILL);
  int status = 0;
  pid_t ended;
  do {
    ended = waitpid(pid_, &status, 0);
  } while (ended < 0 && errno == EINTR);
  pid_ = -1;
  close(pipe_);
  pipe_ = -1;
  if (end == Answer::End::kLate) {
    return {end, absl::StrCat("has not returned within ", absl::FormatDuration(limit_))};
  }
  const LastWords& last = *static_cast<const LastWords*>(last_words_);
  std::string text = "ends the process";
  if (ended > 0 && WIFSIGNALED(status)) {
    text = absl::StrCat("crashes (", SignalName(WTERMSIG(status)), ")");
  } else if (last.signal_number != 0) {
    text = absl::StrCat("crashes (", SignalName(last.signal_number), ")");
    if (last.fence) {
      absl::StrAppend(&text, ": it ", last.writes ? "writes " : "reads ", last.beside);
    }
  } else if (ended > 0 && WIFEXITED(status)) {
    absl::StrAppend(&text, " (status ", WEXITSTATUS(status), ")");
  }
  return {end, std::move(text)};
}

bool TrialProcess::Read(void* data, size_t size, absl::Duration until, bool* late) const {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const int64_t left = absl::ToInt64Milliseconds(until - SteadyNow());
    pollfd wait = {pipe_, POLLIN, 0};
    const int ready =
        left <= 0 ? 0 : poll(&wait, 1, static_cast<int>(std::min(left, kMillisecondsToCheckStop)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && SteadyNow() < until && CheckStop().ok()) continue;
    if (ready <= 0) {
      *late = true;
      return false;
    }
    const ssize_t n = read(pipe_, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace shardcall
