// SPDX-License-Identifier: Apache-2.0
// An FFT of several dimensions, of which some are sharded, one dimension after another: each is
// transformed while it is whole, and all-to-alls move its axes to another dimension before. Where a
// device would get the whole operand from an all-gather, each of them sends 1/n of a shard to n-1
// devices. (The transposed or "pencil" FFT; Foster and Worley, Parallel Algorithms for the Spectral
// Transform Method, 1997, section 3.)
//
// Example: c64[64,32] over x=4 by rows. The columns are transformed, an all-to-all makes it
// [{}, {"x"}], and the rows are transformed. The result may stay so, or is moved back.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/lines/fft_parts.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

// First `value`, a shard in state `from`, is brought to state `to`; then these dimensions, all
// whole, are transformed.
struct Stage {
  const Sharding *from, *to;
  const Shape* global;  // of the value
  std::vector<int> dims;
};

// The order in which dimensions are transformed: a real operand has to become complex first, and a
// complex one real last, along the last dimension.
class Order {
 public:
  Order(FftType type, int first, int rank) : type_(type), last_(rank - 1) {
    for (int d = first; d < rank; ++d) open_.push_back(d);
  }
  bool done() const { return open_.empty(); }
  bool IsOpen(int d) const { return absl::c_linear_search(open_, d); }
  // Whether dimension d can be next, once it is whole.
  bool CanBeNext(int d) const {
    if (!IsOpen(d)) return false;
    if (type_ == FftType::kRfft) return d == last_ || !IsOpen(last_);
    return type_ != FftType::kIrfft || d != last_ || open_.size() == 1;
  }
  // Takes all dimensions that can be next, one after another, and are whole in `s`.
  std::vector<int> Take(const Sharding& s) {
    std::vector<int> taken;
    const auto ready = [&](int d) { return CanBeNext(d) && !s.IsDimSharded(d); };
    for (auto at = absl::c_find_if(open_, ready); at != open_.end();
         at = absl::c_find_if(open_, ready)) {
      taken.push_back(*at);
      open_.erase(at);
    }
    absl::c_sort(taken);
    return taken;
  }

 private:
  const FftType type_;
  const int last_;
  std::vector<int> open_;
};

// The state after the axes of one dimension that can be next were moved to another transformed
// dimension: one that is whole, if there is one, then one that is done, then one that has these
// axes in the state `end`. Null if there is no other.
const Sharding* MakeOneWhole(Context& context, const Sharding& s, const Order& order, int first,
                             const Sharding& end) {
  int from = -1, to = -1, best = 8;
  for (int d = first; d < s.rank(); ++d) {
    if (!order.CanBeNext(d)) continue;
    for (int other = first; other < s.rank(); ++other) {
      const int rank = 4 * s.IsDimSharded(other) + 2 * order.IsOpen(other) +
                       (end.mesh() != s.mesh() || end.dim(other) != s.dim(d));
      if (other != d && rank < best) from = d, to = other, best = rank;
    }
  }
  if (to < 0) return nullptr;
  ShardingBuilder b(s);
  b.dims[to].insert(b.dims[to].end(), b.dims[from].begin(), b.dims[from].end());
  b.dims[from].clear();
  return b.Intern(context);
}

// The stages of an op whose operand is in state `s`, and whose result is best in state `end`; none
// if a dimension cannot be made whole.
std::vector<Stage> StagesOf(Context& context, const FftAttrs& attrs, const Shape* in,
                            const Shape* out, const Sharding* s, const Sharding& end) {
  const int rank = in->rank(), first = rank - static_cast<int>(attrs.length.size());
  Order order(attrs.type, first, rank);
  std::vector<Stage> stages;
  std::vector<int64_t> dims(in->dims().begin(), in->dims().end());
  ElementType type = in->element_type();
  const Sharding* from = s;
  while (true) {
    Stage stage = {from, s, context.MakeArray(type, dims), order.Take(*s)};
    if (absl::c_linear_search(stage.dims, rank - 1)) {
      dims[rank - 1] = out->dim(rank - 1);
      type = out->element_type();
    }
    stages.push_back(std::move(stage));
    if (order.done()) return stages;
    from = s;
    s = MakeOneWhole(context, *s, order, first, end);
    if (s == nullptr) return {};
  }
}

