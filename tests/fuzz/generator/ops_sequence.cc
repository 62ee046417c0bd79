// SPDX-License-Identifier: Apache-2.0

#include "tests/fuzz/generator/ops.h"

namespace shardcall::generator {
namespace {}  // namespace

// A running sum or maximum along one dimension, forwards or backwards; the outputs
// are the carries after each step.
bool Generator::ScanOp(Scope& s) {
  Value v;
  if (!Find(
          s,
          [&](Value x) {
            const Shape* shape = s.b.shape(x.id);
            return shape->rank() >= 1 && x.whole && !IsComplex(shape->element_type()) &&
                   shape->element_type() != ElementType::kPred;
          },
          &v)) {
    return false;
  }
  const ElementType type = TypeOf(s, v);
  const Dims dims = DimsOf(s, v);
  ScanAttrs attrs;
  attrs.dimension = random_.Int(0, static_cast<int64_t>(dims.size()) - 1);
  attrs.num_carries = 1;
  attrs.is_reverse = random_.Chance(30);
  Dims slice = dims;
  slice.erase(slice.begin() + attrs.dimension);
  const Opcode op = random_.Chance(70) ? Opcode::kAdd : Opcode::kMaximum;
  const int64_t steps = dims[attrs.dimension];
  if (!IsInteger(type)) v = Bounded(s, v, op == Opcode::kAdd ? MaxBound(type) / (16.0 * 17) : 64);
  if (v.bound * static_cast<double>(steps + 1) > MaxBound(type)) return false;
  const Value init = Bounded(s, Like(s, type, slice), v.bound);
  const double larger = std::max(v.bound, init.bound);
  const double bound = IsInteger(type)      ? kUnbounded
                       : op == Opcode::kAdd ? larger * static_cast<double>(steps + 1)
                                            : larger;
  if (bound > MaxBound(type)) return false;

  attrs.to_apply = module_.AddComputation("");
  GraphBuilder body(&module_, attrs.to_apply, &monoids_);
  const Shape* part = Array(type, slice);
  const InstrId x = body.Parameter(0, part), carry = body.Parameter(1, part);
  const InstrId next = body.Binary(op, carry, x);
  body.SetRoot(body.Tuple({next, next}));
  const InstrId id = Emit(s, Opcode::kScan, {v.id, init.id}, Intern(attrs),
                          context_->MakeTuple({s.b.shape(v.id), part}));
  if (!id.valid()) return false;
  Push(s, s.b.GetTupleElement(id, 0), bound);
  return Push(s, s.b.GetTupleElement(id, 1), bound);
}

// A dimension that is shorter than its bound, some elementwise work on it, and what
// is known of it again: its size and a sum over what there is.
bool Generator::DynamicSizes(Scope& s) {
  Value v;
  if (s.depth > 0 || !Find(
                         s,
                         [&](Value x) {
                           const Shape* shape = s.b.shape(x.id);
                           return shape->rank() >= 1 && shape->num_elements() > 0 && x.whole &&
                                  (shape->element_type() == ElementType::kF32 ||
                                   shape->element_type() == ElementType::kS32);
                         },
                         &v)) {
    return false;
  }
  v = Bounded(s, v, 64);
  const ElementType type = TypeOf(s, v);
  const Dims dims = DimsOf(s, v);
  const int64_t d = random_.Int(0, static_cast<int64_t>(dims.size()) - 1);
  const InstrId size = s.b.Clamp(Scalar(s, ElementType::kS32, 0), Index(s).id,
                                 Scalar(s, ElementType::kS32, dims[d]));
  DimensionsAttrs dimension;
  const int64_t which[] = {d};
  dimension.dimensions = which;
  const InstrId cut = Emit(s, Opcode::kSetDimensionSize, {v.id, size}, Intern(dimension));
  if (!cut.valid()) return false;
  const InstrId negated = Emit(s, Opcode::kNegate, {cut});
  if (!negated.valid()) return false;
  Push(s, Emit(s, Opcode::kGetDimensionSize, {negated}, Intern(dimension)), 16);
  const InstrId sum = s.b.Reduce(negated, s.b.Zero(type), {d}, Opcode::kAdd);
  return Push(s, sum, IsInteger(type) ? kUnbounded : v.bound * static_cast<double>(dims[d]));
}

}  // namespace shardcall::generator
