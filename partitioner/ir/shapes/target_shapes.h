// SPDX-License-Identifier: Apache-2.0
// Shape inference for custom calls, by target, for the builder and the verifier. TargetRegistry
// (partitioner/custom_call) implements it.
#ifndef SHARDCALL_PARTITIONER_IR_SHAPES_TARGET_SHAPES_H_
#define SHARDCALL_PARTITIONER_IR_SHAPES_TARGET_SHAPES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/context.h"
#include "shardcall/sharding/shape.h"

namespace shardcall SHARDCALL_PUBLIC {

// A call before its result has a shape. Operands as written, tuples not flattened.
struct ShapeRequest {
  Context* context = nullptr;  // to make shapes with
  absl::string_view target, backend_config;
  absl::Span<const Shape* const> operands;
};

class TargetShapes {
 public:
  virtual ~TargetShapes() = default;
  // The result, an array or a tuple, with descending layouts. Errors E112 if it cannot be
  // inferred, or those of the target's shape function.
  virtual absl::StatusOr<const Shape*> InferShape(const ShapeRequest& call) const = 0;
  // E023 if `declared` differs from the inferred shape; OK if nothing is registered for the
  // target.
  virtual absl::Status CheckShape(const ShapeRequest& call, const Shape* declared) const = 0;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SHAPES_TARGET_SHAPES_H_
