// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/step.h"

#include <algorithm>
#include <utility>

#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall::inline internal {
namespace {

constexpr int kWholeLevel = 4;  // see step.h

bool MovesOrMaps(Opcode opcode) { return HasTrait(opcode, kElementwise | kMapsElements); }

using Axes = absl::Span<const AxisRef>;

// Insertion sort: for a few elements it is faster than std::stable_sort, which allocates a buffer.
template <typename Iterator, typename Less>
void StableSort(Iterator begin, Iterator end, const Less& less) {
  for (Iterator i = begin; i != end; ++i) {
    for (Iterator j = i; j != begin && less(*j, *(j - 1)); --j) std::swap(*j, *(j - 1));
  }
}

// IsPrefix, with shortcuts for the usual cases: an empty prefix, or the same parts.
bool Leads(const BaseMesh& mesh, Axes prefix, Axes axes) {
  if (prefix.empty()) return true;
  if (prefix.size() <= axes.size() && prefix == axes.first(prefix.size())) return true;
  return IsPrefix(mesh, prefix, axes);
}

// `axes` without its `prefix`; requires Leads.
AxisList Behind(const BaseMesh& mesh, Axes prefix, Axes axes) {
  if (prefix.size() <= axes.size() && prefix == axes.first(prefix.size())) {
    const Axes rest = axes.subspan(prefix.size());
    return AxisList(rest.begin(), rest.end());
  }
  return RemovePrefix(mesh, prefix, axes);
}

// The state of one step. Ordinary rules are dense (see StepRule), so a slot is computed directly.
template <bool kDense>
class Stepper {
 public:
  Stepper(const StepRule& rule, absl::Span<const StepTensor> tensors, const BaseMesh* mesh,
          ConflictOrder order)
      : order_(order),
        rule_(rule),
        r_(*rule.rule),
        tensors_(tensors),
        mesh_(*mesh),
        num_factors_(static_cast<int>(r_.factors.size())) {
    have_.resize(rule.extents.size());
    for (int t = 0; t < static_cast<int>(tensors.size()); ++t) Project(t);
    CollectSources();
  }

  void Run(int level, bool aggressive, Proposals* out) {
    for (int t = 0; t < static_cast<int>(tensors_.size()); ++t) {
      if (!tensors_[t].limits->fixed) Propose(t, level, aggressive, out);
    }
  }
  bool has_sources() const { return !sources_.empty(); }
  // Whether two factors wanted one axis in a tensor, in any run, of an op for which the order of
  // conflicts matters.
  bool contested() const { return contested_ && rule_.base_level >= 1; }
  const Contest& contest() const { return contest_; }

 private:
  // Factor f has the sharding `axes` in tensor `from`, the largest tensor with that sharding.
  struct Source {
    int factor, from;
    Axes axes;
  };
  struct Candidate {
    int factor, from;
    AxisList axes;  // all axes of the factor
  };

  int Slot(int t, int f) const {
    if constexpr (kDense) return t * num_factors_ + f;
    return rule_.FindPlace({f, t});
  }
  int64_t Extent(int t, int f) const {
    const int s = Slot(t, f);
    return !kDense && s < 0 ? -1 : rule_.extents[s];
  }
  // Unless the rule is dense, it must have the factor in this tensor.
  AxisList& Have(int t, int f) { return have_[Slot(t, f)]; }
  bool OnMesh(int t) const {
    const Sharding& s = *tensors_[t].sharding;
    return s.mesh() == &mesh_ || !s.HasShardedDim();
  }

  void Project(int t) {
    const Sharding& s = *tensors_[t].sharding;
    if (!OnMesh(t) || s.is_maximal()) return;
    ProjectOntoFactors(
        r_.tensor(t), s, [&](int f) { return Extent(t, f); },
        [&](int f, Axes axes) { Have(t, f).assign(axes.begin(), axes.end()); });
  }

  // Collects the distinct shardings of each factor, ordered by factor, then by size of the tensor.
  void CollectSources() {
    if constexpr (!kDense) return CollectSparseSources();
    for (int f = 0; f < num_factors_; ++f) {
      if (rule_.factor_level[f] < 0) continue;
      const size_t begin = sources_.size();
      for (int t = 0; t < static_cast<int>(tensors_.size()); ++t) {
        AddSource(t, f, Have(t, f), begin);
      }
      SortSources(begin);
    }
  }
  void CollectSparseSources() {
    for (size_t s = 0; s < rule_.places.size();) {
      const int f = rule_.places[s].factor;
      const size_t begin = sources_.size();
      for (; s < rule_.places.size() && rule_.places[s].factor == f; ++s) {
        if (rule_.factor_level[f] >= 0) AddSource(rule_.places[s].tensor, f, have_[s], begin);
      }
      SortSources(begin);
    }
  }
  // Adds the sharding of factor f in tensor t. The sources of f begin at `begin`.
  void AddSource(int t, int f, const AxisList& axes, size_t begin) {
    const Limits& l = *tensors_[t].limits;
    if (l.fixed || axes.empty()) return;
    if (l.cheap && t < static_cast<int>(r_.operands.size())) return;
    size_t at = begin;
    while (at < sources_.size() && (sources_[at].axes != Axes(axes) || rule_.broadcast)) ++at;
    if (at == sources_.size()) {
      sources_.push_back({f, t, axes});
    } else if (rule_.bytes[t] > rule_.bytes[sources_[at].from]) {
      sources_[at].from = t;
    }
  }
  void SortSources(size_t begin) {
    StableSort(sources_.begin() + begin, sources_.end(), [&](const Source& a, const Source& b) {
      return rule_.bytes[a.from] > rule_.bytes[b.from];
    });
  }

