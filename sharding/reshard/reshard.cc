// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/reshard/reshard.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/reshard/links.h"
#include "shardcall/sharding/reshard/permute_sources.h"
#include "shardcall/sharding/reshard/reshard_search.h"

namespace shardcall {

absl::string_view MoveKindName(MoveKind kind) {
  switch (kind) {
    case MoveKind::kSlice: return "slice";
    case MoveKind::kAllGather: return "all-gather";
    case MoveKind::kAllToAll: return "all-to-all";
    case MoveKind::kReduceScatter: return "reduce-scatter";
    case MoveKind::kAllReduce: return "all-reduce";
    case MoveKind::kPermute: return "collective-permute";
    case MoveKind::kDropPartial: return "drop-partial";
    case MoveKind::kPadPartial: return "pad-partial";
  }
  return "?";
}

namespace {

struct PlanKey {
  const Shape* shape;
  const Sharding* from;
  const Sharding* to;
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const PlanKey& k) {
    return H::combine(std::move(h), k.shape, k.from, k.to);
  }
};

struct PlanCache {
  using Plans = absl::flat_hash_map<PlanKey, std::unique_ptr<ReshardPlan>>;
  Plans plans;
  // PermutedShare, which is the same for all shapes.
  absl::flat_hash_map<std::pair<const Sharding*, const Sharding*>, double> permuted;
  std::vector<Plans> of_other_links;  // somebody may have references to them
};

bool SameCounts(const Sharding* a, const Sharding* b) {
  for (int d = 0; d < a->rank(); ++d) {
    if (a->num_shards(d) != b->num_shards(d)) return false;
  }
  return true;
}

// Whether the cuts of all axis parts in both shardings divide each other; "a":(1)2 and "a":(1)3 of
// an axis of 6 do not.
bool CutsNest(const Sharding* a, const Sharding* b) {
  absl::InlinedVector<AxisRef, 8> all;
  for (const Sharding* s : {a, b}) {
    for (int d = 0; d < s->rank(); ++d) all.insert(all.end(), s->dim(d).begin(), s->dim(d).end());
    all.insert(all.end(), s->partial().begin(), s->partial().end());
  }
  for (const AxisRef& x : all) {
    for (const AxisRef& y : all) {
      if (x.axis != y.axis) continue;
      for (int64_t p : {int64_t{x.pre_size}, int64_t{x.pre_size} * x.size}) {
        for (int64_t q : {int64_t{y.pre_size}, int64_t{y.pre_size} * y.size}) {
          if (p % q != 0 && q % p != 0) return false;
        }
      }
    }
  }
  return true;
}

// Appends the reduction over all partial axes, and returns the state after it.
const Sharding* AddAllReduce(Context& context, const Shape* global, const Sharding* from,
                             ReshardPlan* plan) {
  Move move{MoveKind::kAllReduce, AxisList(from->partial().begin(), from->partial().end())};
  move.before = from;
  move.after = WithoutPartial(context, from);
  move.bytes = AllReduceBytes(from->partial_op(), global->element_type(), LocalBytes(global, *from),
                              static_cast<double>(AxesSize(move.axes)));
  plan->moves.push_back(move);
  return move.after;
}

// A lower bound of the bytes that a device needs and does not hold. Two shards of a dimension
// overlap by at most the size of the smaller one. Nothing is bounded where a value becomes partial:
// a device may have the identity instead of what it does not hold.
double LowerBound(const Shape* global, const Sharding* from, const Sharding* to) {
  if (from->partial().empty() && !to->partial().empty()) return 0;
  double need = ElementTypeBits(global->element_type()) / 8.0, held = need;
  for (int d = 0; d < global->rank(); ++d) {
    const double have = CeilDiv(global->dim(d), from->num_shards(d));
    const double want = CeilDiv(global->dim(d), to->num_shards(d));
    need *= want;
    held *= std::min(have, want);
  }
  return std::max(0.0, need - held);
}

bool IsPrime(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return false;
  }
  return true;
}

double BytesOf(absl::Span<const Move> moves) {
  double bytes = 0;
  for (const Move& m : moves) bytes += m.bytes;
  return bytes;
}

double WeightedBytes(Links& links, absl::Span<const Move> moves) {
  if (!links.weigh()) return BytesOf(moves);
  double bytes = 0;
  for (const Move& m : moves) bytes += m.bytes * links.Of(m).weight;
  return bytes;
}

// Whether some axis of `s` can be cut further.
bool HasCompositeAxis(const Sharding& s) {
  return absl::c_any_of(s.used(), [](const AxisRef& a) { return !IsPrime(a.size); });
}

// What a chain sends more than devices lack, as a share of it, is due to rounding.
constexpr double kNothingToGain = 1e-9;

