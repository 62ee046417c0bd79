// SPDX-License-Identifier: Apache-2.0
// A scan on shards. Along other dimensions, which its rule cuts if the body works element by
// element, each device scans its shard with a body for the shard's sizes. Along the scanned
// dimension, where the body is associative, it runs in three phases (Blelloch, Prefix Sums and
// Their Applications, 1990, section 1.2): each device computes the total of its shard; the totals
// of all shards are gathered and scanned from the program's carries; each device scans its shard
// from the carry of those before it.
#include <algorithm>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/rows.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

int ScannedDim(const Instruction& scan) { return static_cast<int>(scan.as<ScanAttrs>().dimension); }

bool Crosses(const OpQuery& op, int f) {
  return op.rule->factors[f].kind == FactorKind::kPermutation;
}

bool Complete(const OpQuery& op, Candidate* c) {
  const int d = ScannedDim(op.instr());
  const Sharding& s = *c->operands[0];
  const int64_t n = s.num_shards(d);
  if (n == 1) return true;
  const size_t carries = op.instr().as<ScanAttrs>().num_carries;
  for (size_t k = op.shapes.size() - carries; k < op.shapes.size(); ++k) {
    const int64_t bytes = LocalBytes(op.shapes[k], *c->operands[k]);
    c->AddEmitted(op.module.context(), static_cast<double>((n - 1) * bytes), *s.mesh(), s.dim(d));
  }
  return true;
}

std::vector<int64_t> SliceDims(const Shape* shape, int d) {
  std::vector<int64_t> dims(shape->dims().begin(), shape->dims().end());
  dims.erase(dims.begin() + d);
  return dims;
}

// A copy of a body that works element by element on arrays of the dimensions `from`, for arrays of
// the dimensions `to`.
CompId ResizedBody(OpBuilder& ops, CompId body, absl::Span<const int64_t> from,
                   absl::Span<const int64_t> to) {
  const Module& m = ops.global();
  Module& local = ops.local();
  const auto resized = [&](const Shape* shape) {
    return shape->rank() > 0 && shape->dims() == from
               ? ops.context().MakeArray(shape->element_type(), to)
               : shape;
  };
  const CompId comp = local.AddComputation(m.comp(body).name);
  absl::flat_hash_map<InstrId, InstrId> copies;
  for (InstrId id : m.comp(body).instructions) {
    Instruction copy = m.instr(id);
    copy.sharding = nullptr;
    copy.frontend = WithoutSdy(ops.context(), copy.frontend);
    copy.extra = -1;
    absl::InlinedVector<const Shape*, 4> leaves;
    for (int k = 0; k < copy.shape->num_leaves(); ++k) {
      leaves.push_back(resized(copy.shape->leaf(k)));
    }
    copy.shape = ops.ShapeFromLeaves(copy.shape, leaves);
    LocalIds operands;
    for (InstrId o : m.operands(id)) operands.push_back(copies.at(o));
    copies[id] = local.Add(comp, copy, operands);
  }
  local.SetRoot(comp, copies.at(m.comp(body).root));
  return comp;
}

// What a step gives beside the new carries.
enum class StepOutputs : uint8_t { kOfBody, kCarriesBefore, kNone };

// Scans of the op on one device's shards.
class LocalScan {
 public:
  LocalScan(OpBuilder& ops, const LocalOp& op)
      : ops_(ops),
        attrs_(op.instr.as<ScanAttrs>()),
        carries_(static_cast<int>(attrs_.num_carries)),
        inputs_(static_cast<int>(op.operands.size()) - carries_) {
    const int d = static_cast<int>(attrs_.dimension);
    const auto from = SliceDims(op.operand_shapes[0], d);
    const auto to = SliceDims(ops.builder().shape(op.operands[0]), d);
    body_ = from == to ? ops.CopyComputation(attrs_.to_apply)
                       : ResizedBody(ops, attrs_.to_apply, from, to);
  }

  CompId body() const { return body_; }
  int inputs() const { return inputs_; }
  // The flat results of a scan along dimension d. With `flags`, pred[length], a step without its
  // flag leaves the carries as they are.
  LocalIds Run(const LocalIds& x, const LocalIds& start, int d, StepOutputs outputs,
               std::optional<InstrId> flags = std::nullopt) const;

 private:
  CompId Step(StepOutputs outputs, bool flagged) const;

  OpBuilder& ops_;
  const ScanAttrs& attrs_;
  const int carries_, inputs_;
  CompId body_;
};