  // What factor f of tensor t should be sharded over at this stage; false if nothing new.
  bool Choose(int t, int f, absl::Span<const Source> sources, int level, bool aggressive,
              Candidate* out) {
    out->factor = f;
    const Source* best = nullptr;
    for (const Source& s : sources) {
      if (rule_.Level(f, s.from, t) > level) continue;
      if (aggressive) {
        // The largest source that extends the tensor's axes, or one that extends that source.
        if (best == nullptr ? Longer(Have(t, f), s.axes) : Longer(best->axes, s.axes)) best = &s;
      } else if (best == nullptr || AxesSize(s.axes) > AxesSize(best->axes)) {
        best = &s;
      }
    }
    if (best == nullptr) return false;
    out->from = best->from;
    out->axes.assign(best->axes.begin(), best->axes.end());
    if (!aggressive) {
      for (const Source& s : sources) {
        if (rule_.Level(f, s.from, t) > level || Leads(mesh_, s.axes, out->axes)) continue;
        out->axes = CommonPrefix(mesh_, out->axes, s.axes);
      }
    }
    return Longer(Have(t, f), out->axes);
  }

  bool Longer(Axes prefix, Axes axes) const {
    return AxesSize(axes) > AxesSize(prefix) && Leads(mesh_, prefix, axes);
  }