// Appends the moves between shardings of one mesh with equal manual axes and cuts that nest. Where
// these send more than has to be sent, parts of axes may move better than whole ones: from [a, b]
// to [b, a] with a = 4 and b = 2, half of a goes to the other dimension first.
void PlanWithinMesh(Context& context, const Shape* global, const Sharding* from, const Sharding* to,
                    ReshardPlan* plan) {
  if (!context.Get<Links>().weigh() && MovesOfOneKind(context, global, from, to, &plan->moves)) {
    return;
  }
  std::vector<Move> moves;
  const int64_t states = context.Get<ReshardBudget>().states;
  double cost = std::numeric_limits<double>::infinity(), lacking = 0;
  if (!SearchReshard(context, global, from, to, &moves, states, /*fine=*/false, &cost, &lacking)) {
    plan->greedy = true;
    GreedyReshard(context, global, from, to, &plan->moves);
    return;
  }
  Links& links = context.Get<Links>();
  const double sent = BytesOf(moves);
  if (moves.size() > 1 && sent > 1.1 * LowerBound(global, from, to) &&
      sent > (1 + kNothingToGain) * lacking && (HasCompositeAxis(*from) || HasCompositeAxis(*to))) {
    std::vector<Move> finer;
    if (SearchReshard(context, global, from, to, &finer, std::min(states, kFineStates),
                      /*fine=*/true, &cost) &&
        !finer.empty() && WeightedBytes(links, finer) < WeightedBytes(links, moves)) {
      moves = std::move(finer);
    }
  }
  plan->moves.insert(plan->moves.end(), moves.begin(), moves.end());
}

// Between base meshes, or between cuts that do not nest: one permute where the shard counts agree,
// else through full replication.
void PlanAcrossMeshes(Context& context, const Shape* global, const Sharding* from,
                      const Sharding* to, ReshardPlan* plan) {
  const Sharding* current =
      from->partial().empty() ? from : AddAllReduce(context, global, from, plan);
  if (current->HasShardedDim() && to->HasShardedDim() && SameCounts(current, to) &&
      to->partial().empty()) {
    Move move{MoveKind::kPermute, {}};
    move.before = current;
    move.after = to;
    move.bytes = LocalBytes(global, *current);
    plan->moves.push_back(move);
    return;
  }
  const Sharding* whole = ReplicatedSharding(context, from->mesh(), from->rank(), from->manual());
  PlanWithinMesh(context, global, current, whole, plan);
  const Sharding* whole_to = ReplicatedSharding(context, to->mesh(), to->rank(), to->manual());
  PlanWithinMesh(context, global, whole_to, to, plan);
}

ReshardPlan MakePlan(Context& context, const Shape* global, const Sharding* from,
                     const Sharding* to) {
  ReshardPlan plan;
  if (from != to) {
    // The parts of one reduction, such as a maximum, are not the parts of another one.
    const bool other_parts = !from->partial().empty() && !to->partial().empty() &&
                             from->partial_op() != to->partial_op();
    const Sharding* const start = other_parts ? AddAllReduce(context, global, from, &plan) : from;
    std::optional<Move> one;
    if (start->mesh() == to->mesh()) one = OneMove(global, start, to);
    if (one.has_value()) {
      plan.moves.push_back(*std::move(one));
    } else if (start->mesh() == to->mesh() && CutsNest(start, to)) {
      PlanWithinMesh(context, global, start, to, &plan);
    } else {
      PlanAcrossMeshes(context, global, start, to, &plan);
    }
    plan.lower_bound = LowerBound(global, from, to);
  }
  Links& links = context.Get<Links>();
  for (Move& m : plan.moves) {
    // Searches compare what permutes send by the axes alone.
    if (m.kind == MoveKind::kPermute) {
      m.bytes = static_cast<double>(LocalBytes(global, *m.before));
      if (links.backend().Has(Collective::kPermute)) {
        const auto [share, fresh] =
            context.Get<PlanCache>().permuted.try_emplace({m.before, m.after});
        if (fresh) share->second = PermutedShare(*m.before, *m.after);
        m.bytes *= share->second;
      }
    }
    const Crossing over = links.Of(m);
    plan.weighted += m.bytes * over.weight;
    plan.more_seconds += links.more_seconds(over, m.bytes, m.collectives());
    plan.collectives += m.collectives() * over.runs;
    m.bytes *= over.sent;
    plan.bytes += m.bytes;
    plan.between_hosts += m.bytes * over.between_hosts;
    plan.peak_bytes =
        std::max(plan.peak_bytes, LocalBytes(global, *m.before) + LocalBytes(global, *m.after));
  }
  return plan;
}

}  // namespace

int64_t internal::LocalBits(const Shape* global, const Sharding& s) {
  int64_t bits = ElementTypeBits(global->element_type());
  for (int d = 0; d < global->rank(); ++d) bits *= CeilDiv(global->dim(d), s.num_shards(d));
  return bits;
}

int64_t LocalBytes(const Shape* global, const Sharding& s) {
  return CeilDiv(LocalBits(global, s), 8);
}

bool EngineReduces(PartialOp op, ElementType type) {
  switch (op) {
    case PartialOp::kSum:
    case PartialOp::kMax:
    case PartialOp::kMin:
    case PartialOp::kProduct: return true;
    case PartialOp::kAnd:
    case PartialOp::kOr: return type == ElementType::kPred;
    case PartialOp::kXor: return false;
  }
  return false;
}

