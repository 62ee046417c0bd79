// SPDX-License-Identifier: Apache-2.0
// The answers of a TargetRegistry to the questions of pjrt_serving.h, independent of the structs
// in which XLA asks them.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_ANSWERS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_ANSWERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/bindings/xla/pjrt_serving.h"
#include "shardcall/sharding/hlo_sharding.h"

namespace shardcall {
inline namespace internal {

// A parsed question about one call of the target.
struct PjrtQuestion {
  std::vector<absl::string_view> shapes;     // serialised, of the operands
  std::vector<absl::string_view> shardings;  // likewise; empty: none
  absl::string_view result_shape, result_sharding, config;
};

struct PjrtPartitioned {
  std::string module;  // StableHLO, as bytecode
  std::vector<HloSharding> operands;
  HloSharding result;
};

// E147 and errors of partitioning. Answers are serialised shardings; empty: nothing follows.
absl::StatusOr<PjrtPartitioned> AnswerPjrtPartition(const PjrtTarget& target,
                                                    const PjrtQuestion& q);
absl::StatusOr<std::string> AnswerPjrtInfer(const PjrtTarget& target, const PjrtQuestion& q);
absl::StatusOr<std::string> AnswerPjrtPropagate(const PjrtTarget& target, const PjrtQuestion& q);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_ANSWERS_H_
