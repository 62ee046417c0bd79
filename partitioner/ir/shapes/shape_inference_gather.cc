// SPDX-License-Identifier: Apache-2.0
// Shape inference of gather and scatter, and their dimension numbers.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/shapes/shape_inference_internal.h"

namespace shardcall {
inline namespace internal {
namespace shape_inference {
namespace {

bool WantSorted(const Query& q, absl::string_view attribute, Ints dims, int rank) {
  if (!WantDims(q, attribute, dims, rank)) return false;
  if (std::is_sorted(dims.begin(), dims.end())) return true;
  Fail(q, "E022", absl::StrCat(attribute, " is not sorted"), "ascending dimensions",
       Brackets(dims));
  return false;
}

bool WantDisjoint(const Query& q, absl::string_view a_name, Ints a, absl::string_view b_name,
                  Ints b) {
  for (int64_t d : a) {
    if (!absl::c_linear_search(b, d)) continue;
    Fail(q, "E022", absl::StrCat(a_name, " and ", b_name, " share a dimension"), "disjoint lists",
         absl::StrCat(d));
    return false;
  }
  return true;
}

// Common to gather and scatter: the dimension of the index vectors, and the operand dimensions that
// they address.
struct Indexing {
  const Shape* operand;
  const Shape* indices;
  Ints window, removed, index_map, operand_batching, indices_batching;
  int64_t index_vector_dim;
  const char* window_name;
  const char* removed_name;
  const char* map_name;
  const char* operand_batching_name;
  const char* indices_batching_name;
};

bool WantIndexing(const Query& q, const Indexing& a, Dims* batch) {
  const int rank = a.operand->rank(), index_rank = a.indices->rank();
  if (!IsInteger(a.indices->element_type())) {
    Fail(q, "E021", "the indices must be integers", "s32", Text(a.indices));
    return false;
  }
  // index_vector_dim = rank means an implied last dimension of size 1.
  if (!WantDim(q, "index_vector_dim", a.index_vector_dim, index_rank + 1) ||
      !WantSorted(q, a.removed_name, a.removed, rank) ||
      !WantSorted(q, a.operand_batching_name, a.operand_batching, rank) ||
      !WantDims(q, a.indices_batching_name, a.indices_batching, index_rank) ||
      !WantDims(q, a.map_name, a.index_map, rank) ||
      !WantDisjoint(q, a.removed_name, a.removed, a.operand_batching_name, a.operand_batching) ||
      !WantDisjoint(q, a.map_name, a.index_map, a.operand_batching_name, a.operand_batching) ||
      !WantLength(q, a.indices_batching_name, a.indices_batching.size(),
                  a.operand_batching.size())) {
    return false;
  }
  if (absl::c_linear_search(a.indices_batching, a.index_vector_dim)) {
    Fail(q, "E022", absl::StrCat(a.indices_batching_name, " has the index vector's dimension"),
         absl::StrCat("not ", a.index_vector_dim), Brackets(a.indices_batching));
    return false;
  }
  const int64_t length = a.index_vector_dim == index_rank ? 1 : a.indices->dim(a.index_vector_dim);
  if (!WantLength(q, a.map_name, a.index_map.size(), length)) return false;
  for (size_t i = 0; i < a.operand_batching.size(); ++i) {
    const int64_t n = a.operand->dim(a.operand_batching[i]);
    if (n == a.indices->dim(a.indices_batching[i])) continue;
    Fail(q, "E021", absl::StrCat("batching dimension ", i, " differs between operand and indices"),
         absl::StrCat(n), absl::StrCat(a.indices->dim(a.indices_batching[i])));
    return false;
  }
  const size_t accounted = a.window.size() + a.removed.size() + a.operand_batching.size();
  if (accounted != rank) {
    Fail(q, "E022",
         absl::StrCat(a.window_name, ", ", a.removed_name, " and ", a.operand_batching_name,
                      " must account for every operand dimension"),
         absl::StrCat(rank), absl::StrCat(accounted));
    return false;
  }
  for (int i = 0; i < index_rank; ++i) {
    if (i != a.index_vector_dim) batch->push_back(a.indices->dim(i));
  }
  return WantSorted(q, a.window_name, a.window, static_cast<int>(batch->size() + a.window.size()));
}

}  // namespace

const Shape* InferGather(const Query& q) {
  const auto& a = q.as<GatherAttrs>();
  if (!WantArrays(q)) return nullptr;
  const Shape* x = q.x(0);
  Dims batch;
  const Indexing indexing = {x,
                             q.x(1),
                             a.offset_dims,
                             a.collapsed_slice_dims,
                             a.start_index_map,
                             a.operand_batching_dims,
                             a.start_indices_batching_dims,
                             a.index_vector_dim,
                             "offset_dims",
                             "collapsed_slice_dims",
                             "start_index_map",
                             "operand_batching_dims",
                             "start_indices_batching_dims"};
  if (!WantLength(q, "slice_sizes", a.slice_sizes.size(), x->rank()) ||
      !WantIndexing(q, indexing, &batch)) {
    return nullptr;
  }
  Dims window;
  for (int i = 0; i < x->rank(); ++i) {
    const bool removed = absl::c_linear_search(a.collapsed_slice_dims, i) ||
                         absl::c_linear_search(a.operand_batching_dims, i);
    const int64_t limit = removed ? std::min<int64_t>(x->dim(i), 1) : x->dim(i);
    if (a.slice_sizes[i] < 0 || a.slice_sizes[i] > limit) {
      return Fail(q, "E022", absl::StrCat("slice_sizes is out of range in dimension ", i),
                  absl::StrCat("a size in [0,", limit, "]"), absl::StrCat(a.slice_sizes[i]));
    }
    if (!removed) window.push_back(a.slice_sizes[i]);
  }
  Dims dims;
  size_t w = 0, b = 0;
  while (w + b < window.size() + batch.size()) {
    dims.push_back(absl::c_linear_search(a.offset_dims, w + b) ? window[w++] : batch[b++]);
  }
  return MakeResult(q, x->element_type(), dims);
}

const Shape* InferScatter(const Query& q) {
  const auto& a = q.as<ScatterAttrs>();
  const int k = (q.num_operands() - 1) / 2;
  if (!WantAtLeast(q, 3) || !WantOperands(q, 2 * k + 1) || !WantArrays(q)) return nullptr;
  const Shape* x = q.x(0);
  Dims batch;
  const Indexing indexing = {x,
                             q.x(k),
                             a.update_window_dims,
                             a.inserted_window_dims,
                             a.scatter_dims_to_operand_dims,
                             a.input_batching_dims,
                             a.scatter_indices_batching_dims,
                             a.index_vector_dim,
                             "update_window_dims",
                             "inserted_window_dims",
                             "scatter_dims_to_operand_dims",
                             "input_batching_dims",
                             "scatter_indices_batching_dims"};
  if (!WantIndexing(q, indexing, &batch)) return nullptr;
  absl::InlinedVector<ElementType, 2> inputs, updates;
  for (int i = 0; i < k; ++i) {
    if (!WantSameDims(q, 0, i) || !WantSameDims(q, k + 1, k + 1 + i)) return nullptr;
    if (!SameTypeButPrecision(q.x(i)->element_type(), q.x(k + 1 + i)->element_type())) {
      WantSameType(q, i, k + 1 + i);
      return nullptr;
    }
    inputs.push_back(q.x(i)->element_type());
    updates.push_back(q.x(k + 1 + i)->element_type());
  }
  const Shape* u = q.x(k + 1);
  if (u->rank() != batch.size() + a.update_window_dims.size()) {
    return Fail(q, "E021", "the updates have the wrong rank",
                absl::StrCat(batch.size() + a.update_window_dims.size()), Text(u));
  }
  Dims bounds;
  for (int i = 0; i < x->rank(); ++i) {
    if (!absl::c_linear_search(a.inserted_window_dims, i) &&
        !absl::c_linear_search(a.input_batching_dims, i)) {
      bounds.push_back(x->dim(i));
    }
  }
  for (int i = 0, w = 0, b = 0; i < u->rank(); ++i) {
    const bool window = absl::c_linear_search(a.update_window_dims, i);
    const int64_t want = window ? bounds[w++] : batch[b++];
    if (window ? u->dim(i) > want : u->dim(i) != want) {
      return Fail(q, "E021", absl::StrCat("update dimension ", i, " has the wrong size"),
                  absl::StrCat(window ? "at most " : "", want), absl::StrCat(u->dim(i)));
    }
  }
  if (!WantReducer(q, "to_apply", a.to_apply, inputs, updates, nullptr)) return nullptr;
  return OneOrTuple(q, q.operands.subspan(0, k));
}

}  // namespace shape_inference
}  // namespace internal
}  // namespace shardcall
