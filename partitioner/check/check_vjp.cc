// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/check_vjp.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "shardcall/partitioner/api/derived_calls.h"
#include "shardcall/partitioner/api/executable.h"
#include "shardcall/partitioner/check/call_sizes.h"
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/float_arrays.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

constexpr int kMostElements = 12;
constexpr double kStep = 1.0 / 16;
// Relative to the largest gradient; f32 loses about 1e-6 / kStep, the finite differences kStep^4.
constexpr double kTolerance = 4e-3;

struct Difference {
  int operand = -1;
  int64_t element = 0;
  double expected = 0, found = 0, error = 0;  // error: relative to the largest gradient
};

// A fixed, irregular sequence in (-2, 2), or in (1/8, 2) if all must be positive.
double Point(uint64_t seed, int64_t k, bool positive) {
  uint64_t h = (seed + 1) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(k) * 0xbf58476d1ce4e5b9u;
  h ^= h >> 31;
  h *= 0x94d049bb133111ebu;
  h ^= h >> 29;
  const double unit = static_cast<double>(h >> 11) * 0x1p-53;
  return positive ? 0.125 + 1.875 * unit : 4 * unit - 2;
}

Tensor FloatPoint(const LeafShape& shape, uint64_t seed, bool positive) {
  int64_t n = 1;
  for (int64_t d : shape.dims) n *= d;
  std::vector<double> x;
  for (int64_t k = 0; k < n; ++k) x.push_back(Point(seed, k, positive));
  return FromDoubles(shape.type, shape.dims, x);
}

// Forward: operands -> results. Backward: operands, cotangents -> gradients.
struct Programs {
  Executable forward, backward;
  std::vector<int> gradients;  // the operand of each result of `backward`
};

class VjpChecker {
 public:
  VjpChecker(const CheckedCall& call, const std::vector<int64_t>& sizes, uint64_t seed,
             const TrialOptions& options, RuleCheck* out)
      : call_(call), sizes_(sizes), seed_(seed), options_(options), out_(*out) {}

