// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/fuzz/generator/ops.h"

namespace shardcall::generator {
namespace {}  // namespace

bool Generator::TopkOp(Scope& s) {
  Value v;
  if (!Find(
          s,
          [&](Value x) {
            const ElementType t = TypeOf(s, x);
            const Dims dims = DimsOf(s, x);
            return !dims.empty() && dims.back() > 0 && x.whole && !IsComplex(t) &&
                   t != ElementType::kPred;
          },
          &v)) {
    return false;
  }
  const int64_t extent = DimsOf(s, v).back();
  TopKAttrs attrs;
  attrs.k = random_.Int(1, extent);
  attrs.largest = random_.Chance(70);
  const InstrId top = Emit(s, Opcode::kTopk, {v.id}, Intern(attrs));
  if (!top.valid()) return false;
  Push(s, s.b.GetTupleElement(top, 0), v.bound);
  return Push(s, s.b.GetTupleElement(top, 1), kUnbounded);
}

// Whole numbers of at most 4, and a triangle of at most 2 with ones on its diagonal:
// element i of a solution is at most 4 * 3^i.
bool Generator::TriangularSolveOp(Scope& s) {
  const ElementType type = random_.Chance(70) ? ElementType::kF32 : ElementType::kF64;
  const int64_t n = random_.Int(1, 5);
  Dims a = RandomDims(0, 1), b = a;
  a.insert(a.end(), {n, n});
  const bool left = random_.Chance(50);
  const int64_t other = random_.Int(1, 6);
  b.insert(b.end(), {left ? n : other, left ? other : n});
  TriangularSolveAttrs attrs;
  attrs.left_side = left;
  attrs.lower = random_.Chance(50);
  attrs.unit_diagonal = true;
  attrs.transpose_a = random_.Chance(50) ? "NO_TRANSPOSE" : "TRANSPOSE";
  const Value triangle = Bounded(s, Like(s, type, a), 2), right = Bounded(s, Like(s, type, b), 4);
  return Push(s, Emit(s, Opcode::kTriangularSolve, {triangle.id, right.id}, Intern(attrs)),
              4 * std::pow(3.0, static_cast<double>(n)));
}

// Of L * transpose(L), where L is a triangle of small whole numbers with ones on its
// diagonal: the result is L itself, exactly.
bool Generator::CholeskyOp(Scope& s) {
  const ElementType type = random_.Chance(70) ? ElementType::kF32 : ElementType::kF64;
  const int64_t n = random_.Int(1, 5);
  const Dims square = {n, n};
  const InstrId row = s.b.Iota(ElementType::kS32, square, 0);
  const InstrId column = s.b.Iota(ElementType::kS32, square, 1);
  const Shape* shape = Array(type, square);
  const InstrId zero = s.b.BroadcastScalar(Scalar(s, type, 0), shape);
  const InstrId one = s.b.BroadcastScalar(Scalar(s, type, 1), shape);
  const Value entries = Bounded(s, Like(s, type, square), 2);
  const InstrId below = s.b.Select(s.b.Compare(Direction::kGt, row, column), entries.id, zero);
  const InstrId triangle = s.b.Select(s.b.Compare(Direction::kEq, row, column), one, below);
  DotAttrs product;
  const int64_t columns[] = {1};
  product.lhs_contracting = columns;
  product.rhs_contracting = columns;
  InstrId matrix = s.b.Dot(triangle, triangle, product);
  if (random_.Chance(50)) {
    const int64_t batch = random_.Int(1, 8);
    matrix = s.b.Broadcast(matrix, {batch, n, n}, {1, 2});
  }
  Annotate(s, matrix);
  CholeskyAttrs attrs;
  attrs.lower = random_.Chance(50);
  const InstrId factor = Emit(s, Opcode::kCholesky, {matrix}, Intern(attrs));
  if (!factor.valid()) return false;
  // The other triangle is not defined.
  const Shape* whole = s.b.shape(factor);
  const int rank = whole->rank();
  const InstrId i = s.b.Iota(ElementType::kS32, whole->dims(), rank - 2);
  const InstrId j = s.b.Iota(ElementType::kS32, whole->dims(), rank - 1);
  const InstrId known = s.b.Compare(attrs.lower ? Direction::kGe : Direction::kLe, i, j);
  return Push(s, s.b.Select(known, factor, s.b.BroadcastScalar(Scalar(s, type, 0), whole)), 2);
}

bool Generator::FftOp(Scope& s) {
  Dims dims = RandomDims(1, 3);
  if (dims.back() == 0) return false;
  FftAttrs attrs;
  const int64_t length[] = {dims.back()};
  attrs.length = length;
  const bool real = random_.Chance(50);
  attrs.type = real ? FftType::kRfft : (random_.Chance(50) ? FftType::kFft : FftType::kIfft);
  const Value x = Bounded(s, Like(s, ElementType::kF32, dims), 64);
  InstrId in = x.id;
  if (!real) {
    const Value y = Bounded(s, Like(s, ElementType::kF32, dims), 64);
    in = Emit(s, Opcode::kComplex, {x.id, y.id});
    if (!in.valid()) return false;
  }
  const InstrId out = Emit(s, Opcode::kFft, {in}, Intern(attrs));
  if (!out.valid()) return false;
  return Push(s, Emit(s, random_.Chance(50) ? Opcode::kReal : Opcode::kImag, {out}), kUnbounded,
              false);
}

}  // namespace shardcall::generator
