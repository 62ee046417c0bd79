// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters of rows at constant places that have the same distance.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/affine_integers.h"
#include "shardcall/partitioner/ir/analysis/one_window.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/ir/simplify/placed_windows.h"

namespace shardcall {
inline namespace internal {
namespace {

using Sizes = std::vector<int64_t>;

// What is taken of a dimension: elements first, first + step, .., `count` of them.
struct Taken {
  int64_t first = 0, step = 1, count = 1;
  int batch = -1;  // the dimension of the indices along which they are; -1: a window
  int64_t last() const { return first + step * (count - 1); }
  int64_t low() const { return std::min(first, last()); }
  int64_t high() const { return std::max(first, last()); }
};

// The components of the index vectors, each an array of the indices' dimensions with one place in
// that of the vectors; empty if they do not stand side by side.
std::vector<InstrId> Components(const Module& m, InstrId indices, int64_t index_vector_dim) {
  const Instruction& i = m.instr(indices);
  if (index_vector_dim == i.shape->rank()) return {indices};
  if (i.shape->dim(static_cast<int>(index_vector_dim)) == 1) return {indices};
  if (i.opcode != Opcode::kConcatenate ||
      i.as<DimensionsAttrs>().dimensions[0] != index_vector_dim) {
    return {};
  }
  const auto operands = m.operands(i);
  for (InstrId o : operands) {
    if (m.instr(o).shape->dim(static_cast<int>(index_vector_dim)) != 1) return {};
  }
  return std::vector<InstrId>(operands.begin(), operands.end());
}

// How an op takes windows of x.
struct Windows {
  InstrId indices;
  int64_t index_vector_dim;
  absl::Span<const int64_t> dims;     // component c of the index vectors is of dimension dims[c]
  absl::Span<const int64_t> sizes;    // by dimension of x
  absl::Span<const int64_t> dropped;  // dimensions of x that the windows do not have
};

// What is taken of each dimension of x. None if that is not known, is not within x, or if there is
// no dimension of which rows are taken.
std::optional<std::vector<Taken>> TakenBy(const Module& m, const Windows& w, const Shape& x) {
  const auto& [indices, index_vector_dim, dims, window, dropped] = w;
  const std::vector<InstrId> components = Components(m, indices, index_vector_dim);
  const Shape& shape = *m.instr(indices).shape;
  if (components.size() != dims.size()) return std::nullopt;
  std::vector<Taken> taken(x.rank());
  for (int d = 0; d < x.rank(); ++d) taken[d].count = window[d];
  std::vector<bool> covered(shape.rank(), false);
  for (size_t c = 0; c < components.size(); ++c) {
    Taken& t = taken[dims[c]];
    if (const std::optional<int64_t> at = NumberOf(m, components[c]); at.has_value()) {
      t.first = *at;
      continue;
    }
    const std::optional<Progression> rows = ProgressionOf(m, components[c]);
    const int64_t size = x.dim(static_cast<int>(dims[c]));
    if (!rows.has_value() || !absl::c_linear_search(dropped, dims[c]) || rows->step == 0 ||
        std::abs(rows->step) > size || shape.dim(rows->dim) > size || covered[rows->dim]) {
      return std::nullopt;
    }
    covered[rows->dim] = true;
    t = {rows->first, rows->step, shape.dim(rows->dim), rows->dim};
  }
  for (int d = 0; d < shape.rank(); ++d) {
    if (d != index_vector_dim && shape.dim(d) != 1 && !covered[d]) return std::nullopt;
  }
  for (int d = 0; d < x.rank(); ++d) {
    if (taken[d].low() < 0 || taken[d].high() >= x.dim(d)) return std::nullopt;
  }
  if (absl::c_none_of(covered, [](bool c) { return c; })) return std::nullopt;
  return taken;
}

// By dimension of the gathered array or of the updates: the dimension of x that it has elements of,
// or -1. `windows` are its dimensions that are of windows, in the order of those of x that have
// more than one place there, `dropped` apart.
std::vector<int> DimsOfX(const std::vector<Taken>& taken, absl::Span<const int64_t> windows,
                         absl::Span<const int64_t> dropped, int rank, int64_t index_vector_dim) {
  std::vector<int> out(rank, -1), kept;
  for (int d = 0; d < static_cast<int>(taken.size()); ++d) {
    if (!absl::c_linear_search(dropped, d)) kept.push_back(d);
  }
  for (int r = 0, window = 0, batch = 0; r < rank; ++r) {
    if (absl::c_linear_search(windows, r)) {
      out[r] = kept[window++];
      continue;
    }
    if (batch == index_vector_dim) ++batch;
    for (int d = 0; d < static_cast<int>(taken.size()); ++d) {
      if (taken[d].batch == batch) out[r] = d;
    }
    ++batch;
  }
  return out;
}

// x with its dimensions in the order `order`, which names all but some of one element, which come
// last; then with the dimensions `dims`.
InstrId Arranged(GraphBuilder& b, InstrId x, Sizes order, const Sizes& dims) {
  for (int d = 0; d < b.shape(x)->rank(); ++d) {
    if (!absl::c_linear_search(order, d)) order.push_back(d);
  }
  if (!absl::c_is_sorted(order)) x = b.Transpose(x, order);
  return b.shape(x)->dims() == absl::MakeConstSpan(dims) ? x : b.Reshape(x, dims);
}

}  // namespace

bool ReplacesElements(const Module& m, CompId computation) {
  const Computation& body = m.comp(computation);
  InstrId root = body.root;
  while (m.instr(root).opcode == Opcode::kCopy) root = m.operand(root, 0);
  return root == body.parameters[1];
}

std::optional<CallExpansion> ReadGatherOfRows(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  const auto& attrs = i.as<GatherAttrs>();
  const auto operands = m.operands(i);
  const Shape& x = *m.instr(operands[0]).shape;
  if (x.IsDynamic() || i.shape->IsDynamic() || i.shape->num_elements() == 0 ||
      !attrs.operand_batching_dims.empty()) {
    return std::nullopt;
  }
  const auto taken = TakenBy(m,
                             {operands[1], attrs.index_vector_dim, attrs.start_index_map,
                              attrs.slice_sizes, attrs.collapsed_slice_dims},
                             x);
  if (!taken.has_value()) return std::nullopt;
  const std::vector<int> of_x = DimsOfX(*taken, attrs.offset_dims, attrs.collapsed_slice_dims,
                                        i.shape->rank(), attrs.index_vector_dim);
  const Sizes dims(i.shape->dims().begin(), i.shape->dims().end());
  const auto make = [taken = *taken, of_x, dims](GraphBuilder& b, absl::Span<const InstrId> given) {
    Sizes starts, limits, strides, reversed, order;
    for (int d = 0; d < static_cast<int>(taken.size()); ++d) {
      starts.push_back(taken[d].low());
      limits.push_back(taken[d].high() + 1);
      strides.push_back(std::abs(taken[d].step));
      if (taken[d].step < 0) reversed.push_back(d);
    }
    InstrId made = b.Slice(given[0], starts, limits, strides);
    if (!reversed.empty()) made = b.Reverse(made, reversed);
    for (int d : of_x) {
      if (d >= 0) order.push_back(d);
    }
    return std::vector<InstrId>{Arranged(b, made, order, dims)};
  };
  return CallExpansion{{i.shape}, make};
}

std::optional<CallExpansion> ReadScatterOfRows(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  const auto operands = m.operands(i);
  if (operands.size() != 3 || i.shape->IsDynamic()) return std::nullopt;
  const auto& attrs = i.as<ScatterAttrs>();
  const Shape& update = *m.instr(operands[2]).shape;
  if (update.IsDynamic() || update.num_elements() == 0 || !attrs.input_batching_dims.empty()) {
    return std::nullopt;
  }
  const auto window = ScatterWindow(m, i);
  const auto taken =
      TakenBy(m,
              {operands[1], attrs.index_vector_dim, attrs.scatter_dims_to_operand_dims, window,
               attrs.inserted_window_dims},
              *i.shape);
  if (!taken.has_value()) return std::nullopt;
  // All of x is read and written: not for a few rows of it.
  constexpr int64_t kMostForOne = 8;
  for (const Taken& t : *taken) {
    if (t.step < 0 || t.step > kMostForOne) return std::nullopt;
  }
  if (kMostForOne * update.num_elements() < i.shape->num_elements()) return std::nullopt;
  const bool replaces = ReplacesElements(m, attrs.to_apply);
  Opcode op = Opcode::kAdd;
  PartialOp known;
  if (!replaces &&
      (!RecognizeMonoid(m, attrs.to_apply, &op) || !RecognizePartialOp(m, attrs.to_apply, &known) ||
       !HasIdentity(known, i.shape->element_type()))) {
    return std::nullopt;
  }
  const std::vector<int> of_x =
      DimsOfX(*taken, attrs.update_window_dims, attrs.inserted_window_dims, update.rank(),
              attrs.index_vector_dim);
  const auto make = [taken = *taken, of_x, replaces, op](GraphBuilder& b,
                                                         absl::Span<const InstrId> given) {
    const Shape& shape = *b.shape(given[0]);
    Sizes low, high, between, dims, order;
    for (int d = 0; d < shape.rank(); ++d) {
      const Taken& t = taken[d];
      low.push_back(t.first);
      high.push_back(shape.dim(d) - 1 - t.last());
      between.push_back(t.step - 1);
      dims.push_back(t.count);
      const auto at = absl::c_find(of_x, d);
      if (at != of_x.end()) order.push_back(at - of_x.begin());
    }
    const ElementType type = shape.element_type();
    const InstrId update = Arranged(b, given[2], order, dims);
    const auto spread = [&](InstrId part, InstrId value) {
      return b.Pad(part, value, low, high, between);
    };
    if (!replaces) {
      const InstrId padded = spread(update, b.Identity(op, type, ZeroSign::kExact));
      return std::vector<InstrId>{b.Binary(op, given[0], padded)};
    }
    const InstrId yes = b.ConstantInt(ElementType::kPred, 1);
    const Shape* mask = b.context().MakeArray(ElementType::kPred, dims);
    const InstrId here = spread(b.BroadcastScalar(yes, mask), b.Zero(ElementType::kPred));
    return std::vector<InstrId>{b.Select(here, spread(update, b.Zero(type)), given[0])};
  };
  return CallExpansion{{i.shape}, make};
}

}  // namespace internal
}  // namespace shardcall
