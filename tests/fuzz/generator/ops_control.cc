// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/fuzz/generator/ops.h"

namespace shardcall::generator {
namespace {}  // namespace

CompId Generator::Body(const std::vector<const Shape*>& parameters, const std::vector<Value>& known,
                       const std::vector<Wanted>& wanted, bool as_tuple, bool counter, int depth) {
  const CompId comp = module_.AddComputation("");
  Scope s(&module_, comp, &monoids_, depth);
  std::vector<InstrId> ids;
  if (as_tuple) {
    const InstrId tuple = s.b.Parameter(0, context_->MakeTuple(parameters));
    for (size_t k = 0; k < parameters.size(); ++k) {
      TupleIndexAttrs index;
      index.index = static_cast<int64_t>(k);
      ids.push_back(Emit(s, Opcode::kGetTupleElement, {tuple}, Intern(index)));
    }
  } else {
    for (size_t k = 0; k < parameters.size(); ++k) {
      ids.push_back(s.b.Parameter(static_cast<int64_t>(k), parameters[k]));
    }
  }
  for (size_t k = 0; k < ids.size(); ++k) {
    Value v = known[k];
    v.id = ids[k];
    if (counter && k == 0) v.bound = 8;
    const bool accumulated = counter && k > 0 && wanted[k - 1].added > 0;
    if (!accumulated) s.values.push_back(v);
  }
  const size_t given = s.values.size();
  const InstrId count = counter ? ids[0] : InstrId();
  Steps(s, static_cast<int>(random_.Int(1, 4)));
  std::vector<InstrId> results;
  if (counter) {
    results.push_back(s.b.Binary(Opcode::kAdd, count, Scalar(s, ElementType::kS32, 1)));
  }
  for (const Wanted& w : wanted) {
    if (w.added > 0) DotOp(s);  // a sum over shards, often
    // The latest value that fits comes first, so that what was made is used.
    Value v = Like(s, w.type, w.dims);
    for (size_t k = s.values.size(); k-- > given && random_.Chance(70);) {
      const Value& made = s.values[k];
      if (made.whole && !IsComplex(TypeOf(s, made))) {
        v = Fit(s, ToType(s, made, w.type), w.dims);
        break;
      }
    }
    if (!IsInteger(w.type)) v = Bounded(s, v, w.added > 0 ? w.added : w.bound);
    if (w.added > 0) {
      const Opcode op = random_.Chance(80) ? Opcode::kAdd : Opcode::kSubtract;
      v.id = s.b.Binary(op, ids[results.size()], v.id);
    }
    const bool annotated = options_.shardings && !fused_ && random_.Chance(25);
    results.push_back(annotated ? Annotated(s, v.id) : v.id);
  }
  if (results.size() == 1 && !counter) {
    s.b.SetRoot(results[0]);
  } else {
    s.b.SetRoot(s.b.Tuple(results));
  }
  return comp;
}

bool Generator::WhileOp(Scope& s) {
  std::vector<const Shape*> shapes = {context_->MakeScalar(ElementType::kS32)};
  std::vector<InstrId> init = {Scalar(s, ElementType::kS32, 0)};
  std::vector<Value> known = {{InstrId(), 8, true}};
  std::vector<Wanted> wanted;
  for (int64_t k = random_.Int(1, 3); k > 0; --k) {
    Value v;
    if (!Find(s, [&](Value x) { return x.whole && !IsComplex(TypeOf(s, x)); }, &v)) continue;
    const ElementType type = TypeOf(s, v);
    const double bound = IsInteger(type) ? kUnbounded : std::max(v.bound, 4.0);
    // What a body makes is clamped to this, in whole numbers.
    if (!IsInteger(type) && bound > 900) v = Bounded(s, v, 900);
    const double carried = IsInteger(type) ? kUnbounded : std::min(bound, 900.0);
    // Some are only added to, for which there is room.
    const bool room = type != ElementType::kPred && MaxBound(type) > 900;
    const bool accumulated = room && random_.Chance(40);
    if (accumulated && !IsInteger(type)) v = Bounded(s, v, 400);
    // Sums often begin with what each device can generate.
    if (accumulated && random_.Chance(40)) {
      const Dims dims = DimsOf(s, v);
      v.id = Scalar(s, type, random_.Int(0, 3));
      if (!dims.empty()) v.id = s.b.Broadcast(v.id, dims, {});
    }
    shapes.push_back(s.b.shape(v.id));
    init.push_back(v.id);
    known.push_back({InstrId(), carried, true});
    const double whole = IsInteger(type) ? kUnbounded : 800;
    wanted.push_back({type, DimsOf(s, v), accumulated ? whole : carried, accumulated ? 100.0 : 0});
  }
  if (wanted.empty()) return false;
  WhileAttrs attrs;
  attrs.body = Body(shapes, known, wanted, true, true, s.depth + 1);
  attrs.condition = module_.AddComputation("");
  GraphBuilder b(&module_, attrs.condition, &monoids_);
  TupleIndexAttrs first;
  const InstrId tuple = b.Parameter(0, context_->MakeTuple(shapes));
  const InstrId count = b.Add(Opcode::kGetTupleElement, {tuple}, Intern(first));
  b.SetRoot(b.Compare(Direction::kLt, count, b.ConstantInt(ElementType::kS32, random_.Int(0, 4))));
  const InstrId loop = Emit(s, Opcode::kWhile, {s.b.Tuple(init)}, Intern(attrs));
  if (!loop.valid()) return false;
  for (size_t k = 0; k < wanted.size(); ++k) {
    Push(s, s.b.GetTupleElement(loop, static_cast<int64_t>(k) + 1), wanted[k].bound);
  }
  return true;
}

bool Generator::ConditionalOp(Scope& s) {
  ConditionalAttrs attrs;
  attrs.is_pred = random_.Chance(50);
  const int branches = attrs.is_pred ? 2 : static_cast<int>(random_.Int(1, 3));
  std::vector<InstrId> operands = {attrs.is_pred ? Like(s, ElementType::kPred, {}).id
                                                 : Index(s).id};
  std::vector<Wanted> wanted;
  for (int64_t k = random_.Int(1, 2); k > 0; --k) {
    ElementType type = RandomType();
    if (IsComplex(type)) type = ElementType::kF32;
    wanted.push_back({type, RandomDims(0, 3), IsInteger(type) ? kUnbounded : 8});
  }
  std::vector<CompId> comps;
  for (int k = 0; k < branches; ++k) {
    const Value v = Any(s), w = Any(s);
    const bool tuple = random_.Chance(40);
    operands.push_back(tuple ? s.b.Tuple({v.id, w.id}) : v.id);
    std::vector<const Shape*> shapes = {s.b.shape(v.id)};
    if (tuple) shapes.push_back(s.b.shape(w.id));
    comps.push_back(Body(shapes, {v, w}, wanted, tuple, false, s.depth + 1));
  }
  attrs.branches = comps;
  const InstrId id = Emit(s, Opcode::kConditional, operands, Intern(attrs));
  if (!id.valid()) return false;
  return PushResults(s, id, wanted);
}

Generator::Arguments Generator::SomeArguments(Scope& s) {
  Arguments a;
  for (int64_t k = random_.Int(1, 3); k > 0; --k) {
    a.known.push_back(Any(s));
    a.operands.push_back(a.known.back().id);
    a.shapes.push_back(s.b.shape(a.operands.back()));
  }
  return a;
}

bool Generator::PushResults(Scope& s, InstrId id, const std::vector<Wanted>& wanted) {
  if (wanted.size() == 1) return Push(s, id, wanted[0].bound);
  for (size_t k = 0; k < wanted.size(); ++k) {
    Push(s, s.b.GetTupleElement(id, static_cast<int64_t>(k)), wanted[k].bound);
  }
  return true;
}

bool Generator::CallOp(Scope& s) {
  const Arguments a = SomeArguments(s);
  ElementType type = RandomType();
  if (IsComplex(type)) type = ElementType::kF32;
  const Wanted wanted = {type, RandomDims(0, 4), IsInteger(type) ? kUnbounded : 8};
  CallAttrs attrs;
  attrs.to_apply = Body(a.shapes, a.known, {wanted}, false, false, s.depth + 1);
  const InstrId id = Emit(s, Opcode::kCall, a.operands, Intern(attrs));
  if (random_.Chance(30)) {  // the same callee again
    Push(s, Emit(s, Opcode::kCall, a.operands, Intern(attrs)), wanted.bound);
  }
  return Push(s, id, wanted.bound);
}

bool Generator::FusionOp(Scope& s) {
  const Arguments a = SomeArguments(s);
  std::vector<Wanted> wanted;
  for (int64_t k = random_.Chance(30) ? 2 : 1; k > 0; --k) {
    ElementType type = RandomType();
    if (IsComplex(type)) type = ElementType::kF32;
    wanted.push_back({type, RandomDims(0, 3), IsInteger(type) ? kUnbounded : 8});
  }
  FusionAttrs attrs;
  attrs.kind = "kLoop";
  fused_ = true;
  // No control flow inside.
  attrs.calls = Body(a.shapes, a.known, wanted, false, false, s.depth + 2);
  fused_ = false;
  // Nothing in a fusion may be unused: what would be is a result too.
  GraphBuilder body(&module_, attrs.calls, &monoids_);
  const Computation& c = module_.comp(attrs.calls);
  std::vector<InstrId> results, unread;
  std::vector<bool> read(module_.num_instructions(), false);
  for (InstrId i : c.instructions) {
    for (InstrId x : module_.operands(i)) read[x.value] = true;
  }
  for (InstrId i : c.instructions) {
    if (!read[i.value]) (i == c.root ? results : unread).push_back(i);
  }
  if (!unread.empty()) {
    results.insert(results.end(), unread.begin(), unread.end());
    body.SetRoot(body.Tuple(results));
  }
  const InstrId id = Emit(s, Opcode::kFusion, a.operands, Intern(attrs));
  if (!id.valid()) return false;
  return PushResults(s, unread.empty() ? id : s.b.GetTupleElement(id, 0), wanted);
}

bool Generator::CustomCallOp(Scope& s) {
  struct Target {
    const char* name;
    int rank;    // of the operand; 0: any of at least 1
    bool whole;  // sums: whole numbers only
  };
  static const auto* const kTargets = new std::vector<Target>{
      {"test_negate", 2, false}, {"test_row_scan", 2, true}, {"test_sum", 2, true},
      {"test_scale", 2, true},   {"test_twice", 0, true},    {"test_total", 2, true}};
  if (fused_) return false;
  const Target target = random_.Pick(*kTargets);
  Value v;
  if (!Find(
          s,
          [&](Value x) {
            const Shape* shape = s.b.shape(x.id);
            const ElementType t = shape->element_type();
            return (t == ElementType::kF32 || t == ElementType::kS32) && shape->rank() >= 1 &&
                   shape->num_elements() > 0 && (x.whole || !target.whole);
          },
          &v)) {
    return false;
  }
  const Dims have = DimsOf(s, v);
  if (target.rank == 2 && have.size() != 2) {
    int64_t columns = have.back();
    v = {s.b.Reshape(v.id, {s.b.shape(v.id)->num_elements() / columns, columns}), v.bound, v.whole};
  }
  if (v.whole) v = Bounded(s, v, 64);
  const Dims dims = DimsOf(s, v);
  const std::string name = target.name;
  std::vector<InstrId> operands = {v.id};
  const Shape* result = Array(TypeOf(s, v), dims);
  double bound = v.bound;
  if (name == "test_row_scan") bound *= static_cast<double>(dims[1]);
  if (name == "test_twice") bound *= 2;
  if (name == "test_sum") {
    result = Array(TypeOf(s, v), {dims[0]});
    bound *= static_cast<double>(dims[1]);
  } else if (name == "test_total") {
    result = Array(TypeOf(s, v), {dims[1]});
    bound *= static_cast<double>(dims[0]);
  } else if (name == "test_scale") {
    const Value w = Bounded(s, Like(s, TypeOf(s, v), {dims[1]}), 64);
    operands.push_back(w.id);
    bound *= w.bound;
  }
  CustomCallAttrs attrs;
  attrs.target = name;
  return Push(s, s.b.CustomCall(attrs, operands, result), bound, v.whole);
}

}  // namespace shardcall::generator
