// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/fuzz/generator/ops.h"

namespace shardcall::generator {
namespace {

// How an operand's dimensions are indexed, for gather and scatter alike.
struct Indexing {
  Dims slice_sizes, collapsed, batching, map;
  Dims window;                     // slice sizes of the dimensions that stay
  Dims indices, indices_batching;  // shape of the indices
  int64_t vector_dim = 0;
  Dims outer;  // shape of the indices without the vector
};

Indexing Choose(Random& random, const Dims& dims) {
  Indexing x;
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t d = static_cast<int64_t>(k);
    const int64_t role = random.Int(0, 9);
    int64_t size = dims[k];
    if (role < 4 && size > 0) {
      x.map.push_back(d);
      if (random.Chance(60)) {
        x.collapsed.push_back(d);
        size = 1;
      } else {
        size = random.Int(1, size);
      }
    } else if (role == 4 && size > 0 && x.batching.size() < 2) {
      x.batching.push_back(d);
      size = 1;
    } else if (role == 5 && size > 0) {
      size = random.Int(1, size);
    }
    x.slice_sizes.push_back(size);
    const bool gone = (!x.collapsed.empty() && x.collapsed.back() == d) ||
                      (!x.batching.empty() && x.batching.back() == d);
    if (!gone) x.window.push_back(size);
  }
  random.Shuffle(&x.map);
  // Outer dimensions of the indices: the batching ones and others, mixed.
  std::vector<int64_t> from;  // batching dimension's place, or -1
  for (size_t k = 0; k < x.batching.size(); ++k) from.push_back(static_cast<int64_t>(k));
  for (int64_t k = random.Int(0, 2); k > 0; --k) from.push_back(-1);
  random.Shuffle(&from);
  x.indices_batching.resize(x.batching.size());
  for (int64_t place : from) {
    x.outer.push_back(place >= 0 ? dims[x.batching[place]] : random.Int(1, 6));
  }
  const int64_t k = static_cast<int64_t>(x.map.size());
  const bool implicit = k == 1 && random.Chance(50);
  x.vector_dim = implicit ? static_cast<int64_t>(x.outer.size())
                          : random.Int(0, static_cast<int64_t>(x.outer.size()));
  x.indices = x.outer;
  if (!implicit) x.indices.insert(x.indices.begin() + x.vector_dim, k);
  for (size_t at = 0; at < from.size(); ++at) {
    if (from[at] < 0) continue;
    const int64_t d = static_cast<int64_t>(at);
    x.indices_batching[from[at]] = d + (!implicit && d >= x.vector_dim);
  }
  return x;
}

int64_t Count(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

}  // namespace

bool Generator::GatherOp(Scope& s) {
  Value v;
  if (!Find(s, [&](Value x) { return s.b.shape(x.id)->rank() >= 1; }, &v)) return false;
  const Indexing x = Choose(random_, DimsOf(s, v));
  const int64_t rank = static_cast<int64_t>(x.outer.size() + x.window.size());
  if (rank > 6 || Count(x.outer) * Count(x.window) > 1200) return false;
  const Value indices =
      Like(s, random_.Chance(80) ? ElementType::kS32 : ElementType::kU32, x.indices);
  const Dims offset = random_.Subset(rank, static_cast<int64_t>(x.window.size()));
  GatherAttrs attrs;
  attrs.offset_dims = offset;
  attrs.collapsed_slice_dims = x.collapsed;
  attrs.start_index_map = x.map;
  attrs.operand_batching_dims = x.batching;
  attrs.start_indices_batching_dims = x.indices_batching;
  attrs.slice_sizes = x.slice_sizes;
  attrs.index_vector_dim = x.vector_dim;
  return Push(s, Emit(s, Opcode::kGather, {v.id, indices.id}, Intern(attrs)), v.bound, v.whole);
}

bool Generator::ScatterOp(Scope& s) {
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
  const ElementType type = TypeOf(s, v);
  const Indexing x = Choose(random_, DimsOf(s, v));
  const int64_t rank = static_cast<int64_t>(x.outer.size() + x.window.size());
  if (rank > 6 || Count(x.outer) * Count(x.window) > 1200) return false;
  const Value indices = Like(s, ElementType::kS32, x.indices);
  const Dims window = random_.Subset(rank, static_cast<int64_t>(x.window.size()));
  Dims updates(rank, -1);
  for (size_t k = 0; k < window.size(); ++k) updates[window[k]] = x.window[k];
  for (size_t k = 0, outer = 0; k < updates.size(); ++k) {
    if (updates[k] < 0) updates[k] = x.outer[outer++];
  }
  const Value update = Like(s, type, updates);
  std::vector<Opcode> ops = {Opcode::kMaximum, Opcode::kMinimum};
  const double sum = v.bound + update.bound * static_cast<double>(Count(x.outer));
  if (IsInteger(type) || sum <= MaxBound(type)) ops.insert(ops.end(), 3, Opcode::kAdd);
  if (IsInteger(type)) ops.push_back(Opcode::kMultiply);
  const Opcode op = random_.Pick(ops);
  ScatterAttrs attrs;
  attrs.update_window_dims = window;
  attrs.inserted_window_dims = x.collapsed;
  attrs.scatter_dims_to_operand_dims = x.map;
  attrs.input_batching_dims = x.batching;
  attrs.scatter_indices_batching_dims = x.indices_batching;
  attrs.index_vector_dim = x.vector_dim;
  attrs.to_apply = monoids_.Get(op, type);
  const double bound = IsInteger(type)      ? kUnbounded
                       : op == Opcode::kAdd ? sum
                                            : std::max(v.bound, update.bound);
  return Push(s, Emit(s, Opcode::kScatter, {v.id, indices.id, update.id}, Intern(attrs)), bound);
}

}  // namespace shardcall::generator
