// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/tools/crash_report.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "shardcall/kernels/ffi/guard/guarded_call.h"
#include "shardcall/kernels/ffi/guard/running_call.h"
#include "shardcall/kernels/ffi/guard/signal_names.h"
#include "shardcall/partitioner/tools/command.h"
#include "shardcall/sharding/base/whole_file.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr size_t kStackBytes = size_t{1} << 16;
constexpr size_t kTextBytes = 1024;

void Say(const char* text) {
  // A failed write is ignored, since it could not be reported either.
  (void)!write(STDERR_FILENO, text, std::strlen(text));
}

void OnCrash(int signal_number) {
  RemovePartFiles();  // another thread may be writing one
  char did[64], what[kTextBytes], text[kTextBytes];
  std::snprintf(did, sizeof(did), "crashed (%s)", SignalName(signal_number));
  if (const RunningCall* const running = RunningCall::OfThisThread()) {
    running->Describe(did, what, sizeof(what));
    std::snprintf(text, sizeof(text),
                  "E323 %s. Fix: Correct it; shardcall check-rule finds calls that a handler "
                  "does not survive\n",
                  what);
    Say(text);
    _exit(kExitInput);
  }
  // Memory that a handler corrupted may cause a crash anywhere later.
  std::snprintf(text, sizeof(text),
                RunningCall::AnyYet()
                    ? "E324 shardcall %s outside of any handler, after some have run: one of them "
                      "may have written outside of its buffers. Fix: Try each with shardcall "
                      "check-rule --target=NAME; if all hold, report it with the command and its "
                      "input\n"
                    : "E324 shardcall %s outside of any handler, which is a bug of it. Fix: Report "
                      "it with the command and its input\n",
                did);
  Say(text);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

}  // namespace

void ReportCrashes() {
  if (GuardsHandlers()) return;  // the sanitizer reports more, including the handler's name
  static char stack_bytes[kStackBytes];
  stack_t stack = {};
  stack.ss_sp = stack_bytes;
  stack.ss_size = kStackBytes;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = OnCrash;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (int signal_number : kCrashSignals) sigaction(signal_number, &action, nullptr);
}

}  // namespace internal
}  // namespace shardcall
