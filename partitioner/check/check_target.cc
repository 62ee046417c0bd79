// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/check_target.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/check/check_vjp.h"
#include "shardcall/partitioner/check/reference.h"
#include "shardcall/partitioner/runtime/execute/active_runs.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {

absl::StatusOr<RuleCheck> CheckTarget(const TargetCheck& check, const TargetRegistry& targets,
                                      const HandlerRegistry& handlers) {
  SHARDCALL_ASSIGN_OR_RETURN(const CheckRegistries by,
                             RegistriesForCheck(check.target, targets, handlers));
  TrialOptions options;
  options.targets = &targets;
  options.handlers = &by.handlers;
  options.deadline = check.deadline;
  options.inputs = check.inputs;
  if (by.reference.has_value()) options.reference = &*by.reference;
  std::vector<CheckedCall> calls;
  if (check.program == nullptr) {
    SHARDCALL_RETURN_IF_ERROR(by.handlers.Find(check.target, "Host").status());
    SHARDCALL_ASSIGN_OR_RETURN(calls, CallsOfTarget(check.target, targets, by.handlers));
  } else {
    // The program's calls may have handlers of their own configurations.
    const auto handlers_of_all = by.handlers.List();
    const bool known = absl::c_any_of(
        handlers_of_all, [&](const HandlerEntry* entry) { return entry->target == check.target; });
    if (!known) return by.handlers.Find(check.target, "Host").status();
    SHARDCALL_ASSIGN_OR_RETURN(calls, CallsOfModule(check.target, targets, *check.program));
  }
  absl::StatusOr<RuleCheck> made =
      check.vjp ? CheckVjp(calls, check.seed, options) : CheckRule(calls, check.seed, options);
  // What was stopped says nothing of the rule.
  SHARDCALL_RETURN_IF_ERROR(CheckStop());
  SHARDCALL_RETURN_IF_ERROR(CheckProcessGoesOn());
  return made;
}

}  // namespace shardcall
