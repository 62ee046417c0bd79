// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/import/parallel_indices.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/analysis/value_range.h"
#include "shardcall/partitioner/ir/row_by_opcode.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {
namespace {

// Chains from an iota to an index vector are short.
constexpr int kMostSteps = 16;

// Whether a comparison is false for all elements, as that of an iota with 0 is, by which JAX looks
// for negative indices.
bool IsNeverTrue(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  if (i.opcode != Opcode::kCompare || i.as<CompareAttrs>().direction != Direction::kLt)
    return false;
  const std::optional<ValueRange> x = RangeOf(m, m.operand(id, 0));
  const std::optional<ValueRange> y = RangeOf(m, m.operand(id, 1));
  return x && y && x->low >= y->high;
}

// Ops that give the elements of one operand, perhaps in another shape.
struct PassingRow {
  Opcode opcode;
  int operand;
};
constexpr PassingRow kPassing[] = {{Opcode::kBroadcast, 0},
                                   {Opcode::kConvert, 0},
                                   {Opcode::kCopy, 0},
                                   {Opcode::kReshape, 0},
                                   {Opcode::kSelect, 2}};  // where it never takes the other one

// The operand that an instruction passes on; -1: none.
int Passed(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  const PassingRow* const row = RowByOpcode(kPassing, i.opcode);
  const bool may_choose = i.opcode == Opcode::kSelect && !IsNeverTrue(m, m.operand(id, 0));
  return row == nullptr || may_choose ? -1 : row->operand;
}

// The dimension that has dimension `d` of the operand behind a reshape that only adds and removes
// dimensions of size 1; -1: none.
int BehindReshape(const Shape& from, const Shape& to, int d) {
  int64_t before = 1, at = 1;
  for (int k = 0; k < d; ++k) before *= from.dim(k);
  for (int k = 0; k < to.rank(); ++k) {
    if (at == before && to.dim(k) == from.dim(d) && to.dim(k) != 1) return k;
    at *= to.dim(k);
  }
  return -1;
}

// Whether an integer type has the numbers from 0 to `count` - 1.
bool Counts(ElementType type, int64_t count) {
  if (!IsInteger(type)) return false;
  const int bits = ElementTypeBits(type) - (IsSignedInteger(type) ? 1 : 0);
  return bits >= 63 || count <= int64_t{1} << bits;
}

// The dimension of `id` along which its elements count from 0, whatever the other coordinates are;
// -1: none.
int CountsAlong(const Module& m, InstrId id) {
  absl::InlinedVector<InstrId, 8> steps;  // from the value to its iota
  InstrId at = id;
  while (m.instr(at).opcode != Opcode::kIota) {
    const int operand = Passed(m, at);
    if (operand < 0 || steps.size() == kMostSteps) return -1;
    steps.push_back(at);
    at = m.operand(at, operand);
  }
  int d = static_cast<int>(m.instr(at).as<IotaAttrs>().dimension);
  const int64_t count = m.instr(at).shape->dim(d);
  if (!Counts(m.instr(at).shape->element_type(), count)) return -1;
  for (size_t k = steps.size(); k-- > 0 && d >= 0;) {
    const Instruction& step = m.instr(steps[k]);
    if (!Counts(step.shape->element_type(), count)) return -1;
    if (step.opcode == Opcode::kBroadcast) {
      d = static_cast<int>(step.as<DimensionsAttrs>().dimensions[d]);
    } else if (step.opcode == Opcode::kReshape) {
      d = BehindReshape(*m.instr(m.operand(steps[k], 0)).shape, *step.shape, d);
    }
  }
  return d;
}

using Dims = std::vector<int64_t>;

void Drop(int64_t value, Dims* from) {
  from->erase(std::remove(from->begin(), from->end(), value), from->end());
}

// What gathers and scatters call the same: dimensions of the operand that an index chooses one row
// of, the dimension of each index, and the dimensions that operand and indices share.
struct Indexing {
  Dims single, indexed, operand_batching, indices_batching;
};

Dims Copy(absl::Span<const int64_t> dims) { return Dims(dims.begin(), dims.end()); }

// Replaces counting indices in `dims`; gives the value that has the other ones, if any.
std::optional<InstrId> Replace(const Module& m, const Shape& operand, InstrId indices,
                               int64_t vector_dim, Indexing& dims) {
  const Instruction& vector = m.instr(indices);
  if (vector.opcode != Opcode::kConcatenate ||
      vector.as<DimensionsAttrs>().dimensions[0] != vector_dim) {
    return std::nullopt;
  }
  std::vector<std::pair<int64_t, int64_t>> parallel;  // dimension of the operand, of the indices
  std::optional<InstrId> rest;
  // If all of them count, the one along the smallest dimension of the operand stays an index.
  std::optional<size_t> smallest;
  std::vector<InstrId> counting;
  int64_t component = 0;
  for (InstrId part : m.operands(indices)) {
    const Shape& shape = *m.instr(part).shape;
    const int64_t size = shape.dim(static_cast<int>(vector_dim));
    // A part may be empty, and stand after the last component.
    const int64_t at = size == 1 ? dims.indexed[component] : -1;
    const int along = size == 1 ? CountsAlong(m, part) : -1;
    if (along >= 0 && along != vector_dim &&
        shape.dim(along) == operand.dim(static_cast<int>(at)) &&
        std::count(dims.single.begin(), dims.single.end(), at) > 0 &&
        std::count(dims.indices_batching.begin(), dims.indices_batching.end(), along) == 0) {
      parallel.push_back({at, along});
      counting.push_back(part);
      if (!smallest.has_value() || operand.dim(static_cast<int>(at)) <=
                                       operand.dim(static_cast<int>(parallel[*smallest].first))) {
        smallest = parallel.size() - 1;
      }
    } else if (rest.has_value()) {
      return std::nullopt;
    } else {
      rest = part;
    }
    component += size;
  }
  if (!rest.has_value() && parallel.size() > 1) {
    rest = counting[*smallest];
    parallel.erase(parallel.begin() + *smallest);
  }
  if (parallel.empty() || !rest.has_value()) return std::nullopt;
  for (size_t k = 0; k < dims.operand_batching.size(); ++k) {
    parallel.push_back({dims.operand_batching[k], dims.indices_batching[k]});
  }
  std::sort(parallel.begin(), parallel.end());
  dims.operand_batching.clear();
  dims.indices_batching.clear();
  for (const auto& [at, along] : parallel) {
    if (std::count(dims.indices_batching.begin(), dims.indices_batching.end(), along) > 0) {
      return std::nullopt;  // two rows of the operand for one of the indices
    }
    Drop(at, &dims.single);
    Drop(at, &dims.indexed);
    dims.operand_batching.push_back(at);
    dims.indices_batching.push_back(along);
  }
  return rest;
}

}  // namespace

