// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/simplify/merged_dims.h"

#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"

namespace shardcall {
inline namespace internal {
namespace {

using Dims = std::vector<int64_t>;
// By dimension of the result of a reshape: those of its operand that make it up, major to minor.
using Merged = std::vector<Dims>;

// None if a dimension of the result is a part of one of the operand's. Dimensions of size 1 make up
// nothing.
std::optional<Merged> MergedBy(const Shape& from, const Shape& to) {
  Merged out(to.rank());
  int d = 0;
  for (int e = 0; e < to.rank(); ++e) {
    int64_t size = 1;
    while (size < to.dim(e) && d < from.rank()) {
      if (from.dim(d) != 1) out[e].push_back(d);
      size *= from.dim(d++);
    }
    if (size != to.dim(e)) return std::nullopt;
  }
  return out;
}

// What the value is a reshape of, if that merged dimensions that nobody speaks of.
std::optional<Merged> MergedIn(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  if (i.opcode != Opcode::kReshape || i.sharding != nullptr || i.frontend != nullptr) return {};
  const Shape& from = *m.instr(m.operand(id, 0)).shape;
  if (from.IsDynamic() || i.shape->IsDynamic() || i.shape->num_elements() == 0) return {};
  return MergedBy(from, *i.shape);
}

// The dimensions that make up those of `of`, in order.
Dims PartsOf(const Merged& merged, absl::Span<const int64_t> of) {
  Dims out;
  for (int64_t d : of) out.insert(out.end(), merged[d].begin(), merged[d].end());
  return out;
}

bool MergesAny(const Merged& merged, absl::Span<const int64_t> of) {
  return absl::c_any_of(of, [&](int64_t d) { return merged[d].size() > 1; });
}

Dims SizesOf(const Shape& shape, absl::Span<const int64_t> dims) {
  Dims out;
  for (int64_t d : dims) out.push_back(shape.dim(static_cast<int>(d)));
  return out;
}

// x with the dimensions `dims` that `merged` made up. Of an iota the index is made of those of the
// parts, as a reshape of it would be one of what all devices have.
InstrId Unmerged(GraphBuilder& b, InstrId x, const Merged& merged, const Shape& before) {
  const Instruction& i = b.module().instr(x);
  if (i.opcode == Opcode::kReshape && b.shape(b.module().operand(x, 0))->dims() == before.dims()) {
    return b.module().operand(x, 0);
  }
  if (i.opcode == Opcode::kBroadcast && i.as<DimensionsAttrs>().dimensions.empty()) {
    return b.Broadcast(b.module().operand(x, 0), before.dims(), {});
  }
  if (i.opcode != Opcode::kIota) return b.Reshape(x, before.dims());
  const ElementType type = b.type(x);
  InstrId sum = b.Broadcast(b.Zero(type), before.dims(), {});
  const Dims& parts = merged[i.as<IotaAttrs>().dimension];
  int64_t stride = 1;
  for (auto d = parts.rbegin(); d != parts.rend(); ++d) {
    const InstrId index = b.Iota(type, before.dims(), *d);
    const InstrId by = b.Broadcast(b.ConstantInt(type, stride), before.dims(), {});
    const InstrId part = b.Binary(Opcode::kMultiply, index, by);
    sum = d == parts.rbegin() ? index : b.Binary(Opcode::kAdd, sum, part);
    stride *= before.dim(static_cast<int>(*d));
  }
  return sum;
}

}  // namespace

std::optional<CallExpansion> ReadReduceOfMerged(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  const auto operands = m.operands(id);
  const std::optional<Merged> merged = MergedIn(m, operands[0]);
  const auto& attrs = i.as<ReduceAttrs>();
  if (!merged || !MergesAny(*merged, attrs.dimensions)) return std::nullopt;
  const Shape* const before = m.instr(m.operand(operands[0], 0)).shape;
  std::vector<const Shape*> results;
  for (int k = 0; k < i.shape->num_leaves(); ++k) results.push_back(i.shape->leaf(k));
  return CallExpansion{
      results, [&i, before, merged = *merged](GraphBuilder& b, absl::Span<const InstrId> given) {
        ReduceAttrs attrs = i.as<ReduceAttrs>();
        const Dims reduced = PartsOf(merged, attrs.dimensions);
        attrs.dimensions = reduced;
        std::vector<InstrId> operands(given.begin(), given.end());
        for (size_t k = 0; k < given.size() / 2; ++k) {
          operands[k] = Unmerged(b, given[k], merged, *before);
        }
        const InstrId all = b.Add(Opcode::kReduce, operands, InternAttributes(b.context(), attrs));
        if (!i.shape->IsTuple()) {
          return std::vector<InstrId>{b.Reshape(all, i.shape->dims())};
        }
        std::vector<InstrId> out;
        for (int k = 0; k < i.shape->num_leaves(); ++k) {
          out.push_back(b.Reshape(b.GetTupleElement(all, k), i.shape->leaf(k)->dims()));
        }
        return out;
      }};
}

std::optional<CallExpansion> ReadDotOfMerged(const Module& m, InstrId id) {
  const auto operands = m.operands(id);
  const auto& attrs = m.instr(id).as<DotAttrs>();
  if (operands.size() != 2 || !attrs.lhs_ragged.empty()) return std::nullopt;
  const std::optional<Merged> lhs = MergedIn(m, operands[0]), rhs = MergedIn(m, operands[1]);
  if (!lhs || !rhs || !MergesAny(*lhs, attrs.lhs_contracting)) return std::nullopt;
  const Shape* const x = m.instr(m.operand(operands[0], 0)).shape;
  const Shape* const y = m.instr(m.operand(operands[1], 0)).shape;
  const Dims x_parts = PartsOf(*lhs, attrs.lhs_contracting);
  const Dims y_parts = PartsOf(*rhs, attrs.rhs_contracting);
  const Dims x_batch = PartsOf(*lhs, attrs.lhs_batch), y_batch = PartsOf(*rhs, attrs.rhs_batch);
  if (SizesOf(*x, x_parts) != SizesOf(*y, y_parts)) return std::nullopt;
  if (SizesOf(*x, x_batch) != SizesOf(*y, y_batch)) return std::nullopt;
  const Shape* const result = m.instr(id).shape;
  return CallExpansion{{result}, [=, &attrs](GraphBuilder& b, absl::Span<const InstrId> given) {
                         DotAttrs over = attrs;
                         over.lhs_contracting = x_parts;
                         over.rhs_contracting = y_parts;
                         over.lhs_batch = x_batch;
                         over.rhs_batch = y_batch;
                         const InstrId dot =
                             b.Dot(b.module().operand(given[0], 0), b.module().operand(given[1], 0),
                                   over, result->element_type());
                         return std::vector<InstrId>{b.Reshape(dot, result->dims())};
                       }};
}

}  // namespace internal
}  // namespace shardcall
