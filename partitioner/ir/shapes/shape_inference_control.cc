// SPDX-License-Identifier: Apache-2.0
// Shape inference of tuples, tokens, and of ops that call whole computations.
#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall {
inline namespace internal {
namespace shape_inference {
namespace {

// Checks that the computation's parameters match the operands from `first` on.
const Computation* WantCall(const Query& q, absl::string_view attribute, CompId id, int first) {
  const Computation* c = Callee(q, attribute, id);
  if (c == nullptr || !WantParameters(q, attribute, *c, q.num_operands() - first)) return nullptr;
  for (int i = first; i < q.num_operands(); ++i) {
    if (!WantParameter(q, attribute, *c, i - first, q.x(i))) return nullptr;
  }
  return c;
}

bool WantRoot(const Query& q, absl::string_view attribute, const Computation& c,
              const Shape* shape) {
  const Shape* root = RootShape(q, c);
  if (CompatibleShapes(root, shape)) return true;
  Fail(q, "E024", absl::StrCat("the result of ", attribute, "=", c.name, " is wrong"), Text(shape),
       Text(root));
  return false;
}

}  // namespace

const Shape* InferTuple(const Query& q) {
  return WantFewLeaves(q) ? q.context.MakeTuple(q.operands) : nullptr;
}

const Shape* InferAfterAll(const Query& q) {
  for (int i = 0; i < q.num_operands(); ++i) {
    if (!WantToken(q, i)) return nullptr;
  }
  return q.context.MakeToken();
}

const Shape* InferAddDependency(const Query& q) { return WantToken(q, 1) ? q.x(0) : nullptr; }

const Shape* InferGetTupleElement(const Query& q) {
  const Shape* x = q.x(0);
  const int64_t index = q.as<TupleIndexAttrs>().index;
  if (!x->IsTuple()) return Fail(q, "E021", "the operand must be a tuple", "a tuple", Text(x));
  if (index < 0 || index >= static_cast<int64_t>(x->tuple().size())) {
    return Fail(q, "E022", "index is out of range", absl::StrCat("[0,", x->tuple().size(), ")"),
                absl::StrCat(index));
  }
  return x->tuple()[index];
}

const Shape* InferWhile(const Query& q) {
  const auto& a = q.as<WhileAttrs>();
  const Computation* condition = WantCall(q, "condition", a.condition, 0);
  if (condition == nullptr) return nullptr;
  const Computation* body = WantCall(q, "body", a.body, 0);
  if (body == nullptr ||
      !WantRoot(q, "condition", *condition, q.context.MakeScalar(ElementType::kPred)) ||
      !WantRoot(q, "body", *body, q.x(0))) {
    return nullptr;
  }
  return q.x(0);
}

const Shape* InferConditional(const Query& q) {
  const auto& a = q.as<ConditionalAttrs>();
  const int n = static_cast<int>(a.branches.size());
  if (n == 0) return Fail(q, "E022", "there are no branches", "at least one", "none");
  if (!WantOperands(q, n + 1) || !WantScalar(q, 0)) return nullptr;
  const ElementType want = a.is_pred ? ElementType::kPred : ElementType::kS32;
  if (q.x(0)->element_type() != want || (a.is_pred && n != 2)) {
    return Fail(q, "E021", "operand 0 does not choose among these branches",
                absl::StrCat(ElementTypeName(want), "[]"), Text(q.x(0)));
  }
  const Shape* result = nullptr;
  for (int i = 0; i < n; ++i) {
    const char* attribute = !a.is_pred ? "branch_computations"
                            : i == 0   ? "true_computation"
                                       : "false_computation";
    const Computation* c = Callee(q, attribute, a.branches[i]);
    if (c == nullptr || !WantParameters(q, attribute, *c, 1) ||
        !WantParameter(q, attribute, *c, 0, q.x(i + 1))) {
      return nullptr;
    }
    if (result == nullptr) {
      result = RootShape(q, *c);
    } else if (!WantRoot(q, attribute, *c, result)) {
      return nullptr;
    }
  }
  return result;
}

const Shape* InferCall(const Query& q) {
  const bool fusion = q.opcode == Opcode::kFusion;
  const Computation* c = fusion ? WantCall(q, "calls", q.as<FusionAttrs>().calls, 0)
                                : WantCall(q, "to_apply", q.as<CallAttrs>().to_apply, 0);
  return c == nullptr ? nullptr : RootShape(q, *c);
}

const Shape* InferCustomCall(const Query& q) {
  const auto& a = q.as<CustomCallAttrs>();
  if (!WantDeclared(q)) return nullptr;
  if (a.has_layout_constraints) {
    if (!WantLength(q, "operand_layout_constraints", a.operand_layouts.size(), q.operands.size())) {
      return nullptr;
    }
    for (int i = 0; i < q.num_operands(); ++i) {
      if (a.operand_layouts[i] == nullptr) {
        return Fail(q, "E022", absl::StrCat("operand_layout_constraints ", i, " is wrong"),
                    Text(q.x(i)), "none");
      }
      if (!CompatibleShapes(a.operand_layouts[i], q.x(i))) {
        return Fail(q, "E022", absl::StrCat("operand_layout_constraints ", i, " is wrong"),
                    Text(q.x(i)), Text(a.operand_layouts[i]));
      }
    }
  }
  if (a.target.empty()) {
    return Fail(q, "E022", "custom_call_target is empty", "a target's name", "\"\"");
  }
  if (a.api_version < 0 || a.api_version > 4) {
    return Fail(q, "E022", "api_version is out of range", "0 to 4", absl::StrCat(a.api_version));
  }
  for (CompId c : a.called_computations) {
    if (Callee(q, "called_computations", c) == nullptr) return nullptr;
  }
  return q.declared;
}

const Shape* InferAsyncStart(const Query& q) {
  const auto& a = q.as<AsyncAttrs>();
  const Computation* c = WantCall(q, "calls", a.calls, 0);
  if (c == nullptr || !WantFewLeaves(q)) return nullptr;
  const Shape* operands = q.context.MakeTuple(q.operands);
  const Shape* d = q.declared;
  if (d == nullptr) {
    return q.context.MakeTuple(
        {operands, RootShape(q, *c), q.context.MakeScalar(ElementType::kU32)});
  }
  if (!d->IsTuple() || d->tuple().size() < 2 || !CompatibleShapes(d->tuple()[0], operands) ||
      !CompatibleShapes(d->tuple()[1], RootShape(q, *c))) {
    return Fail(q, "E021", "the result must be (operands, result, ..)",
                absl::StrCat("(", Text(operands), ", ", Text(RootShape(q, *c)), ", ..)"), Text(d));
  }
  return d;
}

const Shape* InferAsyncUpdate(const Query& q) {
  if (!WantOperands(q, 1)) return nullptr;
  return PartOfStart(q, 1, 2) == nullptr ? nullptr : q.x(0);
}

const Shape* InferAsyncDone(const Query& q) {
  return WantOperands(q, 1) ? PartOfStart(q, 1, 2) : nullptr;
}

}  // namespace shape_inference
}  // namespace internal
}  // namespace shardcall
