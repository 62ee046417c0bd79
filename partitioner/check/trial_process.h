// SPDX-License-Identifier: Apache-2.0
// Runs kernels under test in a process of its own, since they may crash or never return. That is
// then the answer to the question, and a new process continues.
//
// The child is a fork that runs the same code from there on, one step ahead: when this process asks
// a question, the child has computed the same question and sends the answer. So questions may
// depend only on earlier answers. The child ends with its TrialProcess. Kernels of a GPU that this
// process uses cannot be called in a fork, and run here.
#ifndef SHARDCALL_PARTITIONER_CHECK_TRIAL_PROCESS_H_
#define SHARDCALL_PARTITIONER_CHECK_TRIAL_PROCESS_H_

#include <sys/types.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// What another runtime in this process, as that of Python, does around a fork, on the thread that
// forks. Null: nothing.
struct ForkHooks {
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;
};
// For all trials from now on. To be called before any.
void SetForkHooks(const ForkHooks& hooks);

class TrialProcess {
 public:
  // No answer may take longer than `limit`. Without `forks`, questions are asked in this process.
  explicit TrialProcess(absl::Duration limit, bool forks = true) : limit_(limit), forks_(forks) {}
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;
  ~TrialProcess();

  struct Answer {
    enum class End { kReturned, kCrashed, kLate } end = End::kReturned;
    // What the question returned; or "crashes (SIGSEGV), which reads 4 bytes past the
    // end of operand 1, f32[4,16]"; or "has not returned within 20s".
    std::string text;
  };
  // The result of `question` in the child, or in this process if no child can be made. When this
  // thread is stopped (StopScope), that is late at once.
  Answer Ask(absl::FunctionRef<std::string()> question);

 private:
  bool Start();  // false if there is no child; true in both processes
  Answer Ended(Answer::End end);
  bool Read(void* data, size_t size, absl::Duration until, bool* late) const;

  const absl::Duration limit_;
  const bool forks_;
  bool child_ = false;
  pid_t pid_ = -1;  // the child's; -1: none
  int pipe_ = -1;   // answers, from the child; read here
  void* last_words_ = nullptr;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_TRIAL_PROCESS_H_
