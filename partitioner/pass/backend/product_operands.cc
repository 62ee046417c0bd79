// SPDX-License-Identifier: Apache-2.0
// XLA:CPU multiplies matrices that lie in one order (its dot decomposer); one of two dimensions
// beside the batch is read in either, and others are merged. A transpose of a product is that of
// the operands the other way round:
//   before:  y = f32[8,4] transpose(f32[4,8] dot(a, b)), dimensions={1,0}
//   after:   y = f32[8,4] dot(b, a)
#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"
#include "shardcall/partitioner/pass/use_counts.h"

namespace shardcall {
inline namespace internal {
namespace {

using Dims = absl::InlinedVector<int64_t, 6>;

// Batch, then contracting and free dimensions, or these the other way round.
struct OperandOrder {
  Dims order;
  bool moves = false;                 // another order than it has
  int64_t batch = 0;                  // dimensions
  int64_t free = 1, contracting = 1;  // elements
  bool has_free = false, contracting_last = false;

  // The dimensions as [batch.., free, contracting], or the last two the other way round.
  Dims Merged(const Shape& shape) const {
    Dims out;
    for (const int64_t d : absl::MakeConstSpan(order).first(batch)) {
      if (shape.dims()[d] != 1) out.push_back(shape.dims()[d]);
    }
    if (has_free && contracting_last) out.push_back(free);
    out.push_back(contracting);
    if (has_free && !contracting_last) out.push_back(free);
    return out;
  }
};
OperandOrder OrderOf(const Shape& shape, absl::Span<const int64_t> batch,
                     absl::Span<const int64_t> contracting, bool contracting_last) {
  OperandOrder out;
  Dims free;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (absl::c_linear_search(contracting, d)) {
      out.contracting *= shape.dims()[d];
    } else if (!absl::c_linear_search(batch, d)) {
      free.push_back(d);
      out.free *= shape.dims()[d];
    }
  }
  out.batch = static_cast<int64_t>(batch.size());
  out.has_free = !free.empty();
  const auto arranged = [&](bool last) {
    OperandOrder order = out;
    order.contracting_last = last;
    order.order.assign(batch.begin(), batch.end());
    const auto add = [&](absl::Span<const int64_t> dims) {
      order.order.insert(order.order.end(), dims.begin(), dims.end());
    };
    add(last ? absl::MakeConstSpan(free) : contracting);
    add(last ? contracting : absl::MakeConstSpan(free));
    order.moves = !absl::c_is_sorted(order.order);
    return order;
  };
  if (free.size() == 1 && contracting.size() == 1) {  // a matrix is read in either order
    OperandOrder other = arranged(!contracting_last);
    if (!other.moves) return other;
  }
  return arranged(contracting_last);
}

const Shape& OperandShape(const Module& m, InstrId id, int k) {
  return *m.instr(m.operand(id, k)).shape;
}

std::pair<OperandOrder, OperandOrder> OrdersOf(const Module& m, InstrId id) {
  const DotAttrs& a = m.instr(id).as<DotAttrs>();
  return {OrderOf(OperandShape(m, id, 0), a.lhs_batch, a.lhs_contracting, true),
          OrderOf(OperandShape(m, id, 1), a.rhs_batch, a.rhs_contracting, false)};
}

// Those of the right and the left operand as the left and the right one.
std::pair<OperandOrder, OperandOrder> SwappedOrdersOf(const Module& m, InstrId id) {
  const DotAttrs& a = m.instr(id).as<DotAttrs>();
  return {OrderOf(OperandShape(m, id, 1), a.rhs_batch, a.rhs_contracting, true),
          OrderOf(OperandShape(m, id, 0), a.lhs_batch, a.lhs_contracting, false)};
}

bool ConcernsProduct(const Module& m, InstrId id) {
  if (m.instr(id).opcode != Opcode::kDot || m.instr(id).as<DotAttrs>().lhs_contracting.empty()) {
    return false;
  }
  const auto [lhs, rhs] = OrdersOf(m, id);
  return lhs.moves || rhs.moves || lhs.Merged(OperandShape(m, id, 0)).size() < lhs.order.size() ||
         rhs.Merged(OperandShape(m, id, 1)).size() < rhs.order.size();
}

InstrId Ordered(const OperandOrder& order, InstrId x, GraphBuilder& b) {
  const Dims merged = order.Merged(*b.shape(x));
  return b.Reshape(order.moves ? b.Transpose(x, order.order) : x, merged);
}

void MakeProduct(const Module& m, InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
  const auto [lhs, rhs] = OrdersOf(m, id);
  Instruction copy = cloner->CopyOf(id);
  DotAttrs attrs = copy.as<DotAttrs>();
  auto operands = cloner->OperandsOf(id);
  operands[0] = Ordered(lhs, operands[0], b);
  operands[1] = Ordered(rhs, operands[1], b);
  Dims batch, dims;
  const int64_t batches = b.shape(operands[0])->rank() - (lhs.has_free ? 2 : 1);
  for (int64_t k = 0; k < batches; ++k) {
    batch.push_back(k);
    dims.push_back(b.shape(operands[0])->dims()[k]);
  }
  if (lhs.has_free) dims.push_back(lhs.free);
  if (rhs.has_free) dims.push_back(rhs.free);
  const auto contracting = [&](const OperandOrder& order) {
    return Dims{batches + (order.has_free && order.contracting_last ? 1 : 0)};
  };
  const Dims left = contracting(lhs), right = contracting(rhs);
  attrs.lhs_batch = batch;
  attrs.rhs_batch = batch;
  attrs.lhs_contracting = left;
  attrs.rhs_contracting = right;
  copy.attrs = InternAttributes(b.context(), attrs);
  const Shape* const shape = m.instr(id).shape;
  copy.shape = b.context().WithDefaultLayout(b.context().MakeArray(shape->element_type(), dims));
  const InstrId now = cloner->Add(id, copy, operands, b.computation());
  cloner->CopyRare(id, now);
  cloner->Set(id, b.Reshape(now, shape->dims()));
}

// Whether the transpose puts the free dimensions of the right operand, in their order, between the
// batch and the free dimensions of the left one.
bool Swaps(const Module& m, InstrId id, const std::vector<int>& users) {
  if (m.instr(id).opcode != Opcode::kTranspose) return false;
  const InstrId dot = m.operand(id, 0);
  if (m.instr(dot).opcode != Opcode::kDot || users[dot.value] != 1) return false;
  const DotAttrs& a = m.instr(dot).as<DotAttrs>();
  const auto batch = static_cast<int64_t>(a.lhs_batch.size());
  const int64_t left = m.instr(m.operand(dot, 0)).shape->rank() - batch -
                       static_cast<int64_t>(a.lhs_contracting.size());
  const absl::Span<const int64_t> permutation = m.instr(id).as<DimensionsAttrs>().dimensions;
  const auto rank = static_cast<int64_t>(permutation.size());
  const int64_t right = rank - batch - left;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t from = d < batch ? d : d < batch + right ? d + left : d - right;
    if (permutation[d] != from) return false;
  }
  // It is worth it if less is put into order then.
  const auto bytes = [&](const OperandOrder& order, int k) {
    return order.moves ? m.instr(m.operand(dot, k)).shape->byte_size() : 0;
  };
  const auto [lhs, rhs] = OrdersOf(m, dot);
  const auto [new_lhs, new_rhs] = SwappedOrdersOf(m, dot);
  return bytes(new_lhs, 1) + bytes(new_rhs, 0) < bytes(lhs, 0) + bytes(rhs, 1);
}

}  // namespace

PassResult SwapTransposedProducts(const Module& m) {
  const std::vector<int> users = UseCounts(m);
  return RewriteInstructions(
      m, [&](InstrId id) { return Swaps(m, id, users); },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
        const InstrId dot = m.operand(id, 0);
        Instruction copy = cloner->CopyOf(dot);
        DotAttrs attrs = copy.as<DotAttrs>();
        std::swap(attrs.lhs_batch, attrs.rhs_batch);
        std::swap(attrs.lhs_contracting, attrs.rhs_contracting);
        copy.attrs = InternAttributes(b.context(), attrs);
        copy.shape = m.instr(id).shape;
        auto operands = cloner->OperandsOf(dot);
        std::swap(operands[0], operands[1]);
        cloner->Add(id, copy, operands, b.computation());
      });
}

PassResult OrderProductOperands(const Module& m) {
  return RewriteInstructions(
      m, [&](InstrId id) { return ConcernsProduct(m, id); },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) { MakeProduct(m, id, b, cloner); });
}

}  // namespace internal
}  // namespace shardcall
