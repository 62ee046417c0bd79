// SPDX-License-Identifier: Apache-2.0
// partition_like: a target whose rule is that of a reference computation in HLO.
//
//   SHARDCALL_RETURN_IF_ERROR(RegisterPartitionLike("my_norm", R"(
//     HloModule norm
//     ENTRY main { x = f32[6,4] parameter(0) ... ROOT y = f32[6,4] multiply(x, s) })",
//     &targets));
//
// The reference is written for arrays of some sizes, best of different ones, and
// stands for all: dimensions that its ops map to one another are one factor. A
// factor can be sharded where the partitioner makes of the reference nothing but
// the same ops on shards, and is summed (or its largest or least taken) where
// that leaves a part of a result on each device. What would make the reference
// communicate within is kept whole, since the target is called once.
//
// A constant that is made from a size (the 8 of a mean over f32[8]) is taken as
// it stands. Where a handler divides by the size of its shard instead, check-rule
// says so, which holds the handler's numbers against the reference's, and names the
// dimension: a mean over whatever size is written with get-dimension-size, and its
// dimension is kept whole.
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

// The rule of a reference: its string, factors, pads and element types. Operands
// are the entry's parameters, which are arrays, results its flat results. Errors
// are those of the parser and the verifier; E114 a reference that is for several
// devices, has side effects or collectives, or nothing to shard by; those of
// import. Custom calls in it go by `targets`.
absl::StatusOr<RuleAlternative> RuleOfReference(const std::string& hlo,
                                                const TargetRegistry& targets);

// Registers the target with that rule, keeps the reference, and infers shapes by
// it. E105 as with other registrations.
absl::Status RegisterPartitionLike(std::string target, std::string hlo, TargetRegistry* targets,
                                   std::string source = "program");

// The reference as a handler: whatever sizes it is called with. `targets` and
// `handlers` are for custom calls in it, may be null, and must outlive it. E115
// where the reference cannot have those sizes or gives other shapes.
absl::StatusOr<HandlerEntry> ReferenceHandler(absl::string_view target, const std::string& hlo,
                                              const TargetRegistry* targets,
                                              const HandlerRegistry* handlers);

// What a check of the target runs: `handlers`, with the reference in place of a
// handler that is not there; and the reference alone where both are there.
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
