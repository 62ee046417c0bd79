// SPDX-License-Identifier: Apache-2.0
// A sort along a sharded dimension where no other dimension can have its axes. Each device sorts
// its shard. Then pairs of devices merge theirs, of which one keeps the first half and the other
// the last, in the order of Batcher's merge exchange (Knuth, The Art of Computer Programming 3,
// 5.2.2, algorithm M; that shards may stand for elements: 5.3.4, exercise 38). Over 8 devices these
// are 6 rounds of 19 pairs in all, over 64 devices 21 rounds of 543 pairs: a device sends 19/32 and
// about 1/4 of the line.
//
// Of two sorted shards a and b, the first half is made of the earlier one of a[i] and b[n - 1 - i],
// for each i, and the last half of the others.
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/build/top_k_of_shards.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

using Round = std::vector<std::pair<int64_t, int64_t>>;  // pairs of shards, the first half's first

std::vector<Round> MergeExchange(int64_t shards) {
  std::vector<Round> rounds;
  int64_t top = 1;
  while (2 * top < shards) top *= 2;
  for (int64_t p = shards < 2 ? 0 : top; p > 0; p /= 2) {
    int64_t q = top, r = 0, d = p;
    while (true) {
      Round round;
      for (int64_t i = 0; i + d < shards; ++i) {
        if ((i & p) == r) round.emplace_back(i, i + d);
      }
      if (!round.empty()) rounds.push_back(std::move(round));
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
  return rounds;
}

// Elements of one operand that rank alike are the same where they are compared as they are, by
// their whole value. Otherwise their places in the whole line decide, which each element takes with
// it: so the order of one device comes out, and padding is last.
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

bool Rule(const OpQuery& op, ShardingRule* rule) {
  const int d = static_cast<int>(op.instr().as<SortAttrs>().dimension);
  if (op.shapes[0]->num_elements() == 0 || !op.operands[0]->IsDimSharded(d)) return false;
  *rule = *op.rule;
  rule->factors[rule->operands[0].dims[d][0]].kind = FactorKind::kPermutation;
  return true;
}

bool Crosses(const OpQuery&, int) { return true; }

ElementType PlaceType(int64_t extent) {
  return extent < INT32_MAX / 2 ? ElementType::kS32 : ElementType::kS64;
}

bool Complete(const OpQuery& op, Candidate* c) {
  constexpr int64_t kMostShards = 1024;
  const int d = static_cast<int>(op.instr().as<SortAttrs>().dimension);
  const Sharding& s = *c->operands[0];
  const int64_t n = s.num_shards(d);
  if (n == 1) return true;
  if (n > kMostShards) return false;
  Context& context = op.module.context();
  absl::InlinedVector<double, 3> sent;
  for (const Shape* shape : op.shapes) sent.push_back(LocalBytes(shape, s));
  if (!OrderOf(op.module, op.instr()).plain) {
    const Shape* places = context.MakeArray(PlaceType(op.shapes[0]->dim(d)), op.shapes[0]->dims());
    sent.push_back(LocalBytes(places, s));
  }
  for (const Round& round : MergeExchange(n)) {
    const double share = 2.0 * static_cast<double>(round.size()) / static_cast<double>(n);
    for (double bytes : sent) {
      c->AddEmitted(context, share * bytes, *s.mesh(), s.dim(d), Collective::kPermute);
    }
  }
  return true;
}

// A shard is sorted at first and after each round.
double Seconds(const CostModel& cost, const Module&, const Instruction& instr,
               const Decision& decision) {
  const int d = static_cast<int>(instr.as<SortAttrs>().dimension);
  const auto rounds = MergeExchange(decision.operands[0]->num_shards(d)).size();
  double touched = 0;
  for (int k = 0; k < static_cast<int>(decision.produced.size()); ++k) {
    touched += 2 * static_cast<double>(LocalBytes(instr.shape->leaf(k), *decision.produced[k]));
  }
  return cost.MemorySeconds(touched * static_cast<double>(rounds + 1));
}

// Emits one sort: holds what its rounds have in common.
class LineSorter {
 public:
  LineSorter(OpBuilder& ops, const LocalOp& op)
      : ops_(ops),
        op_(op),
        b_(ops.builder()),
        attrs_(op.instr.as<SortAttrs>()),
        d_(static_cast<int>(attrs_.dimension)),
        axes_(op.decision.operands[0]->dim(d_)),
        shards_(AxesSize(axes_)) {}

  LocalIds Emit() {
    const size_t given = op_.operands.size();
    LocalIds line = op_.operands;
    const Shape* global = op_.operand_shapes[0];
    const Sharding& s = *op_.decision.operands[0];
    const Order order = OrderOf(ops_.global(), op_.instr);
    SortAttrs attrs = attrs_;
    if (order.plain) {
      const ElementType type = b_.type(line[0]);
      const InstrId last = b_.ConstantBits(type, LastOfAllBits(type, !order.ascending));
      line[0] = ops_.emitter().MaskPadding(line[0], global, s, {d_}, last);
      attrs.to_apply = ops_.CopyComputation(attrs.to_apply);
    } else {
      line.push_back(Places(global, s));
      attrs.to_apply = WithPlaces(attrs.to_apply, line, global->dim(d_));
    }
    attrs.is_stable = false;  // no two elements rank alike, or they are the same
    before_ = attrs.to_apply;
    sort_ = InternAttributes(b_.context(), attrs);
    Sort(&line);
    for (const Round& round : MergeExchange(shards_)) Merge(round, &line);
    line.resize(given);
    return line;
  }

 private:
  InstrId Places(const Shape* global, const Sharding& s) {
    const ElementType type = PlaceType(global->dim(d_));
    const InstrId iota = b_.Iota(type, b_.shape(op_.operands[0])->dims(), d_);
    const InstrId start = b_.Convert(ops_.emitter().TileStart(s, global, d_), type);
    return b_.Binary(Opcode::kAdd, iota, b_.BroadcastScalar(start, b_.shape(iota)));
  }

  // The comparison of elements that have their places with them.
  CompId WithPlaces(CompId comparison, const LocalIds& line, int64_t extent) {
    const CompId given = ops_.CopyComputation(comparison);
    Module& m = ops_.local();
    const CompId comp = m.AddComputation("compare_with_places");
    GraphBuilder c(&m, comp, &ops_.shared().monoids);
    std::vector<InstrId> straight, swapped;
    std::array<InstrId, 2> place;
    for (size_t k = 0; k < line.size(); ++k) {
      const Shape* scalar = c.context().MakeArray(b_.type(line[k]), {});
      const InstrId x = c.Parameter(2 * k, scalar), y = c.Parameter(2 * k + 1, scalar);
      if (k + 1 == line.size()) {
        place = {x, y};
      } else {
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

  void Sort(LocalIds* line) {
    if (line->size() == 1) {
      (*line)[0] = b_.Add(Opcode::kSort, *line, sort_);
      return;
    }
    const InstrId sorted = b_.Add(Opcode::kSort, *line, sort_);
    for (size_t k = 0; k < line->size(); ++k) (*line)[k] = b_.GetTupleElement(sorted, k);
  }

  InstrId FromPartner(InstrId x, const Round& round) {
    Round both_ways = round;
    for (const auto& [first, last] : round) both_ways.emplace_back(last, first);
    return ops_.emitter().SendShards(x, axes_, both_ways);
  }

  void Merge(const Round& round, LocalIds* line) {
    // Of each shard: 1 if it keeps the first half, -1 if the last, 0 if it has no partner.
    std::vector<int64_t> half(shards_, 0);
    for (const auto& [first, last] : round) half[first] = 1, half[last] = -1;
    const Shape* shape = b_.shape((*line)[0]);
    const InstrId mine = ops_.emitter().OfShard(axes_, half);
    const auto keeps = [&](int64_t which) {
      const InstrId is = b_.Compare(Direction::kEq, mine, b_.ConstantInt(ElementType::kS32, which));
      return b_.Broadcast(is, shape->dims(), {});
    };
    LocalIds theirs;
    std::vector<InstrId> earlier, later;  // arguments of the comparison
    for (size_t k = 0; k < line->size(); ++k) {
      CollectiveCause cause = ops_.emitter().cause();
      cause.index = static_cast<int>(std::min(k, op_.operands.size() - 1));
      ops_.emitter().set_cause(cause);
      theirs.push_back(b_.Reverse(FromPartner((*line)[k], round), {d_}));
      earlier.insert(earlier.end(), {theirs[k], (*line)[k]});
      later.insert(later.end(), {(*line)[k], theirs[k]});
    }
    const InstrId take =
        b_.Binary(Opcode::kOr, b_.Binary(Opcode::kAnd, keeps(1), Compared(earlier, shape)),
                  b_.Binary(Opcode::kAnd, keeps(-1), Compared(later, shape)));
    for (size_t k = 0; k < line->size(); ++k) {
      (*line)[k] = b_.Select(take, theirs[k], (*line)[k]);
    }
    Sort(line);
  }

  InstrId Compared(absl::Span<const InstrId> arguments, const Shape* shape) {
    ReduceAttrs attrs;
    std::vector<int64_t> dims(shape->rank());
    for (int d = 0; d < shape->rank(); ++d) dims[d] = d;
    attrs.dimensions = dims;
    attrs.to_apply = before_;
    return b_.Add(Opcode::kMap, arguments, InternAttributes(b_.context(), attrs));
  }

  OpBuilder& ops_;
  const LocalOp& op_;
  GraphBuilder& b_;
  const SortAttrs& attrs_;
  const int d_;
  const absl::Span<const AxisRef> axes_;
  const int64_t shards_;
  CompId before_;  // whether one element ranks before another
  const Attributes* sort_ = nullptr;
};

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const int d = static_cast<int>(op.instr.as<SortAttrs>().dimension);
  if (!op.decision.operands[0]->IsDimSharded(d)) return ops.Clone(op, op.operands);
  return LineSorter(ops, op).Emit();
}

}  // namespace

constexpr Strategy kSortOfLineStrategy{.name = "merge exchange of sorted shards",
                                       .rule = Rule,
                                       .crosses = Crosses,
                                       .complete = Complete,
                                       .seconds = Seconds,
                                       .emit = Emit};

}  // namespace internal
}  // namespace shardcall
