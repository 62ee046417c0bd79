// SPDX-License-Identifier: Apache-2.0
// Writes a partitioned program with its inputs and our outputs to files that another engine runs:
// tests/differential/xla_runs --cases=DIR.
#ifndef SHARDCALL_TESTS_SUPPORT_WRITE_CASE_H_
#define SHARDCALL_TESTS_SUPPORT_WRITE_CASE_H_

#include <string>

#include "absl/status/status.h"
#include "shardcall/partitioner/api/run.h"

namespace shardcall {

// Writes NAME.hlo, NAME.local.hlo, NAME.json (the report), NAME.inputs.npz and NAME.outputs.npz to
// `directory`, or none of them.
absl::Status WriteCase(const std::string& directory, const std::string& name,
                       const std::string& text, const RunOptions& options, uint64_t seed);

// The same, named after the running test, if SHARDCALL_CASES names a directory: for every program,
// or for every N-th one if SHARDCALL_CASES_EVERY is N.
void WriteCaseIfAsked(const std::string& text, const RunOptions& options, uint64_t seed);

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SUPPORT_WRITE_CASE_H_
