// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall {
inline namespace internal {

bool CompatibleShapes(const Shape* a, const Shape* b) {
  if (a->bare() == b->bare()) return true;
  // Different interned shapes can be compatible only if dimensions are dynamic.
  std::vector<std::pair<const Shape*, const Shape*>> stack = {{a->bare(), b->bare()}};
  while (!stack.empty()) {
    const auto [x, y] = stack.back();
    stack.pop_back();
    if (x == y) continue;
    if (x->element_type() != y->element_type() || x->rank() != y->rank() ||
        x->tuple().size() != y->tuple().size()) {
      return false;
    }
    for (int i = 0; i < x->rank(); ++i) {
      if (x->dim(i) != y->dim(i) && x->dim(i) != kUnboundedDim && y->dim(i) != kUnboundedDim) {
        return false;
      }
    }
    for (size_t i = 0; i < x->tuple().size(); ++i) {
      stack.emplace_back(x->tuple()[i]->bare(), y->tuple()[i]->bare());
    }
  }
  return true;
}

}  // namespace internal
}  // namespace shardcall

namespace shardcall {
inline namespace internal {
namespace shape_inference {

const Shape* Fail(const Query& q, absl::string_view code, absl::string_view message,
                  std::string expected, std::string found, std::string fix) {
  *q.error = Diagnostic{.code = std::string(code),
                        .message = absl::StrCat(OpcodeText(q.opcode), ": ", message),
                        .where = "",
                        .expected = std::move(expected),
                        .found = std::move(found),
                        .fix = std::move(fix),
                        .excerpt = ""};
  return nullptr;
}

std::string Brackets(absl::Span<const int64_t> values) {
  if (values.size() > 16) {
    return absl::StrCat("{", absl::StrJoin(values.subspan(0, 16), ","), ",..}");
  }
  return absl::StrCat("{", absl::StrJoin(values, ","), "}");
}

std::string Text(const Shape* shape) {
  if (shape == nullptr) return "none";
  // A tuple of thousands of leaves would make the message unreadable.
  if (shape->num_leaves() > 32) return absl::StrCat("a tuple of ", shape->num_leaves(), " leaves");
  return shape->ToString(/*with_layout=*/false);
}

bool WantOperands(const Query& q, int count) {
  if (q.num_operands() == count) return true;
  Fail(q, "E021", "wrong number of operands", absl::StrCat(count), absl::StrCat(q.num_operands()));
  return false;
}

bool WantAtLeast(const Query& q, int count) {
  if (q.num_operands() >= count) return true;
  Fail(q, "E021", "too few operands", absl::StrCat("at least ", count),
       absl::StrCat(q.num_operands()));
  return false;
}

bool WantArray(const Query& q, int operand) {
  if (q.x(operand)->IsArray()) return true;
  Fail(q, "E021", absl::StrCat("operand ", operand, " must be an array"), "an array",
       Text(q.x(operand)));
  return false;
}

bool WantArrays(const Query& q) {
  for (int i = 0; i < q.num_operands(); ++i) {
    if (!WantArray(q, i)) return false;
  }
  return true;
}

bool WantFewLeaves(const Query& q) {
  int64_t leaves = 0;
  for (const Shape* x : q.operands) leaves += x->num_leaves();
  if (leaves <= kMaxLeaves) return true;
  Fail(q, "E021", "the tuple is too large", absl::StrCat("at most ", kMaxLeaves, " leaves"),
       absl::StrCat(leaves));
  return false;
}

bool WantScalar(const Query& q, int operand) {
  if (!WantArray(q, operand)) return false;
  if (q.x(operand)->rank() == 0) return true;
  Fail(q, "E021", absl::StrCat("operand ", operand, " must be a scalar"), "a scalar",
       Text(q.x(operand)));
  return false;
}

bool WantSameType(const Query& q, int a, int b) {
  if (q.x(a)->element_type() == q.x(b)->element_type()) return true;
  Fail(q, "E021", absl::StrCat("operands ", a, " and ", b, " have different element types"),
       Text(q.x(a)), Text(q.x(b)), "insert a convert");
  return false;
}

bool WantSameDims(const Query& q, int a, int b) {
  if (SameDims(q.x(a), q.x(b))) return true;
  Fail(q, "E021", absl::StrCat("operands ", a, " and ", b, " have different dimensions"),
       Text(q.x(a)), Text(q.x(b)), "insert a broadcast");
  return false;
}

bool WantDeclared(const Query& q) {
  if (q.declared != nullptr) return true;
  Fail(q, "E021", "the result's shape does not follow from the operands", "a written shape", "none",
       "write the shape before the opcode");
  return false;
}

bool WantDeclaredArray(const Query& q) {
  if (!WantDeclared(q)) return false;
  if (q.declared->IsArray()) return true;
  Fail(q, "E021", "the result must be an array", "an array", Text(q.declared));
  return false;
}

bool WantDeclaredType(const Query& q, ElementType type) {
  if (q.declared->element_type() == type) return true;
  Fail(q, "E021", "the result must have the operand's element type",
       std::string(ElementTypeName(type)), Text(q.declared), "insert a convert");
  return false;
}

bool WantToken(const Query& q, int operand) {
  if (q.x(operand)->IsToken()) return true;
  Fail(q, "E021", absl::StrCat("operand ", operand, " must be a token"), "token[]",
       Text(q.x(operand)));
  return false;
}

const Shape* PartOfStart(const Query& q, int index, int count) {
  const Shape* x = q.x(0);
  if (x->IsTuple() && x->tuple().size() >= count) return x->tuple()[index];
  return Fail(q, "E021", "the operand must be the result of the matching start",
              absl::StrCat("a tuple of at least ", count), Text(x));
}

bool WantDim(const Query& q, absl::string_view attribute, int64_t dim, int rank) {
  if (dim >= 0 && dim < rank) return true;
  Fail(q, "E022", absl::StrCat(attribute, " is out of range"),
       absl::StrCat("a dimension in [0,", rank, ")"), absl::StrCat(dim));
  return false;
}

bool WantDims(const Query& q, absl::string_view attribute, absl::Span<const int64_t> dims,
              int rank) {
  absl::InlinedVector<bool, 16> seen(rank, false);
  for (int64_t d : dims) {
    if (!WantDim(q, attribute, d, rank)) return false;
    if (seen[d]) {
      Fail(q, "E022", absl::StrCat(attribute, " names a dimension twice"), "each at most once",
           Brackets(dims));
      return false;
    }
    seen[d] = true;
  }
  return true;
}

bool WantLength(const Query& q, absl::string_view attribute, size_t found, size_t expected) {
  if (found == expected) return true;
  Fail(q, "E022", absl::StrCat(attribute, " has the wrong number of entries"),
       absl::StrCat(expected), absl::StrCat(found));
  return false;
}

bool SameDims(const Shape* a, const Shape* b) {
  if (a->bare() == b->bare()) return true;
  if (a->rank() != b->rank()) return false;
  for (int i = 0; i < a->rank(); ++i) {
    if (a->dim(i) != b->dim(i) && a->dim(i) != kUnboundedDim && b->dim(i) != kUnboundedDim) {
      return false;
    }
  }
  return true;
}

bool SameTypeButPrecision(ElementType a, ElementType b) {
  return a == b || (IsFloat(a) && IsFloat(b));
}

ElementType RealTypeOf(ElementType complex) {
  return complex == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
}

const Shape* MakeResult(const Query& q, ElementType type, absl::Span<const int64_t> dims) {
  return MakeResult(q, type, dims, {});
}

const Shape* MakeResult(const Query& q, ElementType type, absl::Span<const int64_t> dims,
                        absl::Span<const bool> dynamic) {
  Dims layout;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) layout.push_back(i);
  return q.context.MakeArray(type, dims, layout, "", dynamic);
}

const Shape* OneOrTuple(const Query& q, absl::Span<const Shape* const> shapes) {
  return shapes.size() == 1 ? shapes[0] : q.context.MakeTuple(shapes);
}

namespace {

bool Known(const Query& q, InstrId id) {
  return id.value < static_cast<uint32_t>(q.module.num_instructions());
}

}  // namespace

const Computation* Callee(const Query& q, absl::string_view attribute, CompId id) {
  if (!id.valid() || id.value >= static_cast<uint32_t>(q.module.num_computations())) {
    Fail(q, "E024", absl::StrCat(attribute, " names no computation of the module"), "a computation",
         "none");
    return nullptr;
  }
  const Computation& c = q.module.comp(id);
  if (Known(q, c.root)) return &c;
  Fail(q, "E024", absl::StrCat(attribute, "=", c.name, " has no root"), "a root", "none");
  return nullptr;
}

const Shape* ParameterShape(const Query& q, const Computation& c, int number) {
  return q.module.instr(c.parameters[number]).shape;
}

const Shape* RootShape(const Query& q, const Computation& c) {
  return q.module.instr(c.root).shape;
}

bool WantParameters(const Query& q, absl::string_view attribute, const Computation& c, int count) {
  if (c.parameters.size() == count) {
    for (InstrId p : c.parameters) {
      if (Known(q, p)) continue;
      Fail(q, "E024", absl::StrCat(attribute, "=", c.name, " lacks a parameter"),
           "numbers dense from 0", "a gap");
      return false;
    }
    return true;
  }
  Fail(q, "E024", absl::StrCat(attribute, "=", c.name, " has the wrong number of parameters"),
       absl::StrCat(count), absl::StrCat(c.parameters.size()));
  return false;
}

bool WantParameter(const Query& q, absl::string_view attribute, const Computation& c, int number,
                   const Shape* shape) {
  const Shape* found = ParameterShape(q, c, number);
  if (CompatibleShapes(found, shape)) return true;
  Fail(q, "E024",
       absl::StrCat("parameter ", number, " of ", attribute, "=", c.name,
                    " does not match what is passed to it"),
       Text(shape), Text(found));
  return false;
}

bool WantScalarParameter(const Query& q, absl::string_view attribute, const Computation& c,
                         int number, ElementType type) {
  const Shape* found = ParameterShape(q, c, number);
  if (found->IsArray() && found->rank() == 0 && SameTypeButPrecision(found->element_type(), type)) {
    return true;
  }
  Fail(q, "E024", absl::StrCat("parameter ", number, " of ", attribute, "=", c.name, " is wrong"),
       absl::StrCat(ElementTypeName(type), "[]"), Text(found));
  return false;
}

bool WantReducer(const Query& q, absl::string_view attribute, CompId id,
                 absl::Span<const ElementType> accumulators, absl::Span<const ElementType> values,
                 absl::InlinedVector<ElementType, 2>* results) {
  const int k = static_cast<int>(accumulators.size());
  const Computation* c = Callee(q, attribute, id);
  if (c == nullptr || !WantParameters(q, attribute, *c, 2 * k)) return false;
  const Shape* root = RootShape(q, *c);
  if (k == 1 ? root->IsTuple() : !root->IsTuple() || root->tuple().size() != k) {
    Fail(q, "E024", absl::StrCat(attribute, "=", c->name, " has the wrong result"),
         absl::StrCat(k, k == 1 ? " scalar" : " scalars in a tuple"), Text(root));
    return false;
  }
  for (int i = 0; i < k; ++i) {
    if (!WantScalarParameter(q, attribute, *c, i, accumulators[i]) ||
        !WantScalarParameter(q, attribute, *c, k + i, values[i])) {
      return false;
    }
    const Shape* result = root->IsTuple() ? root->tuple()[i] : root;
    if (!result->IsArray() || result->rank() != 0 ||
        !SameTypeButPrecision(result->element_type(), accumulators[i])) {
      Fail(q, "E024", absl::StrCat("result ", i, " of ", attribute, "=", c->name, " is wrong"),
           absl::StrCat(ElementTypeName(accumulators[i]), "[]"), Text(result));
      return false;
    }
    if (results != nullptr) results->push_back(result->element_type());
  }
  return true;
}

}  // namespace shape_inference
}  // namespace internal
}  // namespace shardcall