void FindParallelIndices(const Module& module, ModuleEdit* edit) {
  for (int n = 0; n < module.num_instructions(); ++n) {
    const InstrId id(n);
    const Instruction& i = module.instr(id);
    // Whether indices are sorted is said of all of them.
    if (i.opcode == Opcode::kGather) {
      GatherAttrs a = i.as<GatherAttrs>();
      Indexing dims = {Copy(a.collapsed_slice_dims), Copy(a.start_index_map),
                       Copy(a.operand_batching_dims), Copy(a.start_indices_batching_dims)};
      const auto rest = Replace(module, *module.instr(module.operand(id, 0)).shape,
                                module.operand(id, 1), a.index_vector_dim, dims);
      if (!rest.has_value()) continue;
      a.collapsed_slice_dims = dims.single;
      a.start_index_map = dims.indexed;
      a.operand_batching_dims = dims.operand_batching;
      a.start_indices_batching_dims = dims.indices_batching;
      a.indices_are_sorted = false;
      edit->rewrites[id] = {1, *rest, InternAttributes(module.context(), a)};
    } else if (i.opcode == Opcode::kScatter) {
      ScatterAttrs a = i.as<ScatterAttrs>();
      const int indices = static_cast<int>(module.operands(id).size() - 1) / 2;
      Indexing dims = {Copy(a.inserted_window_dims), Copy(a.scatter_dims_to_operand_dims),
                       Copy(a.input_batching_dims), Copy(a.scatter_indices_batching_dims)};
      const auto rest = Replace(module, *module.instr(module.operand(id, 0)).shape,
                                module.operand(id, indices), a.index_vector_dim, dims);
      if (!rest.has_value()) continue;
      a.inserted_window_dims = dims.single;
      a.scatter_dims_to_operand_dims = dims.indexed;
      a.input_batching_dims = dims.operand_batching;
      a.scatter_indices_batching_dims = dims.indices_batching;
      a.indices_are_sorted = false;
      edit->rewrites[id] = {indices, *rest, InternAttributes(module.context(), a)};
    }
  }
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