  absl::Status Run() {
    SHARDCALL_ASSIGN_OR_RETURN(const Module forward, Forward());
    operands_ = ParameterLeaves(forward);
    results_ = ResultLeaves(forward);
    SHARDCALL_ASSIGN_OR_RETURN(const Programs programs, Make());
    bool tested = false;
    Difference worst;
    for (bool positive : {false, true}) {
      SHARDCALL_ASSIGN_OR_RETURN(const bool compared, CompareAt(programs, positive, &worst));
      tested = tested || compared;
    }
    if (!tested) {
      out_.untested.push_back(
          "the VJP: no operand has a smooth, finite gradient at the points "
          "that were tried");
    }
    if (worst.error > kTolerance) Report(worst);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Module> Forward() const {
    return ParseModule(
        std::make_shared<const std::string>(call_.Hlo(sizes_, {}, /*with_scratch=*/true)),
        std::make_shared<Context>(), "check-rule");
  }

  absl::StatusOr<Programs> Make() const {
    RunOptions run;
    run.handlers = options_.handlers;
    run.deadline = options_.deadline;
    SHARDCALL_ASSIGN_OR_RETURN(Module forward, Forward());
    SHARDCALL_ASSIGN_OR_RETURN(Executable one, Compile(std::move(forward), run));
    SHARDCALL_ASSIGN_OR_RETURN(Module backward, Forward());
    const CompId entry = backward.entry();
    const InstrId call = backward.comp(entry).root;
    MonoidTable monoids(&backward);
    CheckedBuilder b(&backward, entry, &monoids);
    std::vector<InstrId> cotangents;
    const Shape* shape = b.shape(call);
    for (int k = 0; k < shape->num_leaves(); ++k) {
      const Shape* leaf = shape->IsTuple() ? shape->leaf(k) : shape;
      if (!Counts(k, leaf->element_type())) {
        cotangents.emplace_back();
        continue;
      }
      const int64_t number = static_cast<int64_t>(backward.comp(entry).parameters.size());
      SHARDCALL_ASSIGN_OR_RETURN(const InstrId p,
                                 b.Parameter(number, b.context().WithDefaultLayout(leaf)));
      cotangents.push_back(p);
    }
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> gradients,
                               Vjp(b, *options_.targets, call, cotangents));
    std::vector<InstrId> given;
    std::vector<int> operands;
    for (size_t k = 0; k < gradients.size(); ++k) {
      if (!gradients[k].valid() || !IsFloat(b.type(gradients[k]))) continue;
      given.push_back(gradients[k]);
      operands.push_back(static_cast<int>(k));
    }
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId root, b.Add(Opcode::kTuple, given));
    SHARDCALL_RETURN_IF_ERROR(b.SetRoot(root));
    backward.header.entry_parameter_layouts.clear();
    backward.header.entry_result_layout = nullptr;
    SHARDCALL_ASSIGN_OR_RETURN(Executable other, Compile(std::move(backward), run));
    return Programs{std::move(one), std::move(other), std::move(operands)};
  }

  // Whether the VJP has a cotangent for that result.
  bool Counts(int result, ElementType type) const {
    const TargetFacts* facts = options_.targets->Facts(call_.target);
    return IsFloat(type) && facts != nullptr && facts->vjp.has_value() &&
           TakesCotangent(*facts->vjp, result);
  }

  // The sum over results of <cotangent, result>, in f64; NaN on failure.
  double Value(const Programs& p, const std::vector<Tensor>& x,
               const std::vector<Tensor>& cotangents) const {
    const auto out = p.forward.Execute(x);
    if (!out.ok()) return std::nan("");
    double sum = 0;
    size_t next = 0;
    for (size_t r = 0; r < out->size(); ++r) {
      const Tensor& t = (*out)[r];
      if (!Counts(static_cast<int>(r), t.type())) continue;
      const std::vector<double> value = ToDoubles(t), c = ToDoubles(cotangents[next++]);
      for (size_t k = 0; k < value.size(); ++k) sum += value[k] * c[k];
    }
    return sum;
  }

  // Runs CompareHere in the trial process.
  absl::StatusOr<bool> CompareAt(const Programs& p, bool positive, Difference* worst) {
    const TrialProcess::Answer answer = options_.process->Ask([&] {
      Difference here = *worst;
      const absl::StatusOr<bool> tested = CompareHere(p, positive, &here);
      return absl::StrFormat("%d %d %d %d %a %a %a %s", static_cast<int>(tested.status().code()),
                             tested.ok() && *tested ? 1 : 0, here.operand, here.element,
                             here.expected, here.found, here.error,
                             std::string(tested.status().message()));
    });
    if (answer.end != TrialProcess::Answer::End::kReturned) {
      RuleFinding finding;
      finding.verdict = RuleVerdict::kHandlerFault;
      finding.rule = call_.RuleLine(sizes_);
      finding.message =
          absl::StrCat("a handler of \"", call_.target, "\" or of its VJP ", answer.text);
      finding.signature = call_.SignatureText(sizes_);
      finding.backend_config = call_.backend_config;
      finding.seed = seed_;
      out_.findings.push_back(std::move(finding));
      return true;
    }
    int code = 0, tested = 0, read = 0;
    Difference d;
    SHARDCALL_CHECK(std::sscanf(answer.text.c_str(), "%d %d %d %ld %lf %lf %lf %n", &code, &tested,
                                &d.operand, &d.element, &d.expected, &d.found, &d.error,
                                &read) == 7);
    if (code != 0) {
      return absl::Status(static_cast<absl::StatusCode>(code), answer.text.substr(read));
    }
    ++out_.trials;
    *worst = d;
    return tested != 0;
  }

  absl::StatusOr<bool> CompareHere(const Programs& p, bool positive, Difference* worst) const {
    std::vector<Tensor> x, cotangents;
    const std::vector<Tensor> integers = RandomInputs(operands_, seed_);
    for (size_t k = 0; k < operands_.size(); ++k) {
      x.push_back(IsFloat(operands_[k].type)
                      ? FloatPoint(operands_[k], 2 * seed_ + 31 * k + 1, positive)
                      : integers[k]);
    }
    for (size_t k = 0; k < results_.size(); ++k) {
      if (!Counts(static_cast<int>(k), results_[k].type)) continue;
      cotangents.push_back(FloatPoint(results_[k], 2 * seed_ + 101 * k + 2, false));
    }
    std::vector<Tensor> all = x;
    all.insert(all.end(), cotangents.begin(), cotangents.end());
    const auto gradients = p.backward.Execute(all);
    if (!gradients.ok()) return gradients.status();
    bool tested = false;
    for (size_t g = 0; g < gradients->size(); ++g) {
      const int operand = p.gradients[g];
      const std::vector<double> found = ToDoubles((*gradients)[g]);
      double largest = 1;
      for (double v : found) largest = std::max(largest, std::isfinite(v) ? std::abs(v) : 0);
      const int64_t n = static_cast<int64_t>(found.size());
      const int64_t stride = std::max<int64_t>(1, n / kMostElements);
      for (int64_t k = 0; k < n; k += stride) {
        const std::vector<double> at = ToDoubles(x[operand]);
        auto slope = [&](double h) {
          double ends[2];
          double width = 0;
          for (int side : {0, 1}) {
            std::vector<double> moved = at;
            moved[k] += side == 0 ? -h : h;
            std::vector<Tensor> inputs = x;
            inputs[operand] = FromDoubles(x[operand].type(), x[operand].dims(), moved);
            // The actual step is that between the inputs rounded to the element type.
            width += (side == 0 ? -1 : 1) * ToDoubles(inputs[operand])[k];
            ends[side] = Value(p, inputs, cotangents);
          }
          return (ends[1] - ends[0]) / width;
        };
        const double wide = slope(kStep), narrow = slope(kStep / 2);
        const double expected = (4 * narrow - wide) / 3;
        if (!std::isfinite(expected)) continue;
        if (std::abs(wide - narrow) > 0.05 * std::max(largest, std::abs(expected))) continue;
        tested = true;
        double error = std::abs(found[k] - expected) / std::max(largest, std::abs(expected));
        if (std::isnan(error)) error = 1;
        if (error > worst->error) *worst = {operand, k, expected, found[k], error};
      }
    }
    return tested;
  }

  void Report(const Difference& d) {
    RuleFinding finding;
    finding.verdict = RuleVerdict::kIncorrect;
    finding.rule = call_.RuleLine(sizes_);
    finding.factor = absl::StrCat("operand ", d.operand);
    std::string index;
    int64_t rest = d.element;
    const auto& dims = operands_[d.operand].dims;
    for (int k = static_cast<int>(dims.size()) - 1; k >= 0; --k) {
      index = absl::StrCat(rest % dims[k], index.empty() ? "" : ",", index);
      rest /= dims[k];
    }
    finding.message = absl::StrFormat(
        "the gradient of operand %d at [%s] is %g by the VJP, and %g by finite differences",
        d.operand, index, d.found, d.expected);
    finding.signature = call_.SignatureText(sizes_);
    finding.backend_config = call_.backend_config;
    finding.seed = seed_;
    out_.findings.push_back(std::move(finding));
  }

  const CheckedCall& call_;
  const std::vector<int64_t> sizes_;
  const uint64_t seed_;
  const TrialOptions& options_;
  RuleCheck& out_;
  std::vector<LeafShape> operands_, results_;
};

}  // namespace

