// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/parts/one_after_another.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shardcall {
inline namespace internal {
namespace {

// The rounds of a tree over `count` shards: in each, shards [first, first + sends) send to those
// `first` places on, so that there are twice as many that have the value.
struct Round {
  int64_t first = 0, sends = 0;
};
std::vector<Round> RoundsOf(int64_t count) {
  std::vector<Round> rounds;
  for (int64_t have = 1; have < count; have *= 2) {
    rounds.push_back({have, std::min(have, count - have)});
  }
  return rounds;
}

// An all-reduce sends 2 (n - 1) / n times the value; a tree over `count` of the n shards
// (count - 1) / n times, in more collectives.
bool GoesByTree(double bytes, int64_t count, int64_t n) {
  constexpr double kWorthACollective = 4096;  // bytes
  const double saved = static_cast<double>(2 * (n - 1) - (count - 1)) / static_cast<double>(n);
  const double more = static_cast<double>(RoundsOf(count).size()) - 1;
  return saved * bytes >= more * kWorthACollective;
}

double BytesOf(GraphBuilder& b, InstrId x) { return static_cast<double>(b.shape(x)->byte_size()); }

// A round between the shards with turns from `turn` on, counted by `step` (1 or -1), to those that
// have the value next (`forth`), or from them.
InstrId AddRound(Emitter& e, InstrId x, const Turns& turns, int64_t turn, int64_t step,
                 const Round& round, bool forth) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t k = 0; k < round.sends; ++k) {
    const int64_t near = turns.Shard(turn + step * k);
    const int64_t far = turns.Shard(turn + step * (round.first + k));
    pairs.emplace_back(forth ? near : far, forth ? far : near);
  }
  return e.builder().Binary(Opcode::kAdd, x, e.SendShards(x, turns.axes, pairs));
}

InstrId Zeros(GraphBuilder& b, const Shape* shape) {
  return b.BroadcastScalar(b.Zero(shape->element_type()), shape);
}

void Add(const OpQuery& op, const BaseMesh& mesh, double bytes, const Turns& turns, int64_t count,
         Candidate* c) {
  Context& context = op.module.context();
  const double n = static_cast<double>(turns.size);
  if (!GoesByTree(bytes, count, turns.size)) {
    c->AddEmitted(context, 2 * (n - 1) / n * bytes, mesh, turns.axes, Collective::kAllReduce);
    return;
  }
  for (const Round& round : RoundsOf(count)) {
    c->AddEmitted(context, static_cast<double>(round.sends) / n * bytes, mesh, turns.axes,
                  Collective::kPermute);
  }
}

}  // namespace

InstrId Where(GraphBuilder& b, InstrId which, InstrId x, InstrId y) {
  const Shape* preds = b.context().MakeArray(ElementType::kPred, b.shape(x)->dims());
  return b.Select(b.BroadcastScalar(which, preds), x, y);
}

InstrId IsTurn(Emitter& e, const Turns& turns, int64_t turn) {
  GraphBuilder& b = e.builder();
  const InstrId shard = e.Coordinate(e.mesh(), turns.axes);
  return b.Compare(Direction::kEq, shard, b.ConstantInt(b.type(shard), turns.Shard(turn)));
}

InstrId IsAfter(Emitter& e, const Turns& turns, int64_t turn) {
  GraphBuilder& b = e.builder();
  const InstrId shard = e.Coordinate(e.mesh(), turns.axes);
  return b.Compare(turns.backwards ? Direction::kLt : Direction::kGt, shard,
                   b.ConstantInt(b.type(shard), turns.Shard(turn)));
}

InstrId ToLaterTurns(Emitter& e, InstrId x, const Turns& turns, int64_t turn) {
  GraphBuilder& b = e.builder();
  const int64_t count = turns.size - turn;
  x = Where(b, IsTurn(e, turns, turn), x, Zeros(b, b.shape(x)));
  if (!GoesByTree(BytesOf(b, x), count, turns.size)) {
    return e.AllReduce(x, turns.axes, PartialOp::kSum);
  }
  for (const Round& round : RoundsOf(count)) x = AddRound(e, x, turns, turn, 1, round, true);
  return x;
}

InstrId SumOfEarlierTurns(Emitter& e, InstrId x, const Turns& turns, int64_t turn) {
  const int64_t count = turn + 1;
  if (!GoesByTree(BytesOf(e.builder(), x), count, turns.size)) {
    return e.AllReduce(x, turns.axes, PartialOp::kSum);
  }
  std::vector<Round> rounds = RoundsOf(count);
  std::reverse(rounds.begin(), rounds.end());
  for (const Round& round : rounds) x = AddRound(e, x, turns, turn, -1, round, false);
  return x;
}

double SecondsOfTurns(int64_t turns, const CostModel& cost, const Module& module,
                      const Instruction& instr, const Decision& decision) {
  return static_cast<double>(turns) *
         StrategySeconds(StrategyOf(instr.opcode), cost, module, instr, decision);
}

void AddToLaterTurns(const OpQuery& op, const BaseMesh& mesh, double bytes, const Turns& turns,
                     int64_t turn, Candidate* c) {
  Add(op, mesh, bytes, turns, turns.size - turn, c);
}

void AddSumOfEarlierTurns(const OpQuery& op, const BaseMesh& mesh, double bytes, const Turns& turns,
                          int64_t turn, Candidate* c) {
  Add(op, mesh, bytes, turns, turn + 1, c);
}

}  // namespace internal
}  // namespace shardcall
