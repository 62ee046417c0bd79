// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/feeds.h"

#include <algorithm>
#include <map>
#include <vector>

#include "shardcall/partitioner/spmd/localize/one_device.h"

namespace shardcall {
inline namespace internal {
namespace {

// A leaf of the transferred data.
struct Piece {
  const Shape* global;
  const Sharding* state;
  const Shape* held;    // local shape, padded
  int64_t device = -1;  // maximal: the only device that transfers it
};

// The shape that `device` transfers of this leaf; null: nothing.
const Shape* FedBy(Context& context, const Piece& piece, int64_t device) {
  if (piece.device >= 0) return piece.device == device ? piece.held : nullptr;
  const Sharding& s = *piece.state;
  const int64_t position = s.mesh()->order().PositionOf(device);
  absl::InlinedVector<int64_t, 6> dims(piece.held->dims().begin(), piece.held->dims().end());
  for (int d = 0; d < s.rank(); ++d) {
    if (!s.IsDimSharded(d)) continue;
    const int64_t begin = s.mesh()->Coordinate(s.dim(d), position) * dims[d];
    dims[d] = std::clamp<int64_t>(piece.global->dim(d) - begin, 0, dims[d]);
  }
  return context.WithDims(piece.held, dims);
}

bool DiffersBetweenDevices(const Piece& piece) {
  if (piece.device >= 0) return true;
  for (int d = 0; d < piece.state->rank(); ++d) {
    if (piece.global->dim(d) % piece.state->num_shards(d) != 0) return true;
  }
  return false;
}

// The infeed or outfeed of data with these shapes; null where this device transfers nothing. The
// results of an infeed are padded to the local shapes.
LocalIds Feed(OpBuilder& ops, const LocalOp& op, absl::Span<const Shape* const> shapes) {
  GraphBuilder& b = ops.builder();
  const Shape* nothing = ops.context().MakeTuple({});
  LocalOp fed = op;
  if (op.instr.opcode == Opcode::kInfeed) {
    for (size_t k = 0; k < shapes.size(); ++k) {
      fed.result_shapes[k] = shapes[k] == nullptr ? nothing : shapes[k];
    }
    const LocalIds got = ops.Clone(fed, fed.operands);
    LocalIds out;
    size_t at = 0;
    for (size_t k = 0; k < shapes.size(); ++k) {
      const Shape* held = op.result_shapes[k];
      if (shapes[k] == nullptr) {
        out.push_back(b.BroadcastScalar(b.Zero(held->element_type()), held));
        continue;
      }
      InstrId x = got[at++];
      for (int d = 0; d < held->rank(); ++d) x = ops.emitter().PadDim(x, d, held->dim(d));
      out.push_back(x);
    }
    out.push_back(got[at]);  // the token
    return out;
  }
  OutfeedAttrs attrs = op.instr.as<OutfeedAttrs>();
  std::vector<const Shape*> leaves;
  for (size_t k = 0; k < shapes.size(); ++k) {
    InstrId& x = fed.operands[k];
    if (shapes[k] == nullptr) {
      x = b.Tuple({});
      leaves.push_back(nothing);
      continue;
    }
    for (int d = 0; d < shapes[k]->rank(); ++d) x = ops.emitter().TrimDim(x, d, shapes[k]->dim(d));
    leaves.push_back(
        attrs.shape == nullptr
            ? shapes[k]
            : ops.context().WithDims(attrs.shape->leaf(static_cast<int>(k)), shapes[k]->dims()));
  }
  if (attrs.shape != nullptr) attrs.shape = ops.ShapeFromLeaves(attrs.shape, leaves);
  return ops.Clone(fed, AssembleOperands(ops, fed), InternAttributes(ops.context(), attrs));
}

}  // namespace

void LocalizeFeed(Localizer& l, const LocalOp& op) {
  OpBuilder& ops = l.ops();
  const bool in = op.instr.opcode == Opcode::kInfeed;
  const auto said = ops.program().outfeeds.find(op.id);
  const size_t leaves = (in ? op.result_shapes.size() : op.operands.size()) - 1;
  std::vector<Piece> pieces;
  bool differ = false;
  for (size_t k = 0; k < leaves; ++k) {
    const int flat = static_cast<int>(k);
    Piece piece;
    const ShardingConstraint* c = nullptr;
    if (in) {
      piece = {op.instr.shape->leaf(flat), op.decision.produced[k], op.result_shapes[k]};
      c = ops.program().constraints[ops.program().leaves.leaf(op.id, flat).value];
    } else {
      piece = {op.operand_shapes[k], op.decision.operands[k],
               LocalShape(ops.context(), op.operand_shapes[k], op.decision.operands[k])};
      if (said != ops.program().outfeeds.end()) c = said->second[k];
    }
    if (c != nullptr) piece.device = c->maximal_device;
    differ = differ || DiffersBetweenDevices(piece);
    pieces.push_back(piece);
  }

  // The distinct forms, in order of the first device that has each.
  std::vector<std::vector<const Shape*>> forms;
  std::vector<int32_t> form_of;
  std::map<std::vector<const Shape*>, int32_t> known;
  for (int64_t device = 0; device < (differ ? ops.program().num_partitions : 1); ++device) {
    std::vector<const Shape*> form;
    for (const Piece& piece : pieces) form.push_back(FedBy(ops.context(), piece, device));
    const auto [it, fresh] = known.try_emplace(form, static_cast<int32_t>(forms.size()));
    form_of.push_back(it->second);
    if (fresh) forms.push_back(std::move(form));
  }
  LocalIds produced;
  if (forms.size() == 1) {
    produced = Feed(ops, op, forms[0]);
  } else {
    const InstrId given = ops.builder().Tuple(op.operands);
    const InstrId index = ops.emitter().OfDevice(form_of);
    LocalIds operands{index};
    std::vector<CompId> branches;
    for (const auto& form : forms) {
      operands.push_back(given);
      branches.push_back(
          ops.AddBranch("feed", ops.builder().shape(given), [&](const LocalIds& inside) {
            LocalOp own = op;
            own.operands = inside;
            return Feed(ops, own, form);
          }));
    }
    ConditionalAttrs attrs;
    attrs.branches = branches;
    produced = ops.Flatten(
        ops.builder().Add(Opcode::kConditional, operands, InternAttributes(ops.context(), attrs)));
  }
  const AxisList free = FreeAxes(ops.program(), op.id);
  for (size_t k = 0; in && k < pieces.size(); ++k) {
    if (pieces[k].device < 0) continue;
    produced[k] =
        BroadcastResult(ops, op.id, static_cast<int>(k), produced[k], pieces[k].device, free);
  }
  l.StoreResults(op.id, op.decision, produced);
}

}  // namespace internal
}  // namespace shardcall
