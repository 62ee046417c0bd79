// SPDX-License-Identifier: Apache-2.0
// What a target's author may declare beside its rule. Each is optional.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_TARGET_FACTS_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_TARGET_FACTS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "partitioner/ir/target_shapes.h"

namespace shardcall {

// The shape of a call's result, an array or a tuple; layouts may be left out. A
// failure or a throw is E121.
using ShapeFunction = std::function<absl::StatusOr<const Shape*>(const ShapeRequest& call)>;

struct TargetFacts {
  ShapeFunction shapes;  // null: by the rule string, where that says enough
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_TARGET_FACTS_H_
