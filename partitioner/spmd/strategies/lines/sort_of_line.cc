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
#include <cstdint>
#include <utility>
#include <vector>

#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/lines/line_order.h"
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

bool Rule(const OpQuery& op, ShardingRule* rule) {
  const int d = static_cast<int>(op.instr().as<SortAttrs>().dimension);
  if (op.shapes[0]->num_elements() == 0 || !op.operands[0]->IsDimSharded(d)) return false;
  *rule = *op.rule;
  rule->factors[rule->operands[0].dims[d][0]].kind = FactorKind::kPermutation;
  return true;
}

bool Crosses(const OpQuery&, int) { return true; }

bool Complete(const OpQuery& op, Candidate* c) {
  constexpr int64_t kMostShards = 1024;
  const int d = static_cast<int>(op.instr().as<SortAttrs>().dimension);
  const Sharding& s = *c->operands[0];
  const int64_t n = s.num_shards(d);
  if (n == 1) return true;
  if (n > kMostShards) return false;
  Context& context = op.module.context();
  const auto sent = BytesOfLine(op, s);
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
        d_(static_cast<int>(op.instr.as<SortAttrs>().dimension)),
        axes_(op.decision.operands[0]->dim(d_)),
        order_(ops, op) {}

  LocalIds Emit() {
    LocalIds line = order_.line();
    order_.Sort(&line);
    for (const Round& round : MergeExchange(AxesSize(axes_))) Merge(round, &line);
    line.resize(op_.operands.size());
    return line;
  }

 private:
  InstrId FromPartner(InstrId x, const Round& round) {
    Round both_ways = round;
    for (const auto& [first, last] : round) both_ways.emplace_back(last, first);
    return ops_.emitter().SendShards(x, axes_, both_ways);
  }

  void Merge(const Round& round, LocalIds* line) {
    // Of each shard: 1 if it keeps the first half, -1 if the last, 0 if it has no partner.
    std::vector<int64_t> half(AxesSize(axes_), 0);
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
      ops_.emitter().set_cause_index(static_cast<int>(std::min(k, op_.operands.size() - 1)));
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
    order_.Sort(line);
  }

  InstrId Compared(absl::Span<const InstrId> arguments, const Shape* shape) {
    ReduceAttrs attrs;
    std::vector<int64_t> dims(shape->rank());
    for (int d = 0; d < shape->rank(); ++d) dims[d] = d;
    attrs.dimensions = dims;
    attrs.to_apply = order_.before();
    return b_.Add(Opcode::kMap, arguments, InternAttributes(b_.context(), attrs));
  }

  OpBuilder& ops_;
  const LocalOp& op_;
  GraphBuilder& b_;
  const int d_;
  const absl::Span<const AxisRef> axes_;
  LineOrder order_;
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
