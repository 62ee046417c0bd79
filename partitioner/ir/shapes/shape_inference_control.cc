// SPDX-License-Identifier: Apache-2.0
// Shape inference of tuples, of ops that call whole computations, of
// asynchronous pairs and of transfers to and from the host.
#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall::shape_inference {
namespace {

// Element `index` of operand 0, a tuple with at least `count` elements.
const Shape* Part(const Query& q, int index, int count) {
  const Shape* x = q.x(0);
  if (x->IsTuple() && x->tuple().size() >= count) return x->tuple()[index];
  return Fail(q, "E021", "the operand must be the result of the matching start",
              absl::StrCat("a tuple of at least ", count), Text(x));
}

bool WantToken(const Query& q, int operand) {
  if (q.x(operand)->IsToken()) return true;
  Fail(q, "E021", absl::StrCat("operand ", operand, " must be a token"), "token[]",
       Text(q.x(operand)));
  return false;
}

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
  if (q.opcode == Opcode::kAfterAll) {
    for (int i = 0; i < q.num_operands(); ++i) {
      if (!WantToken(q, i)) return nullptr;
    }
    return q.context.MakeToken();
  }
  if (q.opcode == Opcode::kAddDependency) return WantToken(q, 1) ? q.x(0) : nullptr;
  return WantFewLeaves(q) ? q.context.MakeTuple(q.operands) : nullptr;
}

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

const Shape* InferAsync(const Query& q) {
  const auto& a = q.as<AsyncAttrs>();
  if (q.opcode != Opcode::kAsyncStart) {
    if (!WantOperands(q, 1)) return nullptr;
    const Shape* result = Part(q, 1, 2);
    return q.opcode == Opcode::kAsyncDone || result == nullptr ? result : q.x(0);
  }
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

const Shape* InferTransfer(const Query& q) {
  const Shape* token = q.context.MakeToken();
  const Shape* u32 = q.context.MakeScalar(ElementType::kU32);
  switch (q.opcode) {
    case Opcode::kInfeed:
    case Opcode::kRecv: {
      const size_t parts = q.opcode == Opcode::kInfeed ? 2 : 3;
      if (!WantToken(q, 0) || !WantDeclared(q)) return nullptr;
      const Shape* d = q.declared;
      if (!d->IsTuple() || d->tuple().size() != parts) {
        return Fail(q, "E021", "the result has the wrong form",
                    parts == 2 ? "(data, token[])" : "(data, u32[], token[])", Text(d));
      }
      return parts == 2 ? q.context.MakeTuple({d->tuple()[0], token})
                        : q.context.MakeTuple({d->tuple()[0], u32, token});
    }
    case Opcode::kOutfeed: {
      const Shape* shape = q.as<OutfeedAttrs>().shape;
      if (!WantToken(q, 1)) return nullptr;
      if (shape != nullptr && !CompatibleShapes(shape, q.x(0))) {
        return Fail(q, "E022", "outfeed_shape is not the operand's", Text(q.x(0)), Text(shape));
      }
      return token;
    }
    case Opcode::kSend:
      return WantToken(q, 1) ? q.context.MakeTuple({q.x(0), u32, token}) : nullptr;
    case Opcode::kSendDone: return Part(q, 2, 3) == nullptr ? nullptr : token;
    case Opcode::kRecvDone: {
      const Shape* data = Part(q, 0, 3);
      return data == nullptr ? nullptr : q.context.MakeTuple({data, token});
    }
    case Opcode::kCopyStart: return q.context.MakeTuple({q.x(0), q.x(0), u32});
    default:  // copy-done
      return Part(q, 0, 2);
  }
}

}  // namespace shardcall::shape_inference