namespace {

// Checks the rule of the VJP's target with calls that the rule describes. If the handler takes none
// of them, it may need attributes, so the VJP's attributes are tried, most of which are those of
// the forward calls.
absl::StatusOr<RuleCheck> CheckBackward(const VjpSpec& vjp, const std::vector<CheckedCall>& forward,
                                        uint64_t seed, const TrialOptions& options) {
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<CheckedCall> calls,
                             CallsOfTarget(vjp.target, *options.targets, *options.handlers));
  absl::StatusOr<RuleCheck> check = CheckRule(calls, seed, options);
  if (DiagnosticCode(check.status()) != "E190") return check;
  std::set<std::string> configs;
  for (const CheckedCall& call : forward) {
    configs.insert(vjp.backend_config.value_or(call.backend_config));
  }
  std::vector<CheckedCall> with_attributes;
  for (const std::string& config : configs) {
    for (CheckedCall& call : calls) {
      call.backend_config = config;
      with_attributes.push_back(call);
    }
  }
  return CheckRule(with_attributes, seed, options);
}

}  // namespace

absl::StatusOr<RuleCheck> CheckVjp(const std::vector<CheckedCall>& calls, uint64_t seed,
                                   const TrialOptions& given_options) {
  TrialRun run(given_options, calls);
  const TrialOptions& options = run.options();
  RuleCheck check;
  int tested = 0;
  absl::Status status;
  for (const CheckedCall& given : calls) {
    check.target = given.target;
    CallSizes sizes(given, seed, options, &check);
    absl::Status done = sizes.Find();
    if (done.ok() && !sizes.faulty()) {
      done = VjpChecker(sizes.call(), sizes.base(), seed, options, &check).Run();
    }
    // A signature without the results that the VJP needs (a norm without its rstd) has no VJP.
    if (done.ok()) {
      ++tested;
    } else if (status.ok()) {
      status = done;
    }
  }
  if (tested == 0) return status;
  const TargetFacts* facts = options.targets->Facts(check.target);
  if (facts != nullptr && facts->vjp.has_value() && !facts->vjp->target.empty()) {
    SHARDCALL_ASSIGN_OR_RETURN(RuleCheck rule, CheckBackward(*facts->vjp, calls, seed, options));
    check.trials += rule.trials;
    for (std::string& u : rule.untested) check.untested.push_back(std::move(u));
    const TargetRule* const backward = options.targets->Find(facts->vjp->target, "");
    const bool derived = backward != nullptr && VjpOf(*backward) == check.target;
    for (RuleFinding& f : rule.findings) {
      f.advice =
          derived && (f.verdict == RuleVerdict::kNeedless || f.verdict == RuleVerdict::kMissing);
      check.findings.push_back(std::move(f));
    }
  }
  SortFindings(&check);
  return check;
}

}  // namespace shardcall
