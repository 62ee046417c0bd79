// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/lines/line_order.h"

#include <array>
#include <vector>

#include "shardcall/partitioner/ir/analysis/read_rows.h"
#include "shardcall/partitioner/ir/build/top_k_of_shards.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

struct Order {
  bool plain = false;
  bool ascending = true;
};
Order OrderOf(const Module& m, const Instruction& sort) {
  const Computation& comp = m.comp(sort.as<SortAttrs>().to_apply);
  const Instruction& root = m.instr(comp.root);
  Order out;
  if (comp.parameters.size() != 2 || root.opcode != Opcode::kCompare) return out;
  const auto& attrs = root.as<CompareAttrs>();
  const ElementType type = m.instr(comp.parameters[0]).shape->element_type();
  if (!IsInteger(type)) return out;
  const bool straight = m.operand(comp.root, 0) == comp.parameters[0] &&
                        m.operand(comp.root, 1) == comp.parameters[1];
  const bool swapped = m.operand(comp.root, 0) == comp.parameters[1] &&
                       m.operand(comp.root, 1) == comp.parameters[0];
  const bool less = attrs.direction == Direction::kLt, more = attrs.direction == Direction::kGt;
  out.plain = (straight || swapped) && (less || more);
  out.ascending = straight == less;
  return out;
}

// Whether no shard has padding, in which an operand's places may be anything.
bool IsEven(const Shape& shape, const Sharding& s, int d) {
  return shape.dim(d) % s.num_shards(d) == 0;
}

}  // namespace

absl::InlinedVector<double, 3> BytesOfLine(const OpQuery& op, const Sharding& s) {
  const int d = static_cast<int>(op.instr().as<SortAttrs>().dimension);
  absl::InlinedVector<double, 3> bytes;
  for (const Shape* shape : op.shapes) bytes.push_back(LocalBytes(shape, s));
  if (OrderOf(op.module, op.instr()).plain) return bytes;
  if (op.places[2] >= 0 && IsEven(*op.shapes[0], s, d)) return bytes;
  const Shape* places =
      op.module.context().MakeArray(PlaceType(op.shapes[0]->dim(d)), op.shapes[0]->dims());
  bytes.push_back(LocalBytes(places, s));
  return bytes;
}

LineOrder::LineOrder(OpBuilder& ops, const LocalOp& op)
    : ops_(ops), b_(ops.builder()), line_(op.operands) {
  SortAttrs attrs = op.instr.as<SortAttrs>();
  const int d = static_cast<int>(attrs.dimension);
  const Shape* global = op.operand_shapes[0];
  const Order order = OrderOf(ops_.global(), op.instr);
  if (order.plain) {
    const ElementType type = b_.type(line_[0]);
    const InstrId last = b_.ConstantBits(type, LastOfAllBits(type, !order.ascending));
    line_[0] = ops_.emitter().MaskPadding(line_[0], global, *op.decision.operands[0], {d}, last);
    attrs.to_apply = ops_.CopyComputation(attrs.to_apply);
  } else {
    if (IsEven(*global, *op.decision.operands[0], d)) place_ = PlacesOperand(ops.global(), op.id);
    if (place_ < 0) {
      place_ = static_cast<int>(line_.size());
      line_.push_back(Places(op));
    }
    attrs.to_apply = WithPlaces(attrs.to_apply, op.operands.size(), global->dim(d));
  }
  attrs.is_stable = false;  // no two elements rank alike, or they are the same
  before_ = attrs.to_apply;
  sort_ = InternAttributes(b_.context(), attrs);
}

InstrId LineOrder::Places(const LocalOp& op) const {
  const int d = static_cast<int>(op.instr.as<SortAttrs>().dimension);
  const Shape* global = op.operand_shapes[0];
  const ElementType type = PlaceType(global->dim(d));
  const InstrId iota = b_.Iota(type, b_.shape(op.operands[0])->dims(), d);
  const InstrId start =
      b_.Convert(ops_.emitter().TileStart(*op.decision.operands[0], global, d), type);
  return b_.Binary(Opcode::kAdd, iota, b_.BroadcastScalar(start, b_.shape(iota)));
}

CompId LineOrder::WithPlaces(CompId comparison, size_t operands, int64_t extent) const {
  const CompId given = ops_.CopyComputation(comparison);
  Module& m = ops_.local();
  const CompId comp = m.AddComputation("compare_with_places");
  GraphBuilder c(&m, comp, &ops_.shared().monoids);
  std::vector<InstrId> straight, swapped;
  std::array<InstrId, 2> place;
  for (size_t k = 0; k < line_.size(); ++k) {
    const Shape* scalar = c.context().MakeArray(b_.type(line_[k]), {});
    const InstrId x = c.Parameter(2 * k, scalar), y = c.Parameter(2 * k + 1, scalar);
    if (k == static_cast<size_t>(place_)) place = {x, y};
    if (k < operands) {
      straight.insert(straight.end(), {x, y});
      swapped.insert(swapped.end(), {y, x});
    }
  }
  const InstrId before = c.Call(given, straight), after = c.Call(given, swapped);
  const InstrId first = c.Compare(Direction::kLt, place[0], place[1]);
  const InstrId ranked =
      c.Binary(Opcode::kOr, before, c.Binary(Opcode::kAnd, c.Unary(Opcode::kNot, after), first));
  const InstrId end = c.ConstantInt(c.type(place[0]), extent);
  const InstrId both = c.Binary(Opcode::kAnd, c.Compare(Direction::kLt, place[0], end),
                                c.Compare(Direction::kLt, place[1], end));
  c.SetRoot(c.Select(both, ranked, first));
  return comp;
}

void LineOrder::Sort(LocalIds* part) const {
  if (part->size() == 1) {
    (*part)[0] = b_.Add(Opcode::kSort, *part, sort_);
    return;
  }
  const InstrId sorted = b_.Add(Opcode::kSort, *part, sort_);
  for (size_t k = 0; k < part->size(); ++k) (*part)[k] = b_.GetTupleElement(sorted, k);
}

}  // namespace internal
}  // namespace shardcall
