// SPDX-License-Identifier: Apache-2.0
// Result shapes from operand shapes and attributes, as HLO defines them, and
// the check of a written shape against them. One function per op serves both:
// an op whose result does not follow from its operands (reshape, iota, convert)
// needs the written shape and is checked against it.
//
// Results have descending layouts, but elementwise ops, reverse, select,
// dynamic-update-slice and their like copy the layout of the operand they
// follow, and transpose permutes it.
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

// Dimensions that an array may have. Some checks are quadratic in them; no program comes
// near this many.
inline constexpr int kMaxRank = 255;

// The result's shape, or an error: E021 where operands or the written shape are
// wrong for the op, E022 where an attribute is, E024 where a called
// computation's signature is, E025 where device groups are. `module` gives the
// called computations and the number of devices.
absl::StatusOr<const Shape*> InferShape(Context& context, const Module& module, Opcode opcode,
                                        absl::Span<const Shape* const> operands,
                                        const Attributes* attrs);

// The same without a Status: null on failure, with `*error` filled but for its
// `where`. If `declared` is not null it is the written shape: ops that need one
// take what they need from it, and it is not compared with the result here.
const Shape* InferShapeOrNull(Context& context, const Module& module, Opcode opcode,
                              absl::Span<const Shape* const> operands, const Attributes* attrs,
                              const Shape* declared, Diagnostic* error);

// Equal but for layouts and for which dimensions are dynamic; an unbounded
// dimension equals every size. No recursion.
bool CompatibleShapes(const Shape* a, const Shape* b);

// Devices in each group of a collective, where every group has as many: written
// lists, iota and mesh forms, or, with no groups written, all devices of the
// module. 0 if the groups differ in size or the text of a mesh is malformed.
int64_t CollectiveGroupSize(const Module& module, Opcode opcode, const CollectiveAttrs& attrs);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SHAPES_SHAPE_INFERENCE_H_