// Where the axes of the operand's transformed dimensions are in the result: by dimension of the
// operand, the dimension of the result that has them. They stay where the result is wanted with
// them, else where the last stage leaves them.
std::vector<int> PlacesInResult(const Sharding& operand, const Sharding& wanted,
                                const Sharding& end, int first) {
  const int rank = operand.rank();
  std::vector<int> place(rank, -1);
  std::vector<bool> used(rank, false);
  for (const Sharding* like : {&wanted, &end}) {
    for (int d = first; d < rank; ++d) {
      if (place[d] >= 0 || !operand.IsDimSharded(d)) continue;
      for (int to = first; to < rank && place[d] < 0; ++to) {
        if (used[to] || like->mesh() != operand.mesh() || like->dim(to) != operand.dim(d)) continue;
        place[d] = to;
        used[to] = true;
      }
    }
  }
  for (int d = first; d < rank; ++d) {
    for (int k = 0; k < rank && place[d] < 0; ++k) {
      const int to = first + (d - first + k) % (rank - first);
      if (!used[to]) place[d] = to, used[to] = true;
    }
  }
  return place;
}

bool Rule(const OpQuery& op, ShardingRule* rule) {
  const auto& attrs = op.instr().as<FftAttrs>();
  const Shape *in = op.shapes[0], *out = op.result(0);
  const int rank = in->rank(), first = rank - static_cast<int>(attrs.length.size());
  const Sharding* s = op.operands[0];
  if (rank - first < 2 || in->num_elements() == 0 || s->is_maximal()) return false;
  bool any = false;
  for (int d = first; d < rank; ++d) any = any || s->IsDimSharded(d);
  if (!any) return false;
  const std::vector<Stage> stages = StagesOf(op.module.context(), attrs, in, out, s, *op.wanted[0]);
  if (stages.empty()) return false;
  const std::vector<int> place = PlacesInResult(*s, *op.wanted[0], *stages.back().to, first);
  *rule = *op.rule;
  std::erase_if(rule->extents, [&](const auto& e) { return e.first.first == 1; });
  for (int d = first; d < rank; ++d) {
    const int f = rule->operands[0].dims[d][0];
    rule->factors[f].kind = FactorKind::kPermutation;
    rule->factors[f].size = in->dim(d);
    rule->results[0].dims[place[d]] = {f};
    if (out->dim(place[d]) != in->dim(d)) rule->extents.push_back({{1, f}, out->dim(place[d])});
  }
  return true;
}

bool Crosses(const OpQuery&, int) { return true; }

bool Complete(const OpQuery& op, Candidate* c) {
  Context& context = op.module.context();
  const std::vector<Stage> stages = StagesOf(context, op.instr().as<FftAttrs>(), op.shapes[0],
                                             op.result(0), c->operands[0], *c->produced[0]);
  if (stages.empty()) return false;
  for (const Stage& stage : stages) c->AddReshard(context, stage.global, stage.from, stage.to);
  c->AddReshard(context, op.result(0), stages.back().to, c->produced[0]);
  return true;
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const auto& attrs = op.instr.as<FftAttrs>();
  const Shape* out = op.instr.shape;
  InstrId x = op.operands[0];
  const Sharding *at = op.decision.operands[0], *end = op.decision.produced[0];
  for (const Stage& stage : StagesOf(ops.context(), attrs, op.operand_shapes[0], out, at, *end)) {
    x = ops.emitter().ReshardInside(x, stage.global, stage.from, stage.to);
    x = FftOfDims(ops.builder(), x, attrs, stage.dims);
    at = stage.to;
  }
  return {ops.emitter().ReshardInside(x, out, at, end)};
}

}  // namespace

constexpr Strategy kFftOfDimsStrategy{.name = "FFT of one dimension after another",
                                      .rule = Rule,
                                      .crosses = Crosses,
                                      .complete = Complete,
                                      .emit = Emit};

}  // namespace internal
}  // namespace shardcall