const Sharding* WithoutPartial(Context& context, const Sharding* s) {
  ShardingBuilder b(*s);
  b.partial.clear();
  return b.Intern(context);
}

double CollectiveBytes(MoveKind kind, double local, double g) {
  const bool is_local =
      kind == MoveKind::kSlice || kind == MoveKind::kDropPartial || kind == MoveKind::kPadPartial;
  return is_local ? 0 : CollectiveSends(CollectiveOf(kind), local, g);
}

double AllReduceBytes(PartialOp op, ElementType type, double local, double g) {
  return CollectiveBytes(EngineReduces(op, type) ? MoveKind::kAllReduce : MoveKind::kAllGather,
                         local, g);
}

const ReshardPlan& PlanReshard(Context& context, const Shape* global, const Sharding* from,
                               const Sharding* to) {
  auto& slot = context.Get<PlanCache>().plans[PlanKey{global->bare(), from, to}];
  if (slot) return *slot;
  SHARDCALL_CHECK(from->rank() == global->rank() && to->rank() == global->rank());
  Links& links = context.Get<Links>();
  auto plan = std::make_unique<ReshardPlan>(MakePlan(context, global, from, to));
  if (links.weigh() && plan->weighted != plan->bytes) {
    // The search takes all devices for senders of a permute, which weighs more over slow links.
    links.set_weigh(false);
    ReshardPlan plain = MakePlan(context, global, from, to);
    links.set_weigh(true);
    if (plain.weighted < plan->weighted) *plan = std::move(plain);
  }
  // `slot` is still valid: nothing above calls PlanReshard again, so the table has not been
  // rehashed.
  slot = std::move(plan);
  return *slot;
}

ReshardChoice CheapestReshard(Context& context, const Shape* global, const Sharding* stored,
                              absl::Span<const Sharding* const> copies, const Sharding* to) {
  ReshardChoice best{stored, &PlanReshard(context, global, stored, to)};
  for (const Sharding* from : copies) {
    const ReshardPlan& plan = PlanReshard(context, global, from, to);
    if (from == to) return {from, &plan};
    if (!from->partial().empty()) continue;
    if (plan.weighted > best.plan->weighted ||
        (plan.weighted == best.plan->weighted && plan.collectives >= best.plan->collectives)) {
      continue;
    }
    best = {from, &plan};
  }
  return best;
}

absl::Status internal::SetLinks(Context& context, const CostModel& cost, const BaseMesh* mesh) {
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<Links::Level> levels, Links::LevelsOf(cost, mesh));
  const bool as_said = levels.size() == 1 && levels[0].bandwidth == cost.bandwidth &&
                       levels[0].latency == cost.latency && cost.backend.has_all();
  if (as_said) levels.clear();
  Links& links = context.Get<Links>();
  const bool same_costs = links.cost_.bandwidth == cost.bandwidth &&
                          links.cost_.latency == cost.latency &&
                          links.cost_.backend == cost.backend;
  if (links.levels_ == levels && (levels.empty() || same_costs)) return absl::OkStatus();
  links = Links();
  links.cost_ = cost;
  links.levels_ = std::move(levels);
  PlanCache& cache = context.Get<PlanCache>();
  cache.of_other_links.push_back(std::exchange(cache.plans, {}));
  return absl::OkStatus();
}

bool GathersAndCuts(const Shape* global, const ReshardPlan& plan) {
  if (plan.moves.empty()) return false;
  const int64_t ends = std::max(LocalBytes(global, *plan.moves.front().before),
                                LocalBytes(global, *plan.moves.back().after));
  return absl::c_any_of(plan.moves,
                        [&](const Move& m) { return LocalBytes(global, *m.after) > ends; });
}

std::string GreedyPlanText(const ReshardPlan& plan) {
  return absl::StrCat(plan.moves.front().before->ToString(), " -> ",
                      plan.moves.back().after->ToString(), ": the search for the best plan was ",
                      "given up after ", kReshardStates, " states; the greedy plan moves ",
                      HumanBytes(plan.bytes));
}

std::string DescribePlan(const ReshardPlan& plan) {
  std::string out;
  for (const Move& m : plan.moves) {
    absl::StrAppend(&out, MoveKindName(m.kind));
    if (m.dim >= 0) absl::StrAppend(&out, " dim ", m.dim);
    if (m.dim2 >= 0) absl::StrAppend(&out, " to dim ", m.dim2);
    if (!m.axes.empty()) {
      absl::StrAppend(&out, " over {");
      for (size_t i = 0; i < m.axes.size(); ++i) {
        absl::StrAppend(&out, i ? ", " : "", m.before->mesh()->AxisName(m.axes[i]));
      }
      absl::StrAppend(&out, "}");
    }
    if (m.exchanges > 0) absl::StrAppend(&out, ", with a halo exchange");
    absl::StrAppend(&out, ": ", absl::StrFormat("%.0f bytes\n", m.bytes));
  }
  return out;
}

}  // namespace shardcall