CompId LocalScan::Step(StepOutputs outputs, bool flagged) const {
  if (outputs == StepOutputs::kOfBody && !flagged) return body_;
  Module& local = ops_.local();
  const std::vector<InstrId> parameters = local.comp(body_).parameters;
  GraphBuilder b(&local, local.AddComputation("step"), &ops_.shared().monoids);
  LocalIds arguments;
  InstrId flag;
  for (int k = 0; k < inputs_ + carries_; ++k) {
    if (flagged && k == inputs_) {
      flag = b.Parameter(k, ops_.context().MakeArray(ElementType::kPred, {}));
    }
    const int number = k + (flagged && k >= inputs_ ? 1 : 0);
    arguments.push_back(b.Parameter(number, local.instr(parameters[k]).shape->bare()));
  }
  const InstrId made = b.Call(body_, arguments);
  const auto leaf = [&](int k) {
    return b.shape(made)->IsTuple() ? b.GetTupleElement(made, k) : made;
  };
  const int own = b.shape(made)->num_leaves() - carries_;
  LocalIds results;
  for (int k = 0; k < own && outputs == StepOutputs::kOfBody; ++k) results.push_back(leaf(k));
  if (outputs == StepOutputs::kCarriesBefore) {
    results.insert(results.end(), arguments.begin() + inputs_, arguments.end());
  }
  for (int k = 0; k < carries_; ++k) {
    const InstrId before = arguments[inputs_ + k], after = leaf(own + k);
    results.push_back(flagged ? b.Select(b.BroadcastScalar(flag, b.shape(after)), after, before)
                              : after);
  }
  b.SetRoot(b.Tuple(results));
  return b.computation();
}

LocalIds LocalScan::Run(const LocalIds& x, const LocalIds& start, int d, StepOutputs outputs,
                        std::optional<InstrId> flags) const {
  LocalIds operands = x;
  if (flags.has_value()) operands.push_back(*flags);
  operands.insert(operands.end(), start.begin(), start.end());
  ScanAttrs attrs = attrs_;
  attrs.dimension = d;
  attrs.to_apply = Step(outputs, flags.has_value());
  if (attrs.to_apply != body_) attrs.is_associative = 0;
  return ops_.Flatten(
      ops_.builder().Add(Opcode::kScan, operands, InternAttributes(ops_.context(), attrs)));
}

// Row `at` of dimension d, without that dimension.
InstrId RowAt(GraphBuilder& b, InstrId x, int d, InstrId at) {
  const Shape* shape = b.shape(x);
  LocalIds starts(shape->rank(), b.Zero(ElementType::kS32));
  starts[d] = at;
  std::vector<int64_t> sizes(shape->dims().begin(), shape->dims().end());
  sizes[d] = 1;
  return b.Reshape(b.DynamicSlice(x, starts, sizes), SliceDims(shape, d));
}

// The op along its scanned dimension, which is sharded.
class ShardedScan {
 public:
  ShardedScan(OpBuilder& ops, const LocalOp& op)
      : ops_(ops),
        b_(ops.builder()),
        op_(op),
        scan_(ops, op),
        d_(ScannedDim(op.instr)),
        size_(op.operand_shapes[0]->dim(d_)),
        s_(*op.decision.operands[0]),
        tile_(b_.shape(op.operands[0])->dim(d_)),
        reverse_(op.instr.as<ScanAttrs>().is_reverse),
        x_(op.operands.begin(), op.operands.begin() + scan_.inputs()),
        start_(op.operands.begin() + scan_.inputs(), op.operands.end()) {
    const int64_t shards = s_.num_shards(d_);
    if (size_ % shards == 0) return;
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < shards; ++i) {
      rows.push_back(std::clamp<int64_t>(size_ - i * tile_, 0, tile_));
    }
    rows_ = ops.emitter().OfShard(s_.dim(d_), rows);
  }

  LocalIds Run();

 private:
  LocalIds Totals() const;
  std::optional<LocalIds> ReducedTotals() const;
  // Whether rows [begin, end) of a shard, pred[tile]. `begin`: 0 or 1.
  InstrId Flags(int64_t begin, InstrId end) const;

  OpBuilder& ops_;
  GraphBuilder& b_;
  const LocalOp& op_;
  const LocalScan scan_;
  const int d_;
  const int64_t size_;
  const Sharding& s_;
  const int64_t tile_;
  const bool reverse_;
  const LocalIds x_, start_;
  std::optional<InstrId> rows_;  // of this shard, without padding; none where shards are even
};

InstrId ShardedScan::Flags(int64_t begin, InstrId end) const {
  const InstrId index = b_.Iota(ElementType::kS32, {tile_}, 0);
  const InstrId before =
      b_.Compare(Direction::kLt, index, b_.BroadcastScalar(end, b_.shape(index)));
  if (begin == 0) return before;
  const InstrId zero = b_.BroadcastScalar(b_.Zero(ElementType::kS32), b_.shape(index));
  return b_.Binary(Opcode::kAnd, before, b_.Compare(Direction::kGt, index, zero));
}

