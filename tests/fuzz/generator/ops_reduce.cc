// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "tests/fuzz/generator/ops.h"

namespace shardcall::generator {
namespace {

std::vector<Opcode> MonoidsOf(ElementType type, bool whole) {
  if (type == ElementType::kPred) return {Opcode::kAnd, Opcode::kOr, Opcode::kXor};
  if (IsComplex(type)) return {Opcode::kAdd};
  if (!whole) return {Opcode::kMaximum, Opcode::kMinimum};
  if (IsInteger(type)) {
    return {Opcode::kAdd,      Opcode::kAdd, Opcode::kMaximum, Opcode::kMinimum,
            Opcode::kMultiply, Opcode::kAnd, Opcode::kOr,      Opcode::kXor};
  }
  return {Opcode::kAdd, Opcode::kAdd, Opcode::kMaximum, Opcode::kMinimum};
}

// Of `count` elements of that bound and an init of that bound.
double ReducedBound(Opcode op, ElementType type, double bound, double init, int64_t count) {
  if (type == ElementType::kPred) return 1;
  if (op == Opcode::kMaximum || op == Opcode::kMinimum) return std::max(bound, init);
  if (op == Opcode::kAdd) {
    const double sum = bound * static_cast<double>(count) + init;
    return IsInteger(type) && sum > 100 ? kUnbounded : sum;
  }
  return kUnbounded;
}

}  // namespace

// A computation over scalars, `parameters_of_each` in turn of each type: a
// comparison of the first type's, or the element-wise choice by it.
CompId Generator::ScalarComputation(int parameters_of_each, const std::vector<ElementType>& types,
                                    bool compare) {
  const CompId comp = module_.AddComputation("");
  GraphBuilder b(&module_, comp, &monoids_);
  std::vector<InstrId> p;
  const int n = static_cast<int>(types.size());
  for (int k = 0; k < parameters_of_each * n; ++k) {
    // Sort interleaves (a0, b0, a1, b1); reduce has all left, then all right.
    const ElementType t = compare ? types[k / 2] : types[k % n];
    p.push_back(b.Parameter(k, context_->MakeScalar(t)));
  }
  if (compare) {
    b.SetRoot(b.Compare(random_.Chance(70) ? Direction::kLt : Direction::kGt, p[0], p[1]));
    return comp;
  }
  // The larger first one, at equality the smaller second one: associative and
  // commutative.
  const InstrId greater = b.Compare(Direction::kGt, p[0], p[n]);
  const InstrId equal = b.Compare(Direction::kEq, p[0], p[n]);
  const InstrId less = b.Compare(Direction::kLt, p[1], p[n + 1]);
  const InstrId left = b.Binary(Opcode::kOr, greater, b.Binary(Opcode::kAnd, equal, less));
  std::vector<InstrId> out;
  for (int k = 0; k < n; ++k) out.push_back(b.Select(left, p[k], p[n + k]));
  b.SetRoot(b.Tuple(out));
  return comp;
}

bool Generator::ReduceOp(Scope& s) {
  Value v;
  if (!Find(s, [&](Value x) { return s.b.shape(x.id)->rank() >= 1; }, &v)) return false;
  const ElementType type = TypeOf(s, v);
  const int rank = s.b.shape(v.id)->rank();
  const Dims over = random_.Subset(rank, random_.Int(1, rank));
  int64_t count = 1;
  for (int64_t d : over) count *= s.b.shape(v.id)->dim(static_cast<int>(d));
  const Opcode op = random_.Pick(MonoidsOf(type, v.whole));
  Value init{InstrId(), 0, true};
  if (v.whole && !IsComplex(type) && random_.Chance(15)) {
    init = Like(s, type, {});
  } else {
    if (IdentityLiteral(*context_, op, type) == nullptr) return false;
    init.id = s.b.Identity(op, type);
    // An empty reduction gives the identity itself.
    if (count == 0 && op != Opcode::kAdd) return false;
  }
  const double bound = ReducedBound(op, type, v.bound, init.bound, count);
  if (!IsInteger(type) && v.whole && bound > MaxBound(type)) return false;
  return Push(s, s.b.Reduce(v.id, init.id, over, op), bound, v.whole);
}

// Two arrays at once: the largest and where it stands.
bool Generator::ReduceMany(Scope& s) {
  Value v;
  if (!Find(
          s,
          [&](Value x) {
            const Shape* shape = s.b.shape(x.id);
            return shape->rank() >= 1 && shape->num_elements() > 0 && x.whole &&
                   (IsInteger(shape->element_type()) || IsFloat(shape->element_type()));
          },
          &v)) {
    return false;
  }
  const ElementType type = TypeOf(s, v);
  const Dims dims = DimsOf(s, v);
  const int64_t d = random_.Int(0, static_cast<int64_t>(dims.size()) - 1);
  const InstrId index = s.b.Iota(ElementType::kS32, dims, d);
  if (IdentityLiteral(*context_, Opcode::kMaximum, type) == nullptr) return false;
  ReduceAttrs attrs;
  attrs.dimensions = absl::MakeConstSpan(&d, 1);
  attrs.to_apply = ScalarComputation(2, {type, ElementType::kS32}, false);
  const InstrId both = Emit(s, Opcode::kReduce,
                            {v.id, index, s.b.Identity(Opcode::kMaximum, type),
                             Scalar(s, ElementType::kS32, std::numeric_limits<int32_t>::max())},
                            Intern(attrs));
  if (!both.valid()) return false;
  Push(s, s.b.GetTupleElement(both, 1), 16);
  return Push(s, s.b.GetTupleElement(both, 0), v.bound);
}

bool Generator::ReduceWindowOp(Scope& s) {
  Value v;
  if (!Find(
          s,
          [&](Value x) {
            const Shape* shape = s.b.shape(x.id);
            return shape->rank() >= 1 && shape->num_elements() > 0;
          },
          &v)) {
    return false;
  }
  const ElementType type = TypeOf(s, v);
  const Dims dims = DimsOf(s, v);
  Dims size, stride, low, high, lhs, rhs, reversal;
  int64_t count = 1;
  const bool cumulative = random_.Chance(25);
  const int64_t along = random_.Int(0, static_cast<int64_t>(dims.size()) - 1);
  for (size_t k = 0; k < dims.size(); ++k) {
    const bool used = cumulative ? static_cast<int64_t>(k) == along : random_.Chance(60);
    int64_t n = 1, st = 1, l = 0, h = 0, ld = 1, rd = 1;
    if (used && cumulative) {
      n = dims[k];
      (random_.Chance(50) ? l : h) = n - 1;
    } else if (used) {
      n = random_.Int(1, std::min<int64_t>(4, dims[k]));
      st = random_.Int(1, 3);
      l = random_.Int(0, n - 1);
      h = random_.Int(0, n - 1);
      if (random_.Chance(20)) ld = random_.Int(1, 3);
      if (random_.Chance(20)) rd = random_.Int(1, 2);
      const int64_t base = (dims[k] - 1) * ld + 1 + l + h;
      if (base < (n - 1) * rd + 1) n = 1, l = h = 0;
    }
    size.push_back(n), stride.push_back(st), low.push_back(l), high.push_back(h);
    lhs.push_back(ld), rhs.push_back(rd), reversal.push_back(0);
    count *= n;
  }
  const Opcode op = random_.Pick(MonoidsOf(type, v.whole));
  if (IdentityLiteral(*context_, op, type) == nullptr) return false;
  const double bound = ReducedBound(op, type, v.bound, 0, count);
  if (!IsInteger(type) && v.whole && bound > MaxBound(type)) return false;
  // A window that holds no element gives the identity: an infinity for maximum,
  // so such results are not summed.
  const bool whole = v.whole && op != Opcode::kMaximum && op != Opcode::kMinimum;
  ReduceWindowAttrs attrs;
  attrs.window = {size, stride, low, high, lhs, rhs, reversal};
  attrs.to_apply = monoids_.Get(op, type);
  const InstrId id = Emit(s, Opcode::kReduceWindow, {v.id, s.b.Identity(op, type)}, Intern(attrs));
  return Push(s, id, IsInteger(type) ? kUnbounded : bound,
              whole || IsInteger(type) || type == ElementType::kPred);
}

bool Generator::SelectAndScatterOp(Scope& s) {
  Value v;
  if (!Find(
          s,
          [&](Value x) {
            const Shape* shape = s.b.shape(x.id);
            return shape->rank() >= 1 && shape->num_elements() > 0 && x.whole &&
                   (IsInteger(shape->element_type()) || shape->element_type() == ElementType::kF32);
          },
          &v)) {
    return false;
  }
  const ElementType type = TypeOf(s, v);
  Dims size, stride, low, high, source;
  for (int64_t d : DimsOf(s, v)) {
    const int64_t n = random_.Chance(50) ? 1 : random_.Int(1, std::min<int64_t>(3, d));
    const int64_t st = random_.Int(1, std::max<int64_t>(n, 1));
    size.push_back(n), stride.push_back(st), low.push_back(0), high.push_back(0);
    source.push_back((d - n) / st + 1);
  }
  const Value w = Bounded(s, Like(s, type, source), 64);
  const Dims ones(size.size(), 1), zeros(size.size(), 0);
  SelectAndScatterAttrs attrs;
  attrs.window = {size, stride, low, high, ones, ones, zeros};
  const CompId select = module_.AddComputation("");
  GraphBuilder b(&module_, select, &monoids_);
  const InstrId left = b.Parameter(0, context_->MakeScalar(type));
  const InstrId right = b.Parameter(1, context_->MakeScalar(type));
  b.SetRoot(b.Compare(Direction::kGe, left, right));
  attrs.select = select;
  attrs.scatter = monoids_.Get(Opcode::kAdd, type);
  return Push(s,
              Emit(s, Opcode::kSelectAndScatter, {v.id, w.id, Scalar(s, type, 0)}, Intern(attrs)),
              IsInteger(type) ? kUnbounded : 64 * 27);
}

bool Generator::SortOp(Scope& s) {
  Value v;
  if (!Find(
          s,
          [&](Value x) {
            const ElementType t = TypeOf(s, x);
            return s.b.shape(x.id)->rank() >= 1 && x.whole && !IsComplex(t) &&
                   t != ElementType::kPred;
          },
          &v)) {
    return false;
  }
  const Dims dims = DimsOf(s, v);
  SortAttrs attrs;
  attrs.dimension = random_.Int(0, static_cast<int64_t>(dims.size()) - 1);
  attrs.is_stable = true;
  std::vector<Value> operands = {v};
  std::vector<ElementType> types = {TypeOf(s, v)};
  for (int64_t k = random_.Int(0, 2); k > 0; --k) {
    types.push_back(RandomType());
    operands.push_back(Like(s, types.back(), dims));
  }
  attrs.to_apply = ScalarComputation(2, types, true);
  std::vector<InstrId> ids;
  for (const Value& o : operands) ids.push_back(o.id);
  const InstrId sorted = Emit(s, Opcode::kSort, ids, Intern(attrs));
  if (!sorted.valid()) return false;
  if (operands.size() == 1) return Push(s, sorted, v.bound);
  for (size_t k = 0; k < operands.size(); ++k) {
    Push(s, s.b.GetTupleElement(sorted, static_cast<int64_t>(k)), operands[k].bound);
  }
  return true;
}

bool Generator::RandomBits(Scope& s) {
  RngBitGeneratorAttrs attrs;
  attrs.algorithm = random_.Chance(50) ? "rng_three_fry" : "rng_philox";
  const int64_t words = attrs.algorithm == "rng_philox" && random_.Chance(50) ? 3 : 2;
  const InstrId seed = s.b.Broadcast(Scalar(s, ElementType::kU64, random_.Int(0, 9)), {words}, {});
  const Shape* bits =
      Array(random_.Chance(70) ? ElementType::kU32 : ElementType::kU64, RandomDims(0, 3));
  const Shape* both[] = {s.b.shape(seed), bits};
  const InstrId id =
      Emit(s, Opcode::kRngBitGenerator, {seed}, Intern(attrs), context_->MakeTuple(both));
  return id.valid() && Push(s, s.b.GetTupleElement(id, 1), kUnbounded);
}

}  // namespace shardcall::generator
