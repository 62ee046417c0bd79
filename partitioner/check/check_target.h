// SPDX-License-Identifier: Apache-2.0
// A check of a registered target by its name: what `check-rule`, the matchers and the C
// interface do.
#ifndef SHARDCALL_PARTITIONER_CHECK_CHECK_TARGET_H_
#define SHARDCALL_PARTITIONER_CHECK_CHECK_TARGET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/check/check_rule.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct TargetCheck {
  std::string target = {};
  // A program whose calls of the target are checked; null: those that its rule says.
  const Module* program = nullptr;
  uint64_t seed = 0;
  bool vjp = false;  // the VJP against finite differences, and its rule: see CheckVjp
  absl::Duration deadline = absl::Seconds(20);  // of each kernel, and of each trial
  std::vector<Tensor> inputs = {};              // of the program; empty: random ones
};

// A target without a handler that has a reference (partition_like) is checked by that.
// Errors E101, E140 (no handler), E190 and E191 of checked_call.h and check_rule.h, and
// those of CheckVjp.
absl::StatusOr<RuleCheck> CheckTarget(const TargetCheck& check, const TargetRegistry& targets,
                                      const HandlerRegistry& handlers);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_CHECK_TARGET_H_