  void Propose(int t, int level, bool aggressive, Proposals* out) {
    const Sharding& s = *tensors_[t].sharding;
    const Limits& limits = *tensors_[t].limits;
    // A value without any axis may change to another mesh.
    if (s.mesh() != &mesh_ && !s.used().empty()) return;
    absl::InlinedVector<Candidate, 8> candidates;
    for (size_t i = 0; i < sources_.size();) {
      size_t end = i;
      while (end < sources_.size() && sources_[end].factor == sources_[i].factor) ++end;
      const int f = sources_[i].factor;
      Candidate c;
      const bool open = Extent(t, f) >= 0 && (end != i + 1 || Axes(Have(t, f)) != sources_[i].axes);
      if (open && MayGrow(t, f) &&
          Choose(t, f, absl::MakeConstSpan(sources_).subspan(i, end - i), level, aggressive, &c)) {
        candidates.push_back(std::move(c));
      }
      i = end;
    }
    if (candidates.empty()) return;
    StableSort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
      const int ka = Rank(r_.factors[a.factor].kind);
      const int kb = Rank(r_.factors[b.factor].kind);
      if (ka != kb) return ka < kb;
      const int64_t x = rule_.bytes[a.from], y = rule_.bytes[b.from];
      return order_ == ConflictOrder::kSmaller && rule_.base_level >= 1 ? x < y : x > y;
    });
    const bool ranked = aggressive || (level >= 1 && order_ != ConflictOrder::kWait);
    AxisList taken(s.used().begin(), s.used().end());
    const absl::InlinedVector<AxisList, 8> wanted = Wanted(t, candidates);
    for (size_t i = 0; i < candidates.size(); ++i) {
      Candidate& c = candidates[i];
      const AxisList& have = Have(t, c.factor);
      AxisList blocked = taken;
      for (size_t j = 0; j < wanted.size() && !ranked; ++j) {
        if (j != i) blocked.insert(blocked.end(), wanted[j].begin(), wanted[j].end());
      }
      c.axes = ExtendFree(mesh_, have, c.axes, blocked, limits.reserved);
      Fit(t, &c);
      if (!ranked) continue;
      if (Longer(have, c.axes)) {
        const AxisList add = Behind(mesh_, have, c.axes);
        taken.insert(taken.end(), add.begin(), add.end());
      }
    }
    Compose(t, candidates, out);
  }

  // What each of several candidates for tensor t adds; notes whether they contest an axis.
  absl::InlinedVector<AxisList, 8> Wanted(int t, absl::Span<const Candidate> candidates) {
    absl::InlinedVector<AxisList, 8> wanted;
    if (candidates.size() == 1) return wanted;
    for (const Candidate& c : candidates) {
      wanted.push_back(Behind(mesh_, Have(t, c.factor), c.axes));
      for (size_t j = 0; j + 1 < wanted.size() && !contested_; ++j) {
        contested_ = Overlaps(wanted[j], wanted.back());
        if (contested_) NoteContest(t, candidates[j], c, wanted[j], wanted.back());
      }
    }
    return wanted;
  }

  void NoteContest(int t, const Candidate& a, const Candidate& b, Axes axes_a, Axes axes_b) {
    const auto side = [&](const Candidate& c) {
      return Contest::Side{DimOf(t, c.factor), c.from, DimOf(c.from, c.factor)};
    };
    const auto both = std::find_if(axes_a.begin(), axes_a.end(), [&](const AxisRef& axis) {
      return Overlaps(absl::MakeConstSpan(&axis, 1), axes_b);
    });
    contest_ = {t, *both, {side(a), side(b)}};
  }

  static int Rank(FactorKind kind) {
    return kind == FactorKind::kPassThrough ? 0 : kind == FactorKind::kReduction ? 1 : 2;
  }

  // Limits the shards to the number of elements, except where the source has the same extent.
  // Factors of compounds must divide evenly.
  void Fit(int t, Candidate* c) {
    const int64_t extent = Extent(t, c->factor);
    if (IsCompound(t, c->factor)) {
      c->axes = PrefixOfSize(mesh_, c->axes, extent);
      return;
    }
    if (Extent(c->from, c->factor) == extent) return;
    while (!c->axes.empty() && AxesSize(c->axes) > extent) c->axes.pop_back();
  }

  bool MayGrow(int t, int f) const {
    const TensorFactors& tensor = r_.tensor(t);
    for (int d = 0; d < static_cast<int>(tensor.dims.size()); ++d) {
      if (tensors_[t].limits->IsClosed(d)) continue;
      for (int x : tensor.dims[d]) {
        if (x == f) return true;
      }
    }
    return false;
  }

  // The dimension of tensor t that has factor f.
  int DimOf(int t, int f) const {
    const auto& dims = r_.tensor(t).dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (std::find(dims[d].begin(), dims[d].end(), f) != dims[d].end()) return static_cast<int>(d);
    }
    return -1;
  }

  bool IsCompound(int t, int f) const {
    for (const FactorList& dim : r_.tensor(t).dims) {
      if (dim.size() > 1 && std::find(dim.begin(), dim.end(), f) != dim.end()) return true;
    }
    return false;
  }

  void Compose(int t, absl::Span<const Candidate> candidates, Proposals* out) {
    const Sharding& s = *tensors_[t].sharding;
    const TensorFactors& tensor = r_.tensor(t);
    for (int d = 0; d < static_cast<int>(tensor.dims.size()); ++d) {
      if (tensors_[t].limits->IsClosed(d)) continue;
      AxisList axes;
      const Candidate* from = nullptr;
      for (int f : tensor.dims[d]) {
        const AxisList* part = &Have(t, f);
        for (const Candidate& c : candidates) {
          if (c.factor != f) continue;
          if (Longer(*part, c.axes)) {
            part = &c.axes;
            if (from == nullptr) from = &c;
          }
          break;
        }
        axes.insert(axes.end(), part->begin(), part->end());
        if (AxesSize(*part) != Extent(t, f)) break;
      }
      if (from == nullptr) continue;
      axes = Canonical(mesh_, axes);
      if (AxesSize(axes) <= AxesSize(s.dim(d)) || !Leads(mesh_, s.dim(d), axes)) continue;
      out->push_back({t, d, from->from, DimOf(from->from, from->factor),
                      r_.factors[from->factor].kind, std::move(axes)});
    }
  }

  const ConflictOrder order_;
  bool contested_ = false;
  Contest contest_;
  const StepRule& rule_;
  const ShardingRule& r_;
  absl::Span<const StepTensor> tensors_;
  const BaseMesh& mesh_;
  const int num_factors_;
  absl::InlinedVector<AxisList, 16> have_;  // by slot of the rule
  absl::InlinedVector<Source, 8> sources_;
};

}  // namespace

