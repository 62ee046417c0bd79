// SPDX-License-Identifier: Apache-2.0
// Infers result shapes from operand shapes and attributes, as HLO defines them, and checks a
// written shape against them. One function per op serves both: an op whose result does not follow
// from its operands (reshape, iota, convert) needs the written shape, which is checked for
// consistency.
//
// Results have descending layouts, except that elementwise ops, reverse, select,
// dynamic-update-slice and similar ones copy the layout of an operand, and transpose permutes it.
//
//   InferShape(c, m, kDot, {f32[4,8], f32[8,2]}, {lhs_contracting={1}, ..}) = f32[4,2]{1,0}
#ifndef SHARDCALL_PARTITIONER_IR_SHAPES_SHAPE_INFERENCE_H_
#define SHARDCALL_PARTITIONER_IR_SHAPES_SHAPE_INFERENCE_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/shape.h"

namespace shardcall {
inline namespace internal {

// The largest rank of an array. Some checks are quadratic in the rank; no real program comes near
// this limit.
inline constexpr int kMaxRank = 255;

// The result's shape, or an error: E021 if operands or the written shape are wrong for the op,
// E022 for an attribute, E024 for a called computation's signature, E025 for device groups.
// `module` gives the called computations and the number of devices.
absl::StatusOr<const Shape*> InferShape(Context& context, const Module& module, Opcode opcode,
                                        absl::Span<const Shape* const> operands,
                                        const Attributes* attrs);

// The same without a Status: null on failure, with `*error` filled except for its `where`.
// `declared`, if not null, is the written shape: ops that need one use it; the result is not
// compared with it here.
const Shape* InferShapeOrNull(Context& context, const Module& module, Opcode opcode,
                              absl::Span<const Shape* const> operands, const Attributes* attrs,
                              const Shape* declared, Diagnostic* error);

// Equal except for layouts and for which dimensions are dynamic; an unbounded dimension equals
// every size. No recursion.
bool CompatibleShapes(const Shape* a, const Shape* b);

// The number of devices in each group of a collective, if equal for all groups: for lists, iota
// and mesh forms, or, without groups, all devices of the module. 0 if the groups differ in size or
// the text of a mesh is malformed.
int64_t CollectiveGroupSize(const Module& module, Opcode opcode, const CollectiveAttrs& attrs);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SHAPES_SHAPE_INFERENCE_H_
