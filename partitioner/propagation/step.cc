// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/step.h"

#include <algorithm>
#include <forward_list>
#include <utility>

#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall {
inline namespace internal {
namespace {

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
    have_.resize(rule.slots.size());
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
  // The level of all candidates so far if its two halves propose the same, since no factor has two
  // shardings and no axis is wanted twice; else -1.
  int OnlyLevel() const {
    return one_source_ && !contested_ && least_level_ == most_level_ ? most_level_ : -1;
  }

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
    return !kDense && s < 0 ? -1 : rule_.slots[s].extent;
  }
  // Unless the rule is dense, it must have the factor in this tensor.
  Axes Have(int t, int f) const { return have_[Slot(t, f)]; }
  bool OnMesh(int t) const {
    const Sharding& s = *tensors_[t].sharding;
    return s.mesh() == &mesh_ || !s.HasShardedDim();
  }

  void Project(int t) {
    const Sharding& s = *tensors_[t].sharding;
    if (!OnMesh(t) || s.is_maximal() || !s.HasShardedDim()) return;
    if constexpr (kDense) sharded_.push_back(t);
    ProjectOntoFactors(
        r_.tensor(t), s, [&](int f) { return Extent(t, f); },
        [&](int f, Axes axes) {
          const int slot = Slot(t, f);
          have_[slot] = rule_.slots[slot].compound ? Kept(s, axes) : axes;
        });
  }
  // Axes of a compound dimension, in memory that outlives the step.
  Axes Kept(const Sharding& s, Axes axes) {
    for (int d = 0; d < s.rank(); ++d) {
      const Axes dim = s.dim(d);
      const auto found = std::search(dim.begin(), dim.end(), axes.begin(), axes.end());
      if (found != dim.end()) return dim.subspan(found - dim.begin(), axes.size());
    }
    split_.emplace_front(axes.begin(), axes.end());
    return split_.front();
  }

  // Collects the distinct shardings of each factor, ordered by factor, then by size of the tensor.
  void CollectSources() {
    if constexpr (!kDense) return CollectSparseSources();
    for (int f = 0; f < num_factors_; ++f) {
      if (rule_.factor_level[f] < 0) continue;
      const size_t begin = sources_.size();
      for (int t : sharded_) AddSource(t, f, Have(t, f), begin);
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
  void AddSource(int t, int f, Axes axes, size_t begin) {
    if (axes.empty()) return;
    const Limits& l = *tensors_[t].limits;
    if (l.fixed) return;
    if (l.cheap && t < static_cast<int>(r_.operands.size())) return;
    size_t at = begin;
    while (at < sources_.size() && (sources_[at].axes != axes || rule_.broadcast)) ++at;
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

  // What the factor of these sources should be sharded over in tensor t at this stage, where it has
  // `have` so far; false if nothing new.
  bool Choose(int t, Axes have, absl::Span<const Source> sources, int level, bool aggressive,
              Candidate* out) {
    const int f = out->factor = sources[0].factor;
    const Source* best = nullptr;
    for (const Source& s : sources) {
      if (rule_.Level(f, s.from, t) > level) continue;
      if (aggressive) {
        // The largest source that extends the tensor's axes, or one that extends that source.
        if (best == nullptr ? Longer(have, s.axes) : Longer(best->axes, s.axes)) best = &s;
      } else if (best == nullptr || AxesSize(s.axes) > AxesSize(best->axes)) {
        best = &s;
      }
    }
    if (best == nullptr) return false;
    out->from = best->from;
    if (sources.size() == 1) {
      if (!Longer(have, best->axes)) return false;
      out->axes.assign(best->axes.begin(), best->axes.end());
      return true;
    }
    out->axes.assign(best->axes.begin(), best->axes.end());
    if (!aggressive) {
      for (const Source& s : sources) {
        if (rule_.Level(f, s.from, t) > level || Leads(mesh_, s.axes, out->axes)) continue;
        out->axes = CommonPrefix(mesh_, out->axes, s.axes);
      }
    }
    return Longer(have, out->axes);
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
    Candidate c;
    for (size_t i = 0; i < sources_.size();) {
      size_t end = i + 1;
      while (end < sources_.size() && sources_[end].factor == sources_[i].factor) ++end;
      const absl::Span<const Source> sources = absl::MakeConstSpan(sources_).subspan(i, end - i);
      const int f = sources_[i].factor, slot = Slot(t, f);
      i = end;
      if (slot < 0 || rule_.slots[slot].extent < 0) continue;
      if (sources.size() == 1 && have_[slot] == sources[0].axes) continue;
      if (!MayGrow(t, f, rule_.slots[slot])) continue;
      if (!Choose(t, have_[slot], sources, level, aggressive, &c)) continue;
      NoteLevel(rule_.Level(f, c.from, t), sources.size());
      candidates.push_back(c);
    }
    if (candidates.empty()) return;
    if (s.used().empty() && limits.reserved.empty() && AreApart(candidates)) {
      for (Candidate& each : candidates) Fit(t, &each);
    } else if (candidates.size() == 1) {
      Candidate& only = candidates[0];
      only.axes = ExtendFree(mesh_, Have(t, only.factor), only.axes, s.used(), limits.reserved);
      Fit(t, &only);
    } else {
      ShareAxes(t, level, aggressive, absl::MakeSpan(candidates));
    }
    Compose(t, candidates, out);
  }

  // Whether no two candidates want an axis: then a tensor without axes gives them all.
  static bool AreApart(absl::Span<const Candidate> candidates) {
    for (size_t i = 1; i < candidates.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (Overlaps(candidates[i].axes, candidates[j].axes)) return false;
      }
    }
    return true;
  }

  // Cuts what several candidates for tensor t want to what they get.
  void ShareAxes(int t, int level, bool aggressive, absl::Span<Candidate> candidates) {
    StableSort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
      const int ka = Rank(r_.factors[a.factor].kind);
      const int kb = Rank(r_.factors[b.factor].kind);
      if (ka != kb) return ka < kb;
      const int64_t x = rule_.bytes[a.from], y = rule_.bytes[b.from];
      return order_ == ConflictOrder::kSmaller && rule_.base_level >= 1 ? x < y : x > y;
    });
    const bool ranked = aggressive || (level >= 1 && order_ != ConflictOrder::kWait);
    const Axes used = tensors_[t].sharding->used();
    AxisList taken(used.begin(), used.end());
    const absl::InlinedVector<AxisList, 8> wanted = Wanted(t, candidates);
    for (size_t i = 0; i < candidates.size(); ++i) {
      Candidate& c = candidates[i];
      const Axes have = Have(t, c.factor);
      AxisList blocked = taken;
      for (size_t j = 0; j < wanted.size() && !ranked; ++j) {
        if (j != i) blocked.insert(blocked.end(), wanted[j].begin(), wanted[j].end());
      }
      c.axes = ExtendFree(mesh_, have, c.axes, blocked, tensors_[t].limits->reserved);
      Fit(t, &c);
      if (!ranked) continue;
      if (Longer(have, c.axes)) {
        const AxisList add = Behind(mesh_, have, c.axes);
        taken.insert(taken.end(), add.begin(), add.end());
      }
    }
  }

  // What each of several candidates for tensor t adds; notes whether they contest an axis.
  absl::InlinedVector<AxisList, 8> Wanted(int t, absl::Span<const Candidate> candidates) {
    absl::InlinedVector<AxisList, 8> wanted;
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

  // Limits the shards to fewer than twice the elements, so that most have some (7 of 8 rows on 8
  // shards), except where the source has the same extent.
  // Factors of compounds must divide evenly.
  void Fit(int t, Candidate* c) {
    const int64_t extent = Extent(t, c->factor);
    if (IsCompound(t, c->factor)) {
      c->axes = PrefixOfSize(mesh_, c->axes, extent);
      return;
    }
    if (Extent(c->from, c->factor) == extent) return;
    while (!c->axes.empty() && AxesSize(c->axes) >= 2 * extent) c->axes.pop_back();
  }

  bool MayGrow(int t, int f, const StepRule::Slot& slot) const {
    const Limits& limits = *tensors_[t].limits;
    if (!slot.repeated) return !limits.IsClosed(slot.dim);
    const TensorFactors& tensor = r_.tensor(t);
    for (int d = 0; d < static_cast<int>(tensor.dims.size()); ++d) {
      if (!limits.IsClosed(d) && Has(tensor.dims[d], f)) return true;
    }
    return false;
  }

  static bool Has(const FactorList& dim, int f) {
    return std::find(dim.begin(), dim.end(), f) != dim.end();
  }

  // The dimension of tensor t that has factor f.
  int DimOf(int t, int f) const {
    const int s = Slot(t, f);
    return s < 0 ? -1 : rule_.slots[s].dim;
  }

  bool IsCompound(int t, int f) const { return rule_.slots[Slot(t, f)].compound; }

  void Compose(int t, absl::Span<const Candidate> candidates, Proposals* out) {
    const Sharding& s = *tensors_[t].sharding;
    const TensorFactors& tensor = r_.tensor(t);
    const auto touched = [&](const FactorList& dim) {
      return std::any_of(candidates.begin(), candidates.end(),
                         [&](const Candidate& c) { return Has(dim, c.factor); });
    };
    for (int d = 0; d < static_cast<int>(tensor.dims.size()); ++d) {
      if (tensors_[t].limits->IsClosed(d) || !touched(tensor.dims[d])) continue;
      if (tensor.dims[d].size() == 1) {
        ProposeFor(t, d,
                   *std::find_if(candidates.begin(), candidates.end(),
                                 [&](const auto& c) { return c.factor == tensor.dims[d][0]; }),
                   out);
        continue;
      }
      AxisList axes;
      const Candidate* from = nullptr;
      for (int f : tensor.dims[d]) {
        Axes part = Have(t, f);
        for (const Candidate& c : candidates) {
          if (c.factor != f) continue;
          if (Longer(part, c.axes)) {
            part = c.axes;
            if (from == nullptr) from = &c;
          }
          break;
        }
        axes.insert(axes.end(), part.begin(), part.end());
        if (AxesSize(part) != Extent(t, f)) break;
      }
      if (from == nullptr) continue;
      axes = Canonical(mesh_, axes);
      if (AxesSize(axes) <= AxesSize(s.dim(d)) || !Leads(mesh_, s.dim(d), axes)) continue;
      out->push_back({t, d, from->from, DimOf(from->from, from->factor),
                      r_.factors[from->factor].kind, std::move(axes)});
    }
  }
  // Of a dimension that is one factor.
  void ProposeFor(int t, int d, const Candidate& c, Proposals* out) const {
    if (!Longer(tensors_[t].sharding->dim(d), c.axes)) return;
    out->push_back({t, d, c.from, DimOf(c.from, c.factor), r_.factors[c.factor].kind, c.axes});
  }

  // Of a candidate, one of a factor with `sources` shardings.
  void NoteLevel(int level, size_t sources) {
    least_level_ = std::min(least_level_, level);
    most_level_ = std::max(most_level_, level);
    one_source_ = one_source_ && sources == 1;
  }

  const ConflictOrder order_;
  int least_level_ = kNumLevels, most_level_ = -1;
  bool one_source_ = true;  // of each candidate
  bool contested_ = false;
  Contest contest_;
  const StepRule& rule_;
  const ShardingRule& r_;
  absl::Span<const StepTensor> tensors_;
  const BaseMesh& mesh_;
  const int num_factors_;
  absl::InlinedVector<Axes, 16> have_;   // by slot of the rule
  absl::InlinedVector<int, 8> sharded_;  // the tensors that have shards; of a dense rule
  std::forward_list<AxisList> split_;    // those of have_ that no sharding holds as they are
  absl::InlinedVector<Source, 8> sources_;
};

}  // namespace

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
  stepper.Run(kNumLevels - 1, true, &result->proposals);
  result->contested = stepper.contested();
  result->contest = stepper.contest();
  if (result->proposals.empty()) return;
  if (const int level = stepper.OnlyLevel(); level >= 0) {
    result->stage = 2 * level;
    return;
  }
  Proposals last;
  last.swap(result->proposals);
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

StepResult PropagateThrough(const StepRule& rule, absl::Span<const StepTensor> tensors,
                            ConflictOrder order) {
  StepResult result;
  if (PropagateAlike(rule, tensors, &result)) return result;
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

}  // namespace internal
}  // namespace shardcall
