// SPDX-License-Identifier: Apache-2.0
// Makes the annotations that import reads, and the frontend attributes that hold them.
#ifndef SHARDCALL_PARTITIONER_IMPORT_ANNOTATIONS_H_
#define SHARDCALL_PARTITIONER_IMPORT_ANNOTATIONS_H_

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/analysis/manual_boundary.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {

// `attributes` (may be null) with `value` under `key`, in place of an older value.
const FrontendAttributes* WithAttribute(Context& context, const FrontendAttributes* attributes,
                                        absl::string_view key, absl::string_view value);
// `attributes` without the keys for which `drop` is true; null if none are left.
const FrontendAttributes* WithoutAttributes(Context& context, const FrontendAttributes* attributes,
                                            absl::FunctionRef<bool(absl::string_view key)> drop);

// `attributes` with what the boundary of a manual region says, in the attributes of Shardy.
const FrontendAttributes* WithBoundary(Context& context, const FrontendAttributes* attributes,
                                       bool enters, const ManualBoundaryText& text);

// A `Sharding` custom call for a value of `shape`, without an annotation.
Instruction ShardingCall(Context& context, const Shape* shape);
// A `Sharding` custom call with the annotation of `from`, for a value of its shape.
Instruction ShardingCallLike(Context& context, const Instruction& from);

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_ANNOTATIONS_H_
