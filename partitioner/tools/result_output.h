// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_TOOLS_RESULT_OUTPUT_H_
#define SHARDCALL_PARTITIONER_TOOLS_RESULT_OUTPUT_H_

#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

// Keeps standard output for the result of a verb that calls kernels: while it lives, what others
// print there goes to standard error, so that a program can read the result.
class ResultOutput {
 public:
  ResultOutput();
  ResultOutput(const ResultOutput&) = delete;
  ResultOutput& operator=(const ResultOutput&) = delete;
  ~ResultOutput() { Restore(); }

  // Prints a line to standard output, which is as it was from then on.
  void Print(absl::string_view result);

 private:
  void Restore();

  int output_;  // a copy of standard output; -1: it is as it was
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_TOOLS_RESULT_OUTPUT_H_
