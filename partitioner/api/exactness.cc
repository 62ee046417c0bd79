// SPDX-License-Identifier: Apache-2.0
#include "partitioner/api/exactness.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "partitioner/ir/float_format.h"
#include "partitioner/ir/monoid.h"
#include "partitioner/runtime/executor.h"
#include "partitioner/runtime/float_arrays.h"
#include "partitioner/runtime/lower.h"
#include "partitioner/runtime/out_of_memory.h"
#include "partitioner/runtime/step_observer.h"
#include "partitioner/runtime/watched_threads.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

// What the order of an op's sums can change.
enum class Sums : uint8_t {
  kNone,      // nothing
  kLinear,    // terms are its operands' elements
  kBilinear,  // terms are products of two operands' elements
  kProduct,   // it multiplies
  kHandler,   // a handler does what it likes
  kUnknown
};

// Of a computation that combines two values.
Sums SumsOfCombiner(const Module& m, CompId comp) {
  Opcode op;
  if (RecognizeMonoid(m, comp, &op)) {
    return op == Opcode::kAdd        ? Sums::kLinear
           : op == Opcode::kMultiply ? Sums::kProduct
                                     : Sums::kNone;
  }
  for (InstrId id : m.comp(comp).instructions) {
    const Instruction& i = m.instr(id);
    const bool arithmetic = i.opcode == Opcode::kAdd || i.opcode == Opcode::kSubtract ||
                            i.opcode == Opcode::kMultiply || i.opcode == Opcode::kDivide ||
                            i.opcode == Opcode::kCall || i.opcode == Opcode::kFusion;
    if (arithmetic && !(i.shape->IsArray() && IsInteger(i.shape->element_type()))) {
      return Sums::kUnknown;
    }
  }
  return Sums::kNone;  // it chooses
}

// Ops that combine elements of an operand; the others give each element by itself, or
// move it.
bool MaySum(Opcode op) {
  switch (op) {
    case Opcode::kDot:
    case Opcode::kRaggedDot:
    case Opcode::kScaledDot:
    case Opcode::kConvolution:
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kScatter:
    case Opcode::kSelectAndScatter:
    case Opcode::kCustomCall:
    case Opcode::kFft:
    case Opcode::kCholesky:
    case Opcode::kTriangularSolve:
    case Opcode::kBatchNormTraining:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormGrad:
    case Opcode::kAllReduce:
    case Opcode::kReduceScatter: return true;
    default: return false;
  }
}

// Of an op that may sum.
Sums SumsOf(const Module& m, const Instruction& i) {
  switch (i.opcode) {
    case Opcode::kDot:
    case Opcode::kRaggedDot:
    case Opcode::kConvolution: return Sums::kBilinear;
    case Opcode::kReduce: return SumsOfCombiner(m, i.as<ReduceAttrs>().to_apply);
    case Opcode::kReduceWindow: return SumsOfCombiner(m, i.as<ReduceWindowAttrs>().to_apply);
    case Opcode::kScatter: return SumsOfCombiner(m, i.as<ScatterAttrs>().to_apply);
    case Opcode::kSelectAndScatter: return SumsOfCombiner(m, i.as<SelectAndScatterAttrs>().scatter);
    case Opcode::kCustomCall: return Sums::kHandler;
    default: return Sums::kUnknown;
  }
}

bool IsNumber(const Tensor& t) { return IsFloat(t.type()) || IsComplex(t.type()); }

// Bits that whole numbers of the type, or of its parts, can have.
int BitsOf(ElementType type) {
  if (type == ElementType::kC64) return 24;
  if (type == ElementType::kC128) return 53;
  return GetFloatFormat(type).mantissa_bits + 1;
}

// The largest finite magnitude, and the exponent of the largest power of two that all
// finite elements are multiples of. Infinities and NaNs are sums' whatever their order.
struct Measure {
  double largest = 0;
  int granule = INT_MAX;

  void Add(double x) {
    if (x == 0 || !std::isfinite(x)) return;
    largest = std::max(largest, std::abs(x));
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
    const uint64_t mantissa = (bits & ((uint64_t{1} << 52) - 1)) |
                              (exponent == 0 ? 0 : uint64_t{1} << 52);
    granule = std::min(granule, std::max(exponent, 1) - 1075 + __builtin_ctzll(mantissa));
  }
};

