// SPDX-License-Identifier: Apache-2.0
// The targets that jaxlib registers with XLA, or XLA itself has kernels for, beside those that have
// a shipped kernel: LAPACK's (lapack_targets.cc).
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_TARGETS_JAXLIB_TARGETS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_TARGETS_JAXLIB_TARGETS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {

struct JaxlibTarget {
  enum class How : uint8_t {
    kRule,         // has the rule string `what`
    kBatchOfCall,  // JAX gives each call its number of batch dimensions
    kBody,         // has a rule with a body, in this table's source file
    kReplicated,   // every device makes the whole call, because of `what`
    kOfCall,       // no rule fits each call, because of `what`: the program says one, or E101
  };
  absl::string_view name;  // with "cu" or "hip" in the place of `?`
  How how;
  absl::string_view what = {};
  // Of a rule: a factor that is summed, and those that are whole, "m n".
  absl::string_view sum = {}, whole = {};
};

absl::Span<const JaxlibTarget> JaxlibTargets();
// "rule", "num_batch_dims", "body", "replicated: its reason", "of the call: its reason".
std::string JaxlibTargetText(const JaxlibTarget& target);
// The names of a row: one, or that of each platform.
std::vector<std::string> JaxlibTargetNames(const JaxlibTarget& target);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_TARGETS_JAXLIB_TARGETS_H_
