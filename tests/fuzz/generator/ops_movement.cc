// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "shardcall/sharding/hlo_sharding.h"
#include "tests/fuzz/generator/ops.h"

namespace shardcall::generator {

bool Generator::BroadcastOp(Scope& s) {
  Value v;
  if (!Find(s, [&](Value x) { return s.b.shape(x.id)->num_elements() <= 60; }, &v)) return false;
  Dims dims = DimsOf(s, v), dimensions;
  const int64_t added = random_.Int(1, 2);
  const int64_t rank = static_cast<int64_t>(dims.size()) + added;
  if (rank > 5) return false;
  dimensions = random_.Subset(rank, static_cast<int64_t>(dims.size()));
  Dims out(rank);
  for (int64_t& d : out) d = random_.Int(1, 6);
  for (size_t k = 0; k < dims.size(); ++k) out[dimensions[k]] = dims[k];
  return Push(s, s.b.Broadcast(v.id, out, dimensions), v.bound, v.whole);
}

bool Generator::ReshapeOp(Scope& s) {
  const Value v = Any(s);
  // The prime factors are dealt out to new dimensions, in order mostly.
  int64_t n = s.b.shape(v.id)->num_elements();
  Dims dims;
  if (n == 0) return false;
  std::vector<int64_t> factors;
  for (int64_t p = 2; p <= n; ++p) {
    while (n % p == 0) {
      factors.push_back(p);
      n /= p;
    }
  }
  if (random_.Chance(50)) random_.Shuffle(&factors);
  for (int64_t f : factors) {
    if (dims.empty() || (dims.size() < 5 && random_.Chance(50))) {
      dims.push_back(f);
    } else {
      dims[dims.size() - 1] *= f;
    }
  }
  if (dims.size() < 5 && random_.Chance(20)) {
    dims.insert(dims.begin() + random_.Int(0, static_cast<int64_t>(dims.size())), 1);
  }
  if (dims == DimsOf(s, v)) return false;
  return Push(s, s.b.Reshape(v.id, dims), v.bound, v.whole);
}

bool Generator::TransposeReverse(Scope& s) {
  Value v;
  if (!Find(s, [&](Value x) { return s.b.shape(x.id)->rank() >= 1; }, &v)) return false;
  const int rank = s.b.shape(v.id)->rank();
  if (rank > 1 && random_.Chance(65)) {
    Dims perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    random_.Shuffle(&perm);
    return Push(s, s.b.Transpose(v.id, perm), v.bound, v.whole);
  }
  return Push(s, s.b.Reverse(v.id, random_.Subset(rank, random_.Int(1, rank))), v.bound, v.whole);
}

bool Generator::SliceOp(Scope& s) {
  Value v;
  if (!Find(s, [&](Value x) { return s.b.shape(x.id)->rank() >= 1; }, &v)) return false;
  Dims starts, limits, strides;
  for (int64_t d : DimsOf(s, v)) {
    int64_t start = 0, limit = d, stride = 1;
    if (d > 0 && random_.Chance(60)) {
      start = random_.Int(0, d - 1);
      limit = random_.Int(random_.Chance(5) ? start : start + 1, d);
      if (random_.Chance(30)) stride = random_.Int(1, 3);
    }
    starts.push_back(start);
    limits.push_back(limit);
    strides.push_back(stride);
  }
  return Push(s, s.b.Slice(v.id, starts, limits, strides), v.bound, v.whole);
}

bool Generator::PadOp(Scope& s) {
  Value v;
  if (!Find(s, [&](Value x) { return s.b.shape(x.id)->rank() >= 1; }, &v)) return false;
  Dims low, high, interior;
  for (int64_t d : DimsOf(s, v)) {
    int64_t l = 0, h = 0, i = 0;
    if (random_.Chance(50)) {
      l = random_.Int(-2, 4);
      h = random_.Int(-2, 4);
      if (random_.Chance(30)) i = random_.Int(0, 2);
      if (d + std::max<int64_t>(d - 1, 0) * i + l + h < 0) l = h = 0;
    }
    low.push_back(l);
    high.push_back(h);
    interior.push_back(i);
  }
  const ElementType type = TypeOf(s, v);
  const Value value = random_.Chance(30) && v.whole && !IsComplex(type)
                          ? Like(s, type, {})
                          : Value{Scalar(s, type, random_.Int(0, 1)), 1, true};
  return Push(s, s.b.Pad(v.id, value.id, low, high, interior), std::max(v.bound, value.bound),
              v.whole);
}

bool Generator::ConcatenateOp(Scope& s) {
  Value v;
  if (!Find(s, [&](Value x) { return s.b.shape(x.id)->rank() >= 1 && x.whole; }, &v)) return false;
  const Dims dims = DimsOf(s, v);
  const int64_t d = random_.Int(0, static_cast<int64_t>(dims.size()) - 1);
  std::vector<InstrId> operands = {v.id};
  double bound = v.bound;
  for (int64_t k = random_.Int(1, 2); k > 0; --k) {
    Dims other = dims;
    if (random_.Chance(60)) other[d] = random_.Int(1, 6);
    const Value w = Like(s, TypeOf(s, v), other);
    operands.insert(operands.begin() + random_.Int(0, operands.size()), w.id);
    bound = std::max(bound, w.bound);
  }
  return Push(s, s.b.Concatenate(operands, d), bound);
}

bool Generator::DynamicOps(Scope& s) {
  Value v;
  if (!Find(s, [&](Value x) { return s.b.shape(x.id)->rank() >= 1; }, &v)) return false;
  const Dims dims = DimsOf(s, v);
  Dims sizes;
  std::vector<InstrId> starts;
  for (int64_t d : dims) {
    const bool whole = d == 0 || random_.Chance(35);
    sizes.push_back(whole ? d : random_.Int(1, d));
    starts.push_back(whole && random_.Chance(70) ? Scalar(s, ElementType::kS32, 0) : Index(s).id);
  }
  if (random_.Chance(50)) {
    return Push(s, s.b.DynamicSlice(v.id, starts, sizes), v.bound, v.whole);
  }
  if (!v.whole) return false;
  const Value update = Like(s, TypeOf(s, v), sizes);
  return Push(s, s.b.DynamicUpdateSlice(v.id, update.id, starts), std::max(v.bound, update.bound));
}

// Tuples in and out, barriers over arrays and tuples, nested tuples.
bool Generator::Wrappers(Scope& s) {
  const Value v = Any(s);
  if (random_.Chance(30)) return Push(s, s.b.OptBarrier(v.id), v.bound, v.whole);
  const Value w = Any(s);
  InstrId tuple = s.b.Tuple({v.id, w.id});
  const bool nested = random_.Chance(30);
  if (nested) tuple = s.b.Tuple({w.id, tuple});
  if (random_.Chance(60)) tuple = s.b.OptBarrier(tuple);
  TupleIndexAttrs index;
  index.index = 1;
  if (nested) tuple = Emit(s, Opcode::kGetTupleElement, {tuple}, Intern(index));
  index.index = random_.Int(0, 1);
  const Value& got = index.index == 0 ? v : w;
  return Push(s, Emit(s, Opcode::kGetTupleElement, {tuple}, Intern(index)), got.bound, got.whole);
}

bool Generator::ShardingCall(Scope& s) {
  if (!options_.shardings || fused_) return false;
  const Value v = Any(s);
  const InstrId id = Annotated(s, v.id);
  if (!status_.ok()) return false;
  s.values.push_back({id, v.bound, v.whole});
  return true;
}

InstrId Generator::Annotated(Scope& s, InstrId x) {
  CustomCallAttrs attrs;
  attrs.target = "Sharding";
  const InstrId id = s.b.CustomCall(attrs, {x}, s.b.shape(x));
  const auto sharding =
      ParseHloSharding(RandomShardingText(random_, s.b.shape(x)->rank(), devices_));
  if (sharding.ok()) {
    module_.mutable_instr(id).sharding = InternHloSharding(*context_, *sharding);
  } else if (status_.ok()) {
    status_ = sharding.status();
  }
  return id;
}

}  // namespace shardcall::generator