// Calls `visit` for every element as a number, of complex ones for both parts. A few at a
// time: tensors may be as large as memory.
template <typename Visit>
void ForEachNumber(const Tensor& t, Visit visit) {
  if (t.type() == ElementType::kF32 || t.type() == ElementType::kC64) {
    const int64_t n = t.num_elements() * (t.type() == ElementType::kC64 ? 2 : 1);
    for (int64_t k = 0; k < n; ++k) visit(static_cast<double>(t.data<float>()[k]));
  } else if (t.type() == ElementType::kF64 || t.type() == ElementType::kC128) {
    const int64_t n = t.num_elements() * (t.type() == ElementType::kC128 ? 2 : 1);
    for (int64_t k = 0; k < n; ++k) visit(t.data<double>()[k]);
  } else if (IsFloat(t.type())) {
    constexpr int64_t kBlock = 1024;
    double block[kBlock];
    for (int64_t at = 0; at < t.num_elements(); at += kBlock) {
      const int64_t n = std::min(kBlock, t.num_elements() - at);
      LoadFloats(t.type(), t.data() + at * t.element_bytes(), n, block);
      for (int64_t k = 0; k < n; ++k) visit(block[k]);
    }
  }
}

Measure MeasureOf(const Tensor& t) {
  Measure m;
  ForEachNumber(t, [&](double x) { m.Add(x); });
  return m;
}

// Magnitudes of all elements, at least `least`; what is not finite is 0.
Tensor Magnitudes(const Tensor& t, double least) {
  const auto magnitude = [&](double x) { return std::isfinite(x) ? std::max(std::abs(x), least) : 0; };
  if (IsComplex(t.type())) {
    std::vector<std::complex<double>> x = ToComplexes(t);
    for (auto& c : x) c = magnitude(c.real()) + magnitude(c.imag());
    return FromComplexes(t.type(), t.dims(), x);
  }
  if (t.type() == ElementType::kF32) {
    Tensor out(t.type(), t.dims());
    float* const to = out.MutableData<float>();
    for (int64_t k = 0; k < t.num_elements(); ++k) {
      to[k] = static_cast<float>(magnitude(t.data<float>()[k]));
    }
    return out;
  }
  std::vector<double> x = ToDoubles(t);
  for (double& v : x) v = magnitude(v);
  return FromDoubles(t.type(), t.dims(), x);
}

// What is known of a value.
struct Exactness {
  bool exact = true;
  // A device may have parts of it that are still to be added, which are multiples of
  // 2^granule, and the magnitudes of which add up to `bound` at most.
  bool partial = false;
  double bound = 0;
  int granule = INT_MAX;
};

bool Fits(double bound, int granule, ElementType type) {
  if (bound == 0) return true;
  // At the power itself a sum of more could have been rounded to it.
  return granule != INT_MAX && bound < std::ldexp(1.0, BitsOf(type) + granule);
}

class Observer : public StepObserver {
 public:
  Observer(const Module& module, uint64_t nudge, int64_t most_steps)
      : nudge_(nudge), steps_left_(most_steps) {
    for (int k = 0; k < module.num_instructions(); ++k) {
      const Instruction& i = module.instr(InstrId(k));
      if (!MaySum(i.opcode)) continue;
      const Sums sums = SumsOf(module, i);
      // Instructions of one name in two computations may differ.
      const auto [it, inserted] = sums_.try_emplace(std::string(i.name), sums);
      if (!inserted && it->second != sums) it->second = Sums::kUnknown;
    }
  }

  bool IsExact(const Tensor& t) const { return Known(t).exact; }

  bool Enters(const Step& step) const override {
    return step.opcode == Opcode::kWhile || step.opcode == Opcode::kConditional ||
           step.opcode == Opcode::kCall || step.opcode == Opcode::kFusion ||
           step.opcode == Opcode::kScan || step.opcode == Opcode::kAsyncStart;
  }

