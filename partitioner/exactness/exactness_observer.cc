// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/exactness/exactness_observer.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <utility>

#include "shardcall/partitioner/exactness/measure.h"
#include "shardcall/partitioner/runtime/float_arrays.h"

namespace shardcall {
inline namespace internal {
namespace {

// A pseudo-random number in [-1, 1] that depends on the place of an element and on its value.
double Draw(uint64_t nudge, uint64_t place, double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  uint64_t h = nudge * 0x9e3779b97f4a7c15u + place * 0xd1b54a32d192ed03u + bits;
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
  h = (h ^ h >> 27) * 0x94d049bb133111ebu;
  h ^= h >> 31;
  return static_cast<double>(h >> 11) * 0x1p-52 - 1;
}

// Whether the step starts a collective; its result is a handle that the done step takes.
bool StartsCollective(Opcode op) { return HasTrait(op, kCollectiveOp) && HasTrait(op, kAsyncForm); }

}  // namespace

bool ExactnessObserver::Enters(const Step& step) const {
  // A handler runs the computations that it is given.
  return RunsComputations(step.opcode) && step.opcode != Opcode::kCustomCall;
}

absl::Status ExactnessObserver::Before(StepRun& run, std::vector<Tensor>& slots) {
  if (--steps_left_ < 0) return absl::AbortedError("more steps than were allowed");
  const Step& step = run.step();
  SetDraws(run);
  Pending& p = pending_.emplace_back();
  for (int k = 0; k < run.num_inputs(); ++k) {
    const Exactness known = Known(run.in(k));
    p.result.exact = p.result.exact && known.exact;
    p.result.partial = p.result.partial || known.partial;
  }
  const bool collective = HasTrait(step.opcode, kCollectiveOp);
  if (run.device().comm != nullptr && (collective || step.opcode == Opcode::kCustomCall)) {
    p.brings = p.result;
    for (int k = 0; k < run.num_inputs(); ++k) {
      const Exactness e = Full(run.in(k));
      p.brings.bound = std::max(p.brings.bound, e.bound);
      p.brings.granule = std::min(p.brings.granule, e.granule);
    }
  }
  if (Enters(step)) return absl::OkStatus();
  p.sums = sums_->Of(step.opcode, step.name);
  const bool adds_of_others = collective && p.sums == Sums::kLinear;
  if (p.sums == Sums::kNone || adds_of_others) {
    if (p.result.exact && p.result.partial) PassParts(run, &p.result);
    return absl::OkStatus();
  }
  Sum(run, slots, &p);
  return absl::OkStatus();
}

void ExactnessObserver::After(const Step& step, std::vector<Tensor>& slots) {
  Pending p = std::move(pending_.back());
  pending_.pop_back();
  if (!pending_.empty() && !p.result.exact) pending_.back().inner_exact = false;
  const bool entered = Enters(step);
  for (size_t r = 0; r < step.results.size(); ++r) {
    Tensor& t = slots[step.results[r]];
    if (t.data() == nullptr) continue;
    // The results of a step that runs a computation are values of the steps within it, but for what
    // applies it to elements.
    if (entered && step.opcode != Opcode::kScan && p.sums != Sums::kUnknown) continue;
    Exactness known = p.result;
    if (entered) known.exact = known.exact && p.inner_exact;
    if (!IsNumber(t) && !StartsCollective(step.opcode)) known.partial = false;
    if (p.sums == Sums::kHandler && known.exact && IsNumber(t)) {
      const Measure m = MeasureOf(t);
      known.exact = m.largest == 0 || m.granule >= 0;
    }
    const bool sums = p.sums != Sums::kNone && IsNumber(t);
    if (!known.exact && sums && nudge_ != 0) {
      Nudge(r < p.magnitudes.size() ? &p.magnitudes[r] : nullptr, p.magnitude, p.roundings, &t);
    }
    if (known.exact && !known.partial) {
      known_.erase(t.data());
    } else {
      known_[t.data()] = known;
    }
  }
}

void ExactnessObserver::Met(absl::Span<const Exactness> group, bool added, ElementType type) {
  Pending& p = pending_.back();
  Exactness met;
  for (const Exactness& e : group) {
    met.exact = met.exact && e.exact;
    met.partial = met.partial || e.partial;
    met.bound = added ? met.bound + e.bound : std::max(met.bound, e.bound);
    met.granule = std::min(met.granule, e.granule);
  }
  if (added && (IsFloat(type) || IsComplex(type))) {
    met.exact = met.exact && Fits(met.bound, met.granule, type);
    met.partial = true;
    p.magnitude = std::max(p.magnitude, met.bound);
    if (p.sums == Sums::kNone) p.sums = Sums::kLinear;
  }
  p.result.exact = p.result.exact && met.exact;
  p.result.partial = p.result.partial || met.partial;
  p.result.bound = std::max(p.result.bound, met.bound);
  p.result.granule = std::min(p.result.granule, met.granule);
}

void ExactnessObserver::SetDraws(StepRun& run) const {
  if (draws_ == nullptr || !HasTrait(run.step().opcode, kDrawsNumbers)) return;
  const auto it = draws_->find(run.step().name);
  run.device().rng->drawn_on = it == draws_->end() ? -1 : it->second[run.device().device];
}

Exactness ExactnessObserver::Known(const Tensor& t) const {
  const auto it = known_.find(t.data());
  return it == known_.end() ? Exactness() : it->second;
}

Exactness ExactnessObserver::Full(const Tensor& t) const {
  Exactness e = Known(t);
  if (e.partial || !IsNumber(t)) return e;
  const Measure m = MeasureOf(t);
  e.bound = m.largest;
  e.granule = m.granule;
  return e;
}

void ExactnessObserver::PassParts(StepRun& run, Exactness* out) const {
  const Step& step = run.step();
  const ElementType type = step.shapes.empty() ? ElementType::kInvalid : step.shapes[0].type;
  if (!IsFloat(type) && !IsComplex(type)) {
    out->partial = false;
    return;
  }
  const bool adds = HasTrait(step.opcode, kAddsOperands);
  const bool multiplies = HasTrait(step.opcode, kBilinear);
  const bool moves = !HasTrait(step.opcode, kElementwise) || HasTrait(step.opcode, kKeepsValues);
  if (HasTrait(step.opcode, kMakesFractions)) {
    out->exact = false;  // quotients of partial sums are rounded
    return;
  }
  if (!adds && !multiplies && !moves) {
    out->partial = false;  // partial sums must be added before this op
    return;
  }
  out->bound = multiplies ? 1 : 0;
  out->granule = multiplies ? 0 : INT_MAX;
  for (int k = 0; k < run.num_inputs(); ++k) {
    const Exactness e = Full(run.in(k));
    if (multiplies) {
      out->bound *= e.bound;
      out->granule = e.granule == INT_MAX ? 0 : out->granule + e.granule;
    } else {
      out->bound = adds ? out->bound + e.bound : std::max(out->bound, e.bound);
      out->granule = std::min(out->granule, e.granule);
    }
  }
  out->exact = Fits(out->bound, out->granule, type);
}

ExactnessObserver::OperandMeasures ExactnessObserver::MeasureOperands(StepRun& run) const {
  OperandMeasures o;
  for (int k = 0; k < run.num_inputs(); ++k) {
    const Tensor& t = run.in(k);
    if (!IsNumber(t)) continue;
    const Measure m = MeasureOf(t);
    const Exactness known = Known(t);
    if (known.partial && m.largest > 0) o.more *= std::max(1.0, known.bound / m.largest);
    const int granule = known.partial ? std::min(known.granule, m.granule) : m.granule;
    o.least = std::min(o.least, granule);
    o.sum = granule == INT_MAX || o.sum == INT_MAX ? INT_MAX : o.sum + granule;
    o.product *= std::max(m.largest, 1.0);
    o.largest *= m.largest;
    o.most = std::max(o.most, t.num_elements());
    o.fewest = std::min(o.fewest, t.num_elements());
  }
  return o;
}

void ExactnessObserver::Sum(StepRun& run, std::vector<Tensor>& slots, Pending* p) const {
  const Step& step = run.step();
  const auto number = std::find_if(step.shapes.begin(), step.shapes.end(), [](const LeafShape& s) {
    return IsFloat(s.type) || IsComplex(s.type);
  });
  Exactness& out = p->result;
  if (number == step.shapes.end()) {  // integer sums wrap around, the same in any order
    out.partial = false;
    return;
  }
  // The number of terms of an element, about. Their rounding errors are as large as a sum of the
  // root of it many random signs.
  const auto terms = [&](double all) {
    return all / static_cast<double>(std::max<int64_t>(step.shapes[0].num_elements(), 1));
  };
  if (p->sums == Sums::kUnknown || step.sized) {
    out.exact = false;
    if (nudge_ == 0 || run.num_inputs() == 0) return;
    const double most = terms(static_cast<double>(run.in(0).num_elements()));
    p->roundings = std::sqrt(std::max(most, 1.0));
    return;
  }
  if (!out.exact && nudge_ == 0) return;
  const ElementType type = number->type;
  const OperandMeasures o = MeasureOperands(run);
  // An element of the result has each element of an operand in at most one term, which bounds its
  // sum. Where this bound is far below the limit, no second sum is needed.
  if (out.exact && (p->sums == Sums::kBilinear || p->sums == Sums::kLinear)) {
    constexpr double kFar = 64;
    const bool bilinear = p->sums == Sums::kBilinear;
    const double bound =
        o.product * static_cast<double>(bilinear ? o.fewest : o.most) * (bilinear ? 1 : 2) * o.more;
    const int granule = bilinear ? o.sum : o.least;
    if (granule != INT_MAX && Fits(kFar * bound, granule, type)) {
      out.bound = bound;
      out.granule = granule;
      out.partial = true;
      return;
    }
  }
  if (!out.exact && p->sums == Sums::kBilinear) {
    // As of a matrix product. Repeating the sum on magnitudes would take too long.
    double pairs = 1;
    for (int k = 0; k < run.num_inputs(); ++k) {
      pairs *= static_cast<double>(std::max<int64_t>(run.in(k).num_elements(), 1));
    }
    p->magnitude = o.largest * std::sqrt(std::sqrt(terms(pairs)));
    return;
  }
  if (p->sums == Sums::kHandler) {
    // A handler is assumed to sum at most products of its operands' elements.
    out.bound = o.product * static_cast<double>(o.most) * o.more;
    out.granule = 0;
    out.exact = out.exact && (o.least == INT_MAX || o.least >= 0) && Fits(out.bound, 0, type);
    out.partial = true;
    return;
  }
  if (!SumMagnitudes(run, slots, p)) {
    out.exact = false;
    return;
  }
  out.bound = 0;
  for (const Tensor& t : p->magnitudes) out.bound = std::max(out.bound, LargestOf(t));
  out.bound *= o.more;
  out.granule = p->sums == Sums::kBilinear ? o.sum : o.least;
  if (p->sums == Sums::kProduct) out.granule = o.least == INT_MAX || o.least >= 0 ? 0 : -1000;
  if (out.granule == INT_MAX && out.bound > 0) out.granule = 0;
  out.exact = out.exact && Fits(out.bound, out.granule, type);
  out.partial = true;
}

bool ExactnessObserver::SumMagnitudes(StepRun& run, std::vector<Tensor>& slots, Pending* p) {
  const Step& step = run.step();
  std::vector<Tensor> operands;
  for (const OperandRef& ref : step.operands) operands.push_back(slots[ref.slot]);
  for (size_t k = 0; k < operands.size(); ++k) {
    if (IsNumber(operands[k])) {
      slots[step.operands[k].slot] = Magnitudes(operands[k], p->sums == Sums::kProduct ? 1.0 : 0.0);
    }
  }
  absl::Status status;
  {
    const StepObserver::Scope nobody(nullptr);
    status = step.fn(run);
  }
  for (int32_t slot : step.results) p->magnitudes.push_back(std::exchange(slots[slot], Tensor()));
  for (size_t k = 0; k < operands.size(); ++k) {
    slots[step.operands[k].slot] = std::move(operands[k]);
  }
  return status.ok();
}

void ExactnessObserver::Nudge(const Tensor* magnitudes, double magnitude, double roundings,
                              Tensor* t) const {
  const double bit = 4 * roundings * std::ldexp(1.0, -BitsOf(t->type()));
  const double all = magnitudes == nullptr ? std::max(magnitude, MeasureOf(*t).largest) : 0;
  if (IsComplex(t->type())) {
    std::vector<std::complex<double>> x = ToComplexes(*t);
    const std::vector<std::complex<double>> sizes =
        magnitudes == nullptr ? std::vector<std::complex<double>>() : ToComplexes(*magnitudes);
    for (size_t k = 0; k < x.size(); ++k) {
      const double by = bit * (sizes.empty() ? all : sizes[k].real());
      x[k] += std::complex<double>(by * Draw(nudge_, 2 * k, x[k].real()),
                                   by * Draw(nudge_, 2 * k + 1, x[k].imag()));
    }
    *t = FromComplexes(t->type(), t->dims(), x);
    return;
  }
  std::vector<double> x = ToDoubles(*t);
  const std::vector<double> sizes =
      magnitudes == nullptr ? std::vector<double>() : ToDoubles(*magnitudes);
  for (size_t k = 0; k < x.size(); ++k) {
    x[k] += bit * (sizes.empty() ? all : sizes[k]) * Draw(nudge_, k, x[k]);
  }
  *t = FromDoubles(t->type(), t->dims(), x);
}

}  // namespace internal
}  // namespace shardcall
