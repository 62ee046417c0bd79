// SPDX-License-Identifier: Apache-2.0
// Shapes of the C interface, and the shape functions of targets.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_C_SHAPES_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_C_SHAPES_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_derived.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
inline namespace internal {

// Flat leaves. The results point into `shapes`.
std::vector<Shardcall_Shape> CShapes(absl::Span<const Shape* const> shapes);
// Whether `type` is the number of an element type that arrays have.
bool IsArrayTypeOfC(int32_t type);
// The array shape, without a layout; null if `shape` is invalid: another type, a negative or
// missing dimension, or one of 2^40 or more.
const Shape* ArrayOfC(const Shardcall_Shape& shape, Context* context);

// E148 for an invalid struct; other errors as for TargetRegistry::RegisterShapeInference.
// `library` lives as long as the function may be called.
absl::Status RegisterCShapes(absl::string_view target, const Shardcall_ShapeFunction* function,
                             TargetRegistry* targets, absl::string_view source,
                             std::shared_ptr<const void> library);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_C_C_SHAPES_H_
