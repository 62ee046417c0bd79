// SPDX-License-Identifier: Apache-2.0
// Verifies HLO text: partitions it, runs it on in-process devices with poisoned padding, and
// compares the results with the plain evaluator.
#ifndef SHARDCALL_TESTS_SUPPORT_VERIFY_TEXT_H_
#define SHARDCALL_TESTS_SUPPORT_VERIFY_TEXT_H_

#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/api/verify.h"

namespace shardcall {

absl::StatusOr<Module> ParseText(const std::string& text);

struct TextOptions {
  int64_t num_partitions = 0;  // 0: as in the text
  bool propagate = true;
  const TargetRegistry* targets = nullptr;    // null: the shipped targets
  const HandlerRegistry* handlers = nullptr;  // null: the shipped handlers
  std::vector<std::string> allow_replicate = {};
  SpmdOptions spmd = {};
  // In place of spmd.search: most tests are about what propagation and plan do by themselves.
  StateSearch search = StateSearch::kNone;
  uint64_t seed = 1;
};

RunOptions ToRunOptions(const TextOptions& options);
absl::StatusOr<std::unique_ptr<PartitionedProgram>> PartitionText(const std::string& text,
                                                                  const TextOptions& options);
absl::StatusOr<VerifyResult> VerifyText(const std::string& text, const TextOptions& options);
// "" if the partitioned program gives the results of the plain one, else the difference.
std::string WhyNotEqual(const std::string& text, const TextOptions& options);

// The local module as text, without metadata.
std::string LocalText(const PartitionedProgram& program);
// The number of collectives with that opcode in the local module.
int CountOpcode(const PartitionedProgram& program, Opcode opcode);

inline absl::Status AsStatus(const absl::Status& s) { return s; }
template <typename T>
absl::Status AsStatus(const absl::StatusOr<T>& s) {
  return s.status();
}

// EXPECT_THAT(status, Fails("E101", "no sharding rule"))
MATCHER_P2(Fails, code, part, std::string("is an error ") + code + " that says \"" + part + "\"") {
  const absl::Status status = AsStatus(arg);
  *result_listener << "which is " << std::string(status.ToString());
  return !status.ok() && status.message().find(code) != absl::string_view::npos &&
         status.message().find(part) != absl::string_view::npos;
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SUPPORT_VERIFY_TEXT_H_
