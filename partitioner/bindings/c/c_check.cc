// SPDX-License-Identifier: Apache-2.0
// Checks of rules in C.
#include "shardcall/partitioner/bindings/c/c_objects.h"
#include "shardcall/partitioner/check/check_target.h"
#include "shardcall/sharding/base/status.h"

using namespace shardcall;  // NOLINT: definitions of C functions

extern "C" {

Shardcall_Error* Shardcall_CheckRule(const char* target, const Shardcall_CheckOptions* options,
                                     int32_t* holds, Shardcall_Text** json) {
  static constexpr char kName[] = "Shardcall_CheckRule";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "target", target));
    Shardcall_CheckOptions o = SHARDCALL_INIT(Shardcall_CheckOptions);
    if (options != nullptr) {
      SHARDCALL_RETURN_IF_ERROR(ReadStruct(kName, options, sizeof(o), &o));
    }
    const std::shared_ptr<const Registry> registry = RegistryOf(o.registry).Snapshot();
    TargetCheck what;
    what.target = target;
    what.seed = o.seed;
    what.vjp = o.vjp != 0;
    if (!(o.deadline_s >= 0)) {
      return BadArgument(kName, "a deadline_s of zero or more", absl::StrCat(o.deadline_s));
    }
    if (o.deadline_s > 0) what.deadline = absl::Seconds(o.deadline_s);
    std::unique_lock<std::mutex> lock;
    if (o.program != nullptr) {
      lock = std::unique_lock<std::mutex>(o.program->mutex);
      what.program = &o.program->module;
    }
    SHARDCALL_ASSIGN_OR_RETURN(const RuleCheck check,
                               CheckTarget(what, registry->rules, registry->handlers));
    if (holds != nullptr) *holds = check.verdict == RuleVerdict::kHolds ? 1 : 0;
    if (json != nullptr) *json = new Shardcall_Text{RuleCheckJson(check)};
    return absl::OkStatus();
  });
}

}  // extern "C"
