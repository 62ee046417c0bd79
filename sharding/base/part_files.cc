// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/part_files.h"

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <utility>

#include "shardcall/sharding/base/whole_file.h"

namespace shardcall {
inline namespace internal {
namespace {

// A signal handler may read no more than lock-free atomics. More files than these are never
// unfinished at once in practice; of one that is, a signal leaves a part behind.
constexpr int kMostFiles = 256;
struct Unfinished {
  std::atomic<const char*> path;
  std::atomic<pid_t> process;  // a forked child must leave the files of its parent alone
};
Unfinished unfinished[kMostFiles];
static_assert(std::atomic<const char*>::is_always_lock_free);
static_assert(std::atomic<pid_t>::is_always_lock_free);

void OnEndingSignal(int signal_number) {
  RemovePartFiles();
  // The signal is blocked while its handler runs, so it ends the process when this returns.
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

}  // namespace

PartFile::PartFile(std::string path) : path_(std::move(path)), slot_(-1) {
  for (int k = 0; k < kMostFiles && slot_ < 0; ++k) {
    const char* none = nullptr;
    if (!unfinished[k].path.compare_exchange_strong(none, path_.c_str())) continue;
    unfinished[k].process = getpid();
    slot_ = k;
  }
}

PartFile::~PartFile() {
  // A signal that comes in between finds the file gone, which is no error.
  if (!path_.empty()) std::remove(path_.c_str());
  if (slot_ >= 0) unfinished[slot_].path = nullptr;
}

bool PartFile::RenameTo(const std::string& path) {
  if (std::rename(path_.c_str(), path.c_str()) != 0) return false;
  if (slot_ >= 0) unfinished[std::exchange(slot_, -1)].path = nullptr;
  path_.clear();
  return true;
}

void RemovePartFiles() {
  for (const Unfinished& one : unfinished) {
    const char* const path = one.path;
    if (path != nullptr && one.process == getpid()) unlink(path);
  }
}

bool EndsTheProcess(int signal_number) {
  struct sigaction now = {};
  return sigaction(signal_number, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
         (now.sa_handler == SIG_DFL || now.sa_handler == OnEndingSignal);
}

void RemovePartFilesOnSignals() {
  for (const int signal_number :
       {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ, SIGXCPU, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2}) {
    if (!EndsTheProcess(signal_number)) continue;
    struct sigaction action = {};
    action.sa_handler = OnEndingSignal;
    sigfillset(&action.sa_mask);
    sigaction(signal_number, &action, nullptr);
  }
}

}  // namespace internal
}  // namespace shardcall
