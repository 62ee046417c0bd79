// SPDX-License-Identifier: Apache-2.0
// The JSON of started_calls.h, and the collectives that may be written so.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_STARTED_CONFIG_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_STARTED_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

inline constexpr absl::string_view kStartSuffix = "-start", kDoneSuffix = "-done";

// A collective whose start and done may be calls of the targets "<op>-start" and "<op>-done".
struct StartedCollective {
  Opcode op;
  absl::string_view dimension;  // the key of its dimension; empty if it has none
};

// By the op, and by a target with one of the suffixes. Null for others.
const StartedCollective* FindStarted(Opcode op);
const StartedCollective* FindStarted(absl::string_view target, absl::string_view suffix);

// What a start does. -1: not said.
struct StartedConfig {
  int64_t dimension = -1, concat_dimension = -1, split_count = -1, channel_id = -1;
  bool use_global_device_ids = false;
  std::vector<std::vector<int64_t>> lists;  // the groups, or the pairs of a permute
};

// `where` names the call in errors, which are E165.
absl::StatusOr<StartedConfig> ParseStartedConfig(const StartedCollective& of,
                                                 absl::string_view json, absl::string_view where);
std::string StartedConfigText(const StartedCollective& of, const StartedConfig& config);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_STARTED_CONFIG_H_