  absl::Status Before(StepRun& run, std::vector<Tensor>& slots) override {
    if (--steps_left_ < 0) return absl::AbortedError("more steps than were allowed");
    const Step& step = run.step();
    Pending& p = pending_.emplace_back();
    for (int k = 0; k < run.num_inputs(); ++k) {
      const Exactness known = Known(run.in(k));
      p.result.exact = p.result.exact && known.exact;
      p.result.partial = p.result.partial || known.partial;
    }
    if (Enters(step)) return absl::OkStatus();
    const auto it = sums_.find(step.name);
    p.sums = !MaySum(step.opcode) ? Sums::kNone
             : it == sums_.end()    ? Sums::kUnknown  // made by lowering
                                    : it->second;
    if (p.sums == Sums::kNone) {
      if (p.result.exact && p.result.partial) PassParts(run, &p.result);
      return absl::OkStatus();
    }
    Sum(run, slots, &p);
    return absl::OkStatus();
  }

  void After(const Step& step, std::vector<Tensor>& slots) override {
    Pending p = std::move(pending_.back());
    pending_.pop_back();
    if (!pending_.empty() && !p.result.exact) pending_.back().inner_exact = false;
    const bool entered = Enters(step);
    for (size_t r = 0; r < step.results.size(); ++r) {
      Tensor& t = slots[step.results[r]];
      if (t.data() == nullptr) continue;
      // Of what is entered, results are the values of steps within.
      if (entered && step.opcode != Opcode::kScan) continue;
      Exactness known = p.result;
      if (entered) known.exact = known.exact && p.inner_exact;
      if (!IsNumber(t)) known.partial = false;
      if (p.sums == Sums::kHandler && known.exact && IsNumber(t)) {
        const Measure m = MeasureOf(t);
        known.exact = m.largest == 0 || m.granule >= 0;
      }
      const bool sums = p.sums != Sums::kNone && IsNumber(t);
      if (!known.exact && sums && nudge_ != 0) {
        Nudge(r < p.magnitudes.size() ? &p.magnitudes[r] : nullptr, p.magnitude, &t);
      }
      if (known.exact && !known.partial) {
        known_.erase(t.data());
      } else {
        known_[t.data()] = known;
      }
    }
  }

 private:
  struct Pending {
    Exactness result;
    Sums sums = Sums::kNone;
    bool inner_exact = true;
    std::vector<Tensor> magnitudes;  // of the terms' sums, by result; or
    double magnitude = 0;            // as it is usual for such sums
  };

  Exactness Known(const Tensor& t) const {
    const auto it = known_.find(t.data());
    return it == known_.end() ? Exactness() : it->second;
  }

  // With bound and granule, of parts or of the whole.
  Exactness Full(const Tensor& t) const {
    Exactness e = Known(t);
    if (e.partial || !IsNumber(t)) return e;
    const Measure m = MeasureOf(t);
    e.bound = m.largest;
    e.granule = m.granule;
    return e;
  }

