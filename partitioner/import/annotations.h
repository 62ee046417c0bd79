// SPDX-License-Identifier: Apache-2.0
// Making what import reads: annotations and the attributes they stand in.
#ifndef SHARDCALL_PARTITIONER_IMPORT_ANNOTATIONS_H_
#define SHARDCALL_PARTITIONER_IMPORT_ANNOTATIONS_H_

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall::import_internal {

// `attributes` (may be null) with `value` in place of what stands under `key`.
const FrontendAttributes* WithAttribute(Context& context, const FrontendAttributes* attributes,
                                        absl::string_view key, absl::string_view value);
// Without those whose key `drop` holds for; null if none is left.
const FrontendAttributes* WithoutAttributes(Context& context, const FrontendAttributes* attributes,
                                            absl::FunctionRef<bool(absl::string_view key)> drop);

// A `Sharding` custom call for a value of `shape`, that says nothing yet.
Instruction ShardingCall(Context& context, const Shape* shape);
// One that says what the annotation of `from` does, of a value of its shape.
Instruction ShardingCallLike(Context& context, const Instruction& from);

}  // namespace shardcall::import_internal

#endif  // SHARDCALL_PARTITIONER_IMPORT_ANNOTATIONS_H_