// Where all carries are reductions that the engine knows, from their identities.
std::optional<LocalIds> ShardedScan::ReducedTotals() const {
  const Module& m = ops_.global();
  const Computation& body = m.comp(op_.instr.as<ScanAttrs>().to_apply);
  const size_t n = x_.size();
  const auto made = m.operands(body.root);
  if (m.instr(body.root).opcode != Opcode::kTuple) return std::nullopt;
  LocalIds totals;
  for (size_t k = 0; k < n; ++k) {
    const ElementType type = b_.type(x_[k]);
    const auto monoid =
        MonoidOfPair(m, made[made.size() - n + k], body.parameters[k], body.parameters[n + k]);
    if (!monoid || !HasIdentity(*PartialOpOf(*monoid), type)) return std::nullopt;
    const InstrId identity = b_.Identity(*monoid, type, ZeroSign::kExact);
    const InstrId x = ops_.emitter().MaskPadding(x_[k], op_.operand_shapes[k], s_, {d_}, identity);
    totals.push_back(b_.Reduce(x, identity, {d_}, *monoid));
  }
  return totals;
}

// What the body makes of the shard's rows: the first one that it takes is the carry with which it
// takes the others.
LocalIds ShardedScan::Totals() const {
  if (const auto reduced = ReducedTotals()) return *reduced;
  LocalIds first, others;
  if (!rows_.has_value()) {
    const int64_t at = reverse_ ? tile_ - 1 : 0;
    for (InstrId x : x_) {
      first.push_back(b_.Reshape(Rows(b_, x, d_, at, at + 1), SliceDims(b_.shape(x), d_)));
      others.push_back(reverse_ ? Rows(b_, x, d_, 0, tile_ - 1) : Rows(b_, x, d_, 1, tile_));
    }
    return tile_ == 1 ? first : scan_.Run(others, first, d_, StepOutputs::kNone);
  }
  const InstrId last = b_.Binary(Opcode::kSubtract, *rows_, b_.One(ElementType::kS32));
  for (InstrId x : x_) {
    first.push_back(RowAt(b_, x, d_, reverse_ ? last : b_.Zero(ElementType::kS32)));
  }
  const InstrId flags = reverse_ ? Flags(0, last) : Flags(1, *rows_);
  return scan_.Run(x_, first, d_, StepOutputs::kNone, flags);
}

LocalIds ShardedScan::Run() {
  const int64_t full = CeilDiv(size_, tile_);  // shards with at least one row
  LocalIds totals = Totals();
  for (size_t k = 0; k < totals.size(); ++k) {
    ops_.emitter().set_cause_index(static_cast<int>(k));
    std::vector<int64_t> dims(b_.shape(totals[k])->dims().begin(),
                              b_.shape(totals[k])->dims().end());
    dims.insert(dims.begin(), 1);
    const InstrId all = ops_.emitter().AllGather(b_.Reshape(totals[k], dims), 0, s_.dim(d_));
    totals[k] = b_.shape(all)->dim(0) == full ? all : Rows(b_, all, 0, 0, full);
  }
  const LocalIds carried = scan_.Run(totals, start_, 0, StepOutputs::kCarriesBefore);
  const InstrId shard = ops_.emitter().Coordinate(s_.mesh(), s_.dim(d_));
  const size_t n = totals.size();
  LocalIds before;
  for (size_t k = 0; k < n; ++k) before.push_back(RowAt(b_, carried[k], 0, shard));
  // From the end, padding is met before the rows.
  std::optional<InstrId> flags;
  if (rows_.has_value() && reverse_) flags = Flags(0, *rows_);
  LocalIds results = scan_.Run(x_, before, d_, StepOutputs::kOfBody, flags);
  absl::c_copy(absl::MakeConstSpan(carried).subspan(n), results.end() - n);
  return results;
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  if (op.decision.operands[0]->IsDimSharded(ScannedDim(op.instr))) {
    return ShardedScan(ops, op).Run();
  }
  ScanAttrs attrs = op.instr.as<ScanAttrs>();
  attrs.to_apply = LocalScan(ops, op).body();
  return ops.Clone(op, op.operands, InternAttributes(ops.context(), attrs));
}

}  // namespace

constexpr Strategy kScanStrategy{
    .name = "carries of the shards before", .crosses = Crosses, .complete = Complete, .emit = Emit};

}  // namespace internal
}  // namespace shardcall