StepRule::StepRule(const ShardingRule* rule, Opcode opcode, absl::Span<const int64_t> bytes)
    : rule(rule),
      base_level(MovesOrMaps(opcode) ? 0 : 1),
      broadcast(opcode == Opcode::kBroadcast),
      inert(true),
      bytes(bytes.begin(), bytes.end()) {
  const int n = static_cast<int>(rule->factors.size());
  constexpr int64_t kMostDense = 4096;
  dense = int64_t{n} * rule->num_tensors() <= kMostDense;
  if (dense) {
    extents.assign(static_cast<size_t>(rule->num_tensors()) * n, -1);
  } else {
    for (int t = 0; t < rule->num_tensors(); ++t) {
      for (const FactorList& dim : rule->tensor(t).dims) {
        for (int f : dim) places.push_back({f, t});
      }
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    extents.assign(places.size(), -1);
  }
  absl::InlinedVector<int, 16> tensors_with(n, 0);
  absl::InlinedVector<bool, 16> in_result(n, false), same_extent(n, true);
  for (int t = 0; t < rule->num_tensors(); ++t) {
    for (const FactorList& dim : rule->tensor(t).dims) {
      for (int f : dim) {
        int64_t& extent = extents[dense ? t * n + f : FindPlace({f, t})];
        const int64_t here = rule->Extent(t, f);
        if (extent < 0) ++tensors_with[f];
        if (here != rule->factors[f].size) same_extent[f] = false;
        extent = here;
        if (t >= static_cast<int>(rule->operands.size())) in_result[f] = true;
      }
    }
  }
  if (broadcast) levels = 1 << 1 | 1 << 3;
  for (int f = 0; f < n; ++f) {
    const Factor& factor = rule->factors[f];
    int level = base_level;
    if (factor.blocked)
      level = -1;
    else if (factor.kind == FactorKind::kNeedReplication)
      level = same_extent[f] && in_result[f] && opcode != Opcode::kCustomCall ? kWholeLevel : -1;
    else if (factor.kind == FactorKind::kPermutation)
      level = 2;
    else if (factor.kind == FactorKind::kReduction && !in_result[f])
      level = 2;
    factor_level.push_back(static_cast<int8_t>(level));
    if (level < 0 || tensors_with[f] < 2) continue;
    inert = false;
    if (!broadcast) levels |= 1 << level;
  }
}

int StepRule::FindPlace(Place place) const {
  const auto found = std::lower_bound(places.begin(), places.end(), place);
  return found == places.end() || *found != place ? -1 : static_cast<int>(found - places.begin());
}

int StepRule::Level(int factor, int from, int to) const {
  if (broadcast) return from < to ? 3 : 1;
  const int level = factor_level[factor];
  if (forward && backward && level != kWholeLevel) return level;
  const int operands = static_cast<int>(rule->operands.size());
  const bool ahead = from < operands && to >= operands, back = from >= operands && to < operands;
  if ((ahead && !forward) || (back && !backward)) return kNumLevels;
  return level != kWholeLevel || ahead ? level : kNumLevels;
}

AxisList ExtendFree(const BaseMesh& mesh, absl::Span<const AxisRef> have,
                    absl::Span<const AxisRef> axes, absl::Span<const AxisRef> used,
                    absl::Span<const AxisRef> reserved) {
  AxisList out(have.begin(), have.end());
  if (AxesSize(axes) <= AxesSize(have) || !Leads(mesh, have, axes)) return out;
  for (const AxisRef& a : Behind(mesh, have, axes)) {
    const auto one = absl::MakeConstSpan(&a, 1);
    if (Overlaps(one, used) || Overlaps(one, reserved)) break;
    out.push_back(a);
  }
  return Canonical(mesh, out);
}

namespace {

// Fills in the first stage with proposals.
template <bool kDense>
void RunStages(Stepper<kDense>&& stepper, const StepRule& rule, StepResult* result) {
  if (!stepper.has_sources()) return;
  // If the last stage has no proposals, no stage has any.
  Proposals last;
  stepper.Run(kNumLevels - 1, true, &last);
  result->contested = stepper.contested();
  result->contest = stepper.contest();
  if (last.empty()) return;
  int last_stage = kNumStages - 1;
  while ((rule.levels >> (last_stage / 2) & 1) == 0) last_stage -= 2;
  for (int stage = 0; stage < kNumStages; ++stage) {
    if ((rule.levels >> (stage / 2) & 1) == 0) continue;
    if (stage == last_stage) {
      result->proposals = std::move(last);
    } else {
      stepper.Run(stage / 2, stage % 2 == 1, &result->proposals);
    }
    if (result->proposals.empty()) continue;
    result->stage = stage;
    return;
  }
}

}  // namespace

StepResult Step(const StepRule& rule, absl::Span<const StepTensor> tensors, ConflictOrder order) {
  StepResult result;
  int64_t most = -1;
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].limits->fixed || !tensors[t].sharding->HasShardedDim()) continue;
    if (rule.bytes[t] > most) {
      most = rule.bytes[t];
      result.mesh = tensors[t].sharding->mesh();
    }
  }
  if (result.mesh == nullptr) return result;
  if (rule.dense) {
    RunStages(Stepper<true>(rule, tensors, result.mesh, order), rule, &result);
  } else {
    RunStages(Stepper<false>(rule, tensors, result.mesh, order), rule, &result);
  }
  return result;
}

}  // namespace shardcall::inline internal
