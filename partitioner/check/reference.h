// SPDX-License-Identifier: Apache-2.0
// partition_like: a target whose rule is that of a reference computation in HLO.
//
//   SHARDCALL_RETURN_IF_ERROR(RegisterPartitionLike("my_norm", R"(
//     HloModule norm
//     ENTRY main { x = f32[6,4] parameter(0) ... ROOT y = f32[6,4] multiply(x, s) })",
//     &targets));
//
// The reference is written for arrays of some sizes, preferably all different, and stands for all
// sizes: dimensions that its ops map to one another are one factor. A factor can be sharded if the
// partitioner turns the reference into the same ops on shards. It is a reduction factor (sum, max
// or min) if each device then has a partial result. If the reference would communicate in other
// places, the factor needs replication, since the target is called only once.
//
// A constant that is derived from a size (the 8 of a mean over f32[8]) stays a constant. If a
// handler divides by the size of its shard instead, check-rule reports it: it compares the handler
// with the reference, and names the dimension. A mean over any size must be written with
// get-dimension-size, and its dimension then needs replication.
#ifndef SHARDCALL_PARTITIONER_CHECK_REFERENCE_H_
#define SHARDCALL_PARTITIONER_CHECK_REFERENCE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// The rule of a reference: its string, factors, pads and element types. Operands are the entry's
// parameters, which must be arrays, and results its flat results. Errors: those of the parser, the
// verifier and import; E114 if the reference is for several devices, has side effects or
// collectives, or has nothing to shard. Custom calls in it are resolved by `targets`.
absl::StatusOr<RuleAlternative> RuleOfReference(const std::string& hlo,
                                                const TargetRegistry& targets);

// Registers the target with that rule, keeps the reference, and infers shapes by
// it. E105 as with other registrations.
absl::Status RegisterPartitionLike(std::string target, std::string hlo, TargetRegistry* targets,
                                   std::string source = "program");

// The reference as a handler, for the sizes that it is called with. `targets` and `handlers` are
// for custom calls in it; they may be null and must outlive it. E115 if the reference cannot have
// those sizes, or gives other shapes.
absl::StatusOr<HandlerEntry> ReferenceHandler(absl::string_view target, const std::string& hlo,
                                              const TargetRegistry* targets,
                                              const HandlerRegistry* handlers);

// The registries for a check of a target: `handlers`, with the reference as handler if there is
// none; and the reference alone if there are both.
struct CheckRegistries {
  HandlerRegistry handlers;
  std::optional<HandlerRegistry> reference;
};
// `targets` and `handlers` must outlive the result.
absl::StatusOr<CheckRegistries> RegistriesForCheck(const std::string& target,
                                                   const TargetRegistry& targets,
                                                   const HandlerRegistry& handlers);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_REFERENCE_H_
