// SPDX-License-Identifier: Apache-2.0
// Kernels under test run in a process of their own, which may crash or never return:
// what was asked of it then has that for an answer, and another process goes on.
//
// The child is a copy of this process, and runs what this process runs from there on,
// each a step ahead: this one asks, that one has computed the same question and writes
// the answer. So questions must follow from the answers before them alone. The child
// ends where its TrialProcess does.
#ifndef SHARDCALL_PARTITIONER_CHECK_TRIAL_PROCESS_H_
#define SHARDCALL_PARTITIONER_CHECK_TRIAL_PROCESS_H_

#include <sys/types.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

class TrialProcess {
 public:
  // No answer may take longer than `limit`.
  explicit TrialProcess(absl::Duration limit) : limit_(limit) {}
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;
  ~TrialProcess();

  struct Answer {
    enum class End { kReturned, kCrashed, kLate } end = End::kReturned;
    // What the question returned; or "crashes (SIGSEGV), which reads 4 bytes past the
    // end of operand 1, f32[4,16]"; or "has not returned within 20s".
    std::string text;
  };
  // What `question` returns in the child; in this process where none can be made.
  Answer Ask(absl::FunctionRef<std::string()> question);

 private:
  bool Start();  // false where there is no process; true in both
  Answer Ended(Answer::End end);
  bool Read(void* data, size_t size, absl::Duration until, bool* late) const;

  const absl::Duration limit_;
  bool child_ = false;
  pid_t pid_ = -1;  // of the child; -1: none
  int pipe_ = -1;   // answers: read here, written by the child
  void* last_words_ = nullptr;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_TRIAL_PROCESS_H_
