// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/tools/result_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace shardcall {
inline namespace internal {

ResultOutput::ResultOutput() : output_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) {
  if (output_ < 0) return;
  std::fflush(stdout);
  dup2(STDERR_FILENO, STDOUT_FILENO);
}

void ResultOutput::Print(absl::string_view result) {
  Restore();
  std::printf("%.*s\n", static_cast<int>(result.size()), result.data());
}

void ResultOutput::Restore() {
  if (output_ < 0) return;
  std::fflush(stdout);  // what a kernel has printed
  dup2(output_, STDOUT_FILENO);
  close(output_);
  output_ = -1;
}

}  // namespace internal
}  // namespace shardcall
