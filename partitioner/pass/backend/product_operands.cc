// SPDX-License-Identifier: Apache-2.0
// XLA:CPU multiplies matrices that lie in one order (its dot decomposer); one of two dimensions
// beside the batch is read in either.
#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {
namespace {

using Dims = absl::InlinedVector<int64_t, 6>;

// Batch, then contracting and free dimensions, or these the other way round.
struct OperandOrder {
  Dims order;
  bool moves = false;  // another order than it has, and not by one transpose of matrices
};
OperandOrder OrderOf(int64_t rank, absl::Span<const int64_t> batch,
                     absl::Span<const int64_t> contracting, bool contracting_last) {
  Dims free;
  for (int64_t d = 0; d < rank; ++d) {
    if (!absl::c_linear_search(batch, d) && !absl::c_linear_search(contracting, d)) {
      free.push_back(d);
    }
  }
  OperandOrder out;
  out.order.assign(batch.begin(), batch.end());
  const auto add = [&](absl::Span<const int64_t> dims) {
    out.order.insert(out.order.end(), dims.begin(), dims.end());
  };
  add(contracting_last ? absl::MakeConstSpan(free) : contracting);
  add(contracting_last ? contracting : absl::MakeConstSpan(free));
  bool leading = true;
  for (size_t k = 0; k < batch.size(); ++k) leading &= out.order[k] == static_cast<int64_t>(k);
  const bool matrix = leading && free.size() == 1 && contracting.size() == 1;
  out.moves = !absl::c_is_sorted(out.order) && !matrix;
  return out;
}

std::pair<OperandOrder, OperandOrder> OrdersOf(const Module& m, InstrId id) {
  const DotAttrs& a = m.instr(id).as<DotAttrs>();
  return {OrderOf(m.instr(m.operand(id, 0)).shape->rank(), a.lhs_batch, a.lhs_contracting, true),
          OrderOf(m.instr(m.operand(id, 1)).shape->rank(), a.rhs_batch, a.rhs_contracting, false)};
}

bool ConcernsProduct(const Module& m, InstrId id) {
  if (m.instr(id).opcode != Opcode::kDot || m.instr(id).as<DotAttrs>().lhs_contracting.empty()) {
    return false;
  }
  const auto [lhs, rhs] = OrdersOf(m, id);
  return lhs.moves || rhs.moves;
}

// Transposes an operand, and says where its dimensions are then.
InstrId Ordered(const OperandOrder& order, InstrId x, GraphBuilder& b,
                std::initializer_list<Dims*> dims) {
  if (!order.moves) return x;
  for (Dims* const list : dims) {
    for (int64_t& d : *list) d = absl::c_find(order.order, d) - order.order.begin();
  }
  return b.Transpose(x, order.order);
}

void MakeProduct(const Module& m, InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
  const auto [lhs, rhs] = OrdersOf(m, id);
  Instruction copy = cloner->CopyOf(id);
  DotAttrs attrs = copy.as<DotAttrs>();
  auto operands = cloner->OperandsOf(id);
  const auto list = [](absl::Span<const int64_t> dims) { return Dims(dims.begin(), dims.end()); };
  Dims lhs_batch = list(attrs.lhs_batch), lhs_contracting = list(attrs.lhs_contracting);
  Dims rhs_batch = list(attrs.rhs_batch), rhs_contracting = list(attrs.rhs_contracting);
  operands[0] = Ordered(lhs, operands[0], b, {&lhs_batch, &lhs_contracting});
  operands[1] = Ordered(rhs, operands[1], b, {&rhs_batch, &rhs_contracting});
  attrs.lhs_batch = lhs_batch;
  attrs.lhs_contracting = lhs_contracting;
  attrs.rhs_batch = rhs_batch;
  attrs.rhs_contracting = rhs_contracting;
  copy.attrs = InternAttributes(b.context(), attrs);
  const InstrId now = cloner->Add(id, copy, operands, b.computation());
  cloner->CopyRare(id, now);
}

}  // namespace

PassResult OrderProductOperands(const Module& m) {
  return RewriteInstructions(
      m, [&](InstrId id) { return ConcernsProduct(m, id); },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) { MakeProduct(m, id, b, cloner); });
}

}  // namespace internal
}  // namespace shardcall
