// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/shapes/shape_inference.h"

#include <utility>

#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall {
inline namespace internal {
namespace shape_inference {
namespace {

using ShapeFn = const Shape* (*)(const Query& q);
constexpr ShapeFn kShapes[] = {
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  Infer##shape,
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP
};

const Shape* Dispatch(const Query& q) {
  const OpcodeInfo& info = GetOpcodeInfo(q.opcode);
  if (info.arity >= 0 && q.num_operands() != info.arity) {
    WantOperands(q, info.arity);
    return nullptr;
  }
  return kShapes[static_cast<int>(q.opcode)](q);
}

bool IsUnbounded(const Shape* s) {
  if (!s->IsDynamic()) return false;
  for (int64_t d : s->dims()) {
    if (d == kUnboundedDim) return true;
  }
  return false;
}

bool WantRank(const Query& q, const Shape* s) {
  if (s->rank() <= kMaxRank) return true;
  Fail(q, "E021", "an array has too many dimensions", absl::StrCat("at most ", kMaxRank),
       absl::StrCat(s->rank()));
  return false;
}

// Other ops are inferred for static operands only.
bool CarriesDynamic(const Query& q) {
  return HasTrait(q.opcode, kElementwise | kCollectiveOp | kCarriesDynamicSizes);
}

}  // namespace
}  // namespace shape_inference
}  // namespace internal
}  // namespace shardcall

namespace shardcall {
inline namespace internal {

const Shape* InferShapeOrNull(Context& context, const Module& module, Opcode opcode,
                              absl::Span<const Shape* const> operands, const Attributes* attrs,
                              const Shape* declared, Diagnostic* error) {
  if (attrs == nullptr) attrs = NoAttributes();
  const shape_inference::Query q = {context, module, opcode, operands, attrs, declared, error};
  const AttrKind kind = GetOpcodeInfo(opcode).attrs;
  if (attrs->kind != kind && kind != AttrKind::kResultAccuracy) {
    return shape_inference::Fail(q, "E022", "the attributes are those of another op",
                                 "its own attributes", "others");
  }
  if (declared != nullptr && !shape_inference::WantRank(q, declared)) return nullptr;
  for (const Shape* x : operands) {
    if (!shape_inference::WantRank(q, x)) return nullptr;
    if (!x->IsArray() || !x->IsDynamic()) continue;
    // Unbounded sizes cannot be checked, so the written shape is taken.
    if (shape_inference::IsUnbounded(x) && !HasTrait(opcode, kElementwise)) {
      return shape_inference::WantDeclared(q) ? declared : nullptr;
    }
    if (declared == nullptr && !shape_inference::CarriesDynamic(q)) {
      shape_inference::WantDeclared(q);
      return nullptr;
    }
  }
  return shape_inference::Dispatch(q);
}

absl::StatusOr<const Shape*> InferShape(Context& context, const Module& module, Opcode opcode,
                                        absl::Span<const Shape* const> operands,
                                        const Attributes* attrs) {
  Diagnostic error;
  const Shape* shape = InferShapeOrNull(context, module, opcode, operands, attrs, nullptr, &error);
  if (shape == nullptr) return ToStatus(error);
  return shape;
}

}  // namespace internal
}  // namespace shardcall
