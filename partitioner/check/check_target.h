// SPDX-License-Identifier: Apache-2.0
// Checks a registered target by its name. Used by `check-rule`, the matchers and the C interface.
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
  // A program whose calls of the target are checked; null: calls derived from its rule.
  const Module* program = nullptr;
  uint64_t seed = 0;
  bool vjp = false;  // also the VJP, against finite differences, and its rule: see CheckVjp
  absl::Duration deadline = absl::Seconds(20);  // of each kernel, and of each trial
  std::vector<Tensor> inputs = {};              // of the program; empty: random inputs
};

// If a target has a reference (partition_like) but no handler, the reference is checked. Errors:
// E101, E140 (no handler), E190 and E191 of checked_call.h and check_rule.h, and those of CheckVjp.
absl::StatusOr<RuleCheck> CheckTarget(const TargetCheck& check, const TargetRegistry& targets,
                                      const HandlerRegistry& handlers);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_CHECK_TARGET_H_