  // An op that sums nothing, of operands of which parts may be added after it.
  void PassParts(StepRun& run, Exactness* out) const {
    const Step& step = run.step();
    const ElementType type = step.shapes.empty() ? ElementType::kInvalid : step.shapes[0].type;
    if (!IsFloat(type) && !IsComplex(type)) {
      out->partial = false;
      return;
    }
    const bool adds = step.opcode == Opcode::kAdd || step.opcode == Opcode::kSubtract;
    const bool multiplies = step.opcode == Opcode::kMultiply;
    const bool moves = !HasTrait(step.opcode, kElementwise) || step.opcode == Opcode::kNegate ||
                       step.opcode == Opcode::kSelect || step.opcode == Opcode::kConvert ||
                       step.opcode == Opcode::kCopy || step.opcode == Opcode::kReal ||
                       step.opcode == Opcode::kImag || step.opcode == Opcode::kComplex ||
                       step.opcode == Opcode::kReducePrecision;
    if (step.opcode == Opcode::kDivide) {
      out->exact = false;  // quotients of parts are rounded
      return;
    }
    if (!adds && !multiplies && !moves) {
      out->partial = false;  // parts are added before it
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

  void Sum(StepRun& run, std::vector<Tensor>& slots, Pending* p) {
    const Step& step = run.step();
    const bool numbers = std::any_of(step.shapes.begin(), step.shapes.end(), [](const LeafShape& s) {
      return IsFloat(s.type) || IsComplex(s.type);
    });
    Exactness& out = p->result;
    if (!numbers) {  // whole numbers wrap in any order
      out.partial = false;
      return;
    }
    if (p->sums == Sums::kUnknown || step.sized) {
      out.exact = false;
      return;
    }
    if (!out.exact && nudge_ == 0) return;
    const ElementType type = std::find_if(step.shapes.begin(), step.shapes.end(),
                                          [](const LeafShape& s) {
                                            return IsFloat(s.type) || IsComplex(s.type);
                                          })->type;
    double more = 1, product = 1, largest = 1;
    int64_t most = 1, fewest = INT64_MAX;
    int least = INT_MAX, sum = 0;
    for (int k = 0; k < run.num_inputs(); ++k) {
      const Tensor& t = run.in(k);
      if (!IsNumber(t)) continue;
      const Measure m = MeasureOf(t);
      const Exactness known = Known(t);
      if (known.partial && m.largest > 0) more *= std::max(1.0, known.bound / m.largest);
      const int granule = known.partial ? std::min(known.granule, m.granule) : m.granule;
      least = std::min(least, granule);
      sum = granule == INT_MAX || sum == INT_MAX ? INT_MAX : sum + granule;
      product *= std::max(m.largest, 1.0);
      largest *= m.largest;
      most = std::max(most, t.num_elements());
      fewest = std::min(fewest, t.num_elements());
    }
    // An element of the result has each element of an operand in one term at most. Where
    // that bound is far below the limit, nothing needs to be summed again.
    if (out.exact && (p->sums == Sums::kBilinear || p->sums == Sums::kLinear)) {
      constexpr double kFar = 64;
      const bool bilinear = p->sums == Sums::kBilinear;
      const double bound = product * static_cast<double>(bilinear ? fewest : most) *
                           (bilinear ? 1 : 2) * more;
      const int granule = bilinear ? sum : least;
      if (granule != INT_MAX && Fits(kFar * bound, granule, type)) {
        out.bound = bound;
        out.granule = granule;
        out.partial = true;
        return;
      }
    }
    if (!out.exact && p->sums == Sums::kBilinear) {
      // As many terms as a product of matrices has; roundings of them are as large as the
      // sum of so many signs. To make it again would take too long.
      double terms = 1;
      for (int k = 0; k < run.num_inputs(); ++k) {
        terms *= static_cast<double>(std::max<int64_t>(run.in(k).num_elements(), 1));
      }
      terms = std::sqrt(terms / static_cast<double>(std::max<int64_t>(
                                    step.shapes[0].num_elements(), 1)));
      p->magnitude = largest * std::sqrt(terms);
      return;
    }
    if (p->sums == Sums::kHandler) {
      // It is taken to sum products of its operands' elements at most.
      out.bound = product * static_cast<double>(most) * more;
      out.granule = 0;
      out.exact = out.exact && (least == INT_MAX || least >= 0) && Fits(out.bound, 0, type);
      out.partial = true;
      return;
    }
    if (!SumMagnitudes(run, slots, p)) {
      out.exact = false;
      return;
    }
    out.bound = 0;
    for (const Tensor& t : p->magnitudes) out.bound = std::max(out.bound, Largest(t));
    out.bound *= more;
    out.granule = p->sums == Sums::kBilinear ? sum : least;
    if (p->sums == Sums::kProduct) out.granule = least == INT_MAX || least >= 0 ? 0 : -1000;
    if (out.granule == INT_MAX && out.bound > 0) out.granule = 0;
    out.exact = out.exact && Fits(out.bound, out.granule, type);
    out.partial = true;
  }

  // Infinite where the sum overflows.
  static double Largest(const Tensor& t) {
    if (!IsNumber(t)) return 0;
    double largest = 0;
    ForEachNumber(t, [&](double x) {
      if (!std::isfinite(x)) x = std::numeric_limits<double>::infinity();
      largest = std::max(largest, std::abs(x));
    });
    return largest;
  }

  // The same op on magnitudes, into p->magnitudes.
  static bool SumMagnitudes(StepRun& run, std::vector<Tensor>& slots, Pending* p) {
    const Step& step = run.step();
    std::vector<Tensor> operands;
    for (const OperandRef& ref : step.operands) operands.push_back(slots[ref.slot]);
    for (size_t k = 0; k < operands.size(); ++k) {
      if (IsNumber(operands[k])) {
        slots[step.operands[k].slot] =
            Magnitudes(operands[k], p->sums == Sums::kProduct ? 1.0 : 0.0);
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

  double Draw() {  // in [-1, 1]
    drawn_ += nudge_ * 0x9e3779b97f4a7c15u + 0xbf58476d1ce4e5b9u;
    uint64_t h = drawn_;
    h = (h ^ h >> 30) * 0x94d049bb133111ebu;
    h ^= h >> 31;
    return static_cast<double>(h >> 11) * 0x1p-52 - 1;
  }

  // Moves every element by up to a few of the last bits of the largest part of its sum.
  void Nudge(const Tensor* magnitudes, double magnitude, Tensor* t) {
    const double bit = 4 * std::ldexp(1.0, -BitsOf(t->type()));
    const double all = magnitudes == nullptr ? std::max(magnitude, MeasureOf(*t).largest) : 0;
    if (IsComplex(t->type())) {
      std::vector<std::complex<double>> x = ToComplexes(*t);
      const std::vector<std::complex<double>> sizes =
          magnitudes == nullptr ? std::vector<std::complex<double>>() : ToComplexes(*magnitudes);
      for (size_t k = 0; k < x.size(); ++k) {
        const double by = bit * (sizes.empty() ? all : sizes[k].real());
        x[k] += std::complex<double>(by * Draw(), by * Draw());
      }
      *t = FromComplexes(t->type(), t->dims(), x);
      return;
    }
    std::vector<double> x = ToDoubles(*t);
    const std::vector<double> sizes =
        magnitudes == nullptr ? std::vector<double>() : ToDoubles(*magnitudes);
    for (size_t k = 0; k < x.size(); ++k) x[k] += bit * (sizes.empty() ? all : sizes[k]) * Draw();
    *t = FromDoubles(t->type(), t->dims(), x);
  }

  absl::flat_hash_map<std::string, Sums> sums_;  // by instruction that may sum
  absl::flat_hash_map<const void*, Exactness> known_;  // by buffer; the others are exact
  std::vector<Pending> pending_;
  const uint64_t nudge_;
  uint64_t drawn_ = 0;
  int64_t steps_left_;
};

}  // namespace

bool ExactResults::all() const {
  return std::all_of(exact.begin(), exact.end(), [](bool e) { return e; });
}

absl::StatusOr<ExactResults> EvaluateExactly(const Module& module, std::vector<Tensor> inputs,
                                             const HandlerRegistry* handlers,
                                             absl::Duration deadline, uint64_t nudge,
                                             int64_t most_steps) {
  return WithinMemory(module.header.name, [&]() -> absl::StatusOr<ExactResults> {
    LowerOptions unfused;  // every value stands alone
    unfused.fuse = false;
    struct State {
      State(const Module& module, uint64_t nudge, int64_t most_steps)
          : observer(module, nudge, most_steps) {}
      std::shared_ptr<const DeviceProgram> program;
      std::vector<Tensor> inputs;
      Observer observer;
      DeviceContext device;
      std::atomic<bool> cancelled{false};
      absl::StatusOr<std::vector<Tensor>> outputs;
    };
    const auto state = std::make_shared<State>(module, nudge, most_steps);
    SHARDCALL_ASSIGN_OR_RETURN(state->program, Lower(module, unfused));
    state->inputs = std::move(inputs);
    state->device.handlers = handlers;
    state->device.deadline = deadline;
    state->device.cancelled = &state->cancelled;
    const auto run = [state](int) {
      const StepObserver::Scope scope(&state->observer);
      state->outputs = Execute(*state->program, std::move(state->inputs), state->device);
    };
    if (state->program->targets.empty()) {
      run(0);
    } else {
      SHARDCALL_RETURN_IF_ERROR(RunWatched(1, deadline, run, [&](const absl::Status&) {
        state->cancelled = true;
      }));
    }
    SHARDCALL_RETURN_IF_ERROR(state->outputs.status());
    ExactResults results;
    for (const Tensor& t : *state->outputs) results.exact.push_back(state->observer.IsExact(t));
    results.outputs = *std::move(state->outputs);
    return results;
  });
}

}  // namespace shardcall
