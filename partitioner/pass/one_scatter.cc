// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/one_scatter.h"

#include <vector>

#include "shardcall/partitioner/ir/analysis/one_window.h"
#include "shardcall/partitioner/ir/build/clamped_starts.h"
#include "shardcall/partitioner/ir/monoid.h"

namespace shardcall {
inline namespace internal {
namespace {

// The scatter's computation over whole windows: the update itself, an op, or a map.
InstrId Combine(const Module& m, CompId to_apply, InstrId old, InstrId update, GraphBuilder& b,
                const ModuleCloner& cloner) {
  const Computation& body = m.comp(to_apply);
  if (body.root == body.parameters[1]) return update;
  if (body.root == body.parameters[0]) return old;
  Opcode op;
  if (RecognizeMonoid(m, to_apply, &op)) return b.Binary(op, old, update);
  ReduceAttrs attrs;
  std::vector<int64_t> dimensions;
  for (int d = 0; d < b.shape(old)->rank(); ++d) dimensions.push_back(d);
  attrs.dimensions = dimensions;
  attrs.to_apply = cloner.now(to_apply);
  return b.Add(Opcode::kMap, {old, update}, InternAttributes(b.context(), attrs));
}

void BetweenBarriers(InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
  auto operands = cloner->OperandsOf(id);
  for (size_t k = 0; k < operands.size() / 2; ++k) operands[k] = b.OptBarrier(operands[k]);
  const InstrId now = cloner->Add(id, cloner->CopyOf(id), operands, b.computation());
  cloner->CopyRare(id, now);
  cloner->Set(id, b.OptBarrier(now));
}

}  // namespace

void MakeScatterExplicit(const Module& m, InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
  const Instruction& i = m.instr(id);
  if (m.operands(i).size() != 3) {
    BetweenBarriers(id, b, cloner);
    return;
  }
  const auto& attrs = i.as<ScatterAttrs>();
  const auto operands = cloner->OperandsOf(id);
  const InstrId x = operands[0];
  const StartLimits limits = LimitsOfStarts(m, i);
  const int64_t components = static_cast<int64_t>(limits.most.size());
  const InstrId indices = b.Reshape(operands[1], {components});
  const ElementType type = b.type(indices);
  std::vector<InstrId> starts(b.shape(x)->rank());
  for (InstrId& start : starts) start = b.Zero(type);
  InstrId fits;
  for (int64_t c = 0; c < components; ++c) {
    const InstrId index = b.Reshape(b.Slice(indices, {c}, {c + 1}), {});
    const InstrId start = ClampStart(b, index, limits.most[c]);
    const InstrId same = b.Compare(Direction::kEq, start, index);
    fits = fits.valid() ? b.Binary(Opcode::kAnd, fits, same) : same;
    starts[attrs.scatter_dims_to_operand_dims[c]] = start;
  }
  const auto window = ScatterWindow(m, i);
  const InstrId old = b.DynamicSlice(x, starts, window);
  // Dimensions of size 1 apart, the update has the window's dimensions in their order.
  const InstrId made = Combine(m, attrs.to_apply, old, b.Reshape(operands[2], window), b, *cloner);
  const InstrId part =
      fits.valid() ? b.Select(b.BroadcastScalar(fits, b.shape(old)), made, old) : made;
  const InstrId now = b.DynamicUpdateSlice(x, part, starts);
  cloner->Set(id, now);
  cloner->CopyOrder(id, now);
}

}  // namespace internal
}  // namespace shardcall
