// SPDX-License-Identifier: Apache-2.0
// The last words of a command that a handler or a plugin brings down.
#ifndef SHARDCALL_PARTITIONER_TOOLS_CRASH_REPORT_H_
#define SHARDCALL_PARTITIONER_TOOLS_CRASH_REPORT_H_

namespace shardcall::inline internal {

// From here on a crash of code that is not ours, in a handler or while a plugin is
// loaded, is E323 on stderr with its name, and ends the process with exit status 1. Any
// other is E324, and ends it as it would have.
void ReportCrashes();

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_TOOLS_CRASH_REPORT_H_
