// SPDX-License-Identifier: Apache-2.0
// Reports crashes of the command that a handler or a plugin causes.
#ifndef SHARDCALL_PARTITIONER_TOOLS_CRASH_REPORT_H_
#define SHARDCALL_PARTITIONER_TOOLS_CRASH_REPORT_H_

namespace shardcall {
inline namespace internal {

// From now on, a crash of foreign code (in a handler, or while a plugin is loaded) is reported as
// E323 with its name on stderr, and ends the process with exit status 1. Any other crash is
// reported as E324, and ends the process by its signal.
void ReportCrashes();

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_TOOLS_CRASH_REPORT_H_
