// SPDX-License-Identifier: Apache-2.0
// A partitioned program with inputs and our numbers, in files that another engine
// runs: tests/differential/xla_runs --cases=DIR.
#ifndef SHARDCALL_TESTS_SUPPORT_WRITE_CASE_H_
#define SHARDCALL_TESTS_SUPPORT_WRITE_CASE_H_

#include <string>

#include "absl/status/status.h"
#include "shardcall/partitioner/api/run.h"

namespace shardcall {

// NAME.hlo, NAME.local.hlo, NAME.json (the report), NAME.inputs.npz and
// NAME.outputs.npz in `directory`, or none of them.
absl::Status WriteCase(const std::string& directory, const std::string& name,
                       const std::string& text, const RunOptions& options, uint64_t seed);

// The same, named after the test that runs, if SHARDCALL_CASES names a directory:
// every program, or every N-th where SHARDCALL_CASES_EVERY is N.
void WriteCaseIfAsked(const std::string& text, const RunOptions& options, uint64_t seed);

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SUPPORT_WRITE_CASE_H_
