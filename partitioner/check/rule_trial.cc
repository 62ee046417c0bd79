// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/rule_trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/guarded_call.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/float_arrays.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

absl::StatusOr<Module> Parsed(const std::string& text) {
  return ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(),
                     "check-rule");
}

// Elements in [low, high); if both are equal there is no constraint.
Tensor InRange(const Tensor& like, int64_t low, int64_t high, uint64_t seed) {
  const uint64_t width = static_cast<uint64_t>(std::max<int64_t>(high - low, 1));
  std::vector<double> values;
  uint64_t h = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
  for (int64_t k = 0; k < like.num_elements(); ++k) {
    h ^= h << 13;
    h ^= h >> 7;
    h ^= h << 17;
    // Include both ends, which are most likely to show faults.
    const uint64_t at = k == 0 ? width - 1 : k == 1 ? 0 : (h >> 16) % width;
    values.push_back(static_cast<double>(low + static_cast<int64_t>(at)));
  }
  if (IsFloat(like.type())) return FromDoubles(like.type(), like.dims(), values);
  Tensor out(like.type(), like.dims());
  for (int64_t k = 0; k < out.num_elements(); ++k) {
    const int64_t value = static_cast<int64_t>(values[k]);
    std::memcpy(out.MutableData() + k * out.element_bytes(), &value, out.element_bytes());
  }
  return out;
}

void Negate(std::vector<Tensor>* inputs) {
  for (Tensor& t : *inputs) {
    if (!IsFloat(t.type())) continue;
    std::vector<double> x = ToDoubles(t);
    for (double& v : x) v = -v;
    t = FromDoubles(t.type(), t.dims(), x);
  }
}

// Small integers for even seeds; positive fractions for odd ones, since NaN would hide errors, or
// negative ones. Given inputs, and the call's declared ranges, take precedence.
std::vector<Tensor> Inputs(const CheckedCall& call, absl::Span<const int64_t> sizes,
                           const Module& module, uint64_t seed, const TrialOptions& options,
                           bool negative = false) {
  if (!options.inputs.empty()) return options.inputs;
  std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(module), seed / 2);
  if (seed % 2 != 0) MakePositive(&inputs);
  if (negative) Negate(&inputs);
  for (const CheckedCall::Range& range : call.ranges) {
    const auto at = [&](const CheckedCall::Related& r) {
      return (r.of < 0 ? 0 : r.times * sizes[r.of]) + r.plus;
    };
    Tensor& input = inputs[range.operand];
    if (IsComplex(input.type()) || input.type() == ElementType::kPred) continue;
    input = InRange(input, at(range.low), at(range.high), seed + 1);
  }
  return inputs;
}

// Handlers with fences after their buffers for even seeds, before them for odd ones.
const HandlerRegistry* HandlersFor(uint64_t seed, const TrialOptions& options) {
  return seed % 2 != 0 && options.fenced_before != nullptr ? options.fenced_before
                                                           : options.handlers;
}

// The result of `body`, run in the process given in the options.
TrialResult InProcess(const TrialOptions& options, absl::FunctionRef<TrialResult()> body) {
  if (options.process == nullptr) return body();
  const TrialProcess::Answer answer = options.process->Ask([&] {
    const TrialResult result = body();
    return absl::StrCat(static_cast<int>(result.outcome), " ", result.message);
  });
  using End = TrialProcess::Answer::End;
  if (answer.end != End::kReturned) {
    return {answer.end == End::kLate ? TrialOutcome::kLate : TrialOutcome::kCrashed, answer.text};
  }
  const size_t space = answer.text.find(' ');
  int outcome = 0;
  SHARDCALL_CHECK(absl::SimpleAtoi(answer.text.substr(0, space), &outcome));
  return {static_cast<TrialOutcome>(outcome), answer.text.substr(space + 1)};
}

CheckedCall::Mesh MeshOf(const RuleTrial& trial) {
  const CheckedCall& call = *trial.call;
  CheckedCall::Mesh mesh;
  for (int t = 0; t < call.num_tensors(); ++t) {
    mesh.dims.emplace_back(call.rule.tensor(t).dims.size());
  }
  auto axis = [&](int64_t size) {
    mesh.axes.emplace_back(absl::StrCat("x", mesh.axes.size()), size);
    return mesh.axes.back().first;
  };
  for (const auto& [factor, n] : trial.shards) {
    const std::string name = axis(n);
    for (int t = 0; t < call.num_tensors(); ++t) {
      const auto& dims = call.rule.tensor(t).dims;
      for (size_t d = 0; d < dims.size(); ++d) {
        if (!dims[d].empty() && dims[d][0] == factor) mesh.dims[t][d] = name;
      }
    }
  }
  for (const auto& [where, n] : trial.dims) mesh.dims[where.first][where.second] = axis(n);
  return mesh;
}

int64_t ShardsOf(const PartitionedProgram& program) {
  const Module& m = program.global->program.module;
  for (int k = 0; k < m.num_instructions(); ++k) {
    const Decision* d = program.plan.ops[k].decision;
    if (m.instr(InstrId(k)).opcode != Opcode::kCustomCall || d == nullptr) continue;
    int64_t shards = 1;
    for (const auto& axes : d->factor_axes) shards *= AxesSize(axes);
    return shards;
  }
  return 1;
}

// "result 0 differs at [2,1]: 3 in place of 5"
std::string Difference(int result, const Tensor& want, const Tensor& got) {
  std::string where;
  if (IsFloat(want.type()) && want.dims() == got.dims()) {
    const std::vector<double> a = ToDoubles(want), b = ToDoubles(got);
    size_t worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double now = std::abs(a[i] - b[i]), before = std::abs(a[worst] - b[worst]);
      if (now > before || (std::isnan(now) && !std::isnan(before))) worst = i;
    }
    std::string index;
    int64_t rest = static_cast<int64_t>(worst);
    for (int d = want.rank() - 1; d >= 0; --d) {
      index = absl::StrCat(rest % want.dim(d), index.empty() ? "" : ",", index);
      rest /= want.dim(d);
    }
    where = absl::StrCat(" at [", index, "]: ", b[worst], " in place of ", a[worst]);
  }
  return absl::StrCat("result ", result, " differs", where);
}

TrialResult Takes(const CheckedCall& call, const std::vector<int64_t>& sizes,
                  const TrialOptions& options) {
  if (const auto config = call.ConfigAt(sizes); !config.ok()) {
    return {TrialOutcome::kNoCall, std::string(config.status().message())};
  }
  const auto run = [&](const HandlerRegistry* handlers) -> absl::StatusOr<std::vector<Tensor>> {
    SHARDCALL_ASSIGN_OR_RETURN(const Module module, Parsed(call.Hlo(sizes, {})));
    return Evaluate(module, Inputs(call, sizes, module, 1, options), handlers);
  };
  const auto behind = run(options.handlers);
  if (!behind.ok()) return {TrialOutcome::kRefused, std::string(behind.status().message())};
  if (options.fenced_before == nullptr) return {};
  const auto before = run(options.fenced_before);
  if (!before.ok()) return {TrialOutcome::kRefused, std::string(before.status().message())};
  for (size_t k = 0; k < behind->size(); ++k) {
    if (BitwiseEqual((*behind)[k], (*before)[k])) continue;
    // A handler that draws random numbers gives other results each time.
    const auto again = run(options.handlers);
    if (!again.ok() || !BitwiseEqual((*behind)[k], (*again)[k])) return {};
    return {TrialOutcome::kOutside,
            absl::StrCat("reads beside its buffers, or leaves parts of its results unwritten: "
                         "result ",
                         call.ResultOf(static_cast<int>(k)), " follows from what stands there")};
  }
  return {};
}

TrialResult Against(const CheckedCall& call, const std::vector<int64_t>& sizes, uint64_t seed,
                    const TrialOptions& options) {
  const absl::StatusOr<Module> module = Parsed(call.Hlo(sizes, {}));
  if (!module.ok()) return {TrialOutcome::kNoReference, std::string(module.status().message())};
  for (uint64_t kind : {0, 1}) {
    const std::vector<Tensor> inputs = Inputs(call, sizes, *module, 2 * seed + kind, options);
    const auto want = Evaluate(*module, inputs, options.reference);
    if (!want.ok()) return {TrialOutcome::kNoReference, std::string(want.status().message())};
    const auto got = Evaluate(*module, inputs, HandlersFor(kind, options));
    if (!got.ok()) return {TrialOutcome::kRefused, std::string(got.status().message())};
    for (size_t k = 0; k < want->size(); ++k) {
      if (!Compare((*want)[k], (*got)[k], /*exact=*/false).ok) {
        return {TrialOutcome::kWrong,
                Difference(call.ResultOf(static_cast<int>(k)), (*want)[k], (*got)[k])};
      }
    }
  }
  return {};
}

bool Depends(const CheckedCall& call, const std::vector<int64_t>& sizes, int factor, uint64_t seed,
             const TrialOptions& options) {
  const absl::StatusOr<Module> module = Parsed(call.Hlo(sizes, {}));
  if (!module.ok()) return false;
  for (uint64_t kind : {0, 1}) {
    std::vector<Tensor> inputs = Inputs(call, sizes, *module, 2 * seed + kind, options);
    const std::vector<Tensor> others = Inputs(call, sizes, *module, 2 * (seed + 1) + kind, options);
    const auto before = Evaluate(*module, inputs, options.handlers);
    for (int t = 0; t < call.num_operands; ++t) {
      for (const FactorList& dim : call.rule.tensor(t).dims) {
        if (std::find(dim.begin(), dim.end(), factor) != dim.end()) inputs[t] = others[t];
      }
    }
    const auto after = Evaluate(*module, inputs, options.handlers);
    if (!before.ok() || !after.ok()) continue;
    for (size_t k = 0; k < before->size(); ++k) {
      if (!Compare((*before)[k], (*after)[k], /*exact=*/true).ok) return true;
    }
  }
  return false;
}

// Registers the rule that is tried as that of the call's target. Its source stays that of the
// target's own rule, and a rule from whose VJP that follows is registered, too: errors name what
// their author can change.
absl::Status RegisterTried(const CheckedCall& call, absl::Span<const int64_t> sizes,
                           const TargetRegistry* targets, TargetRegistry* own) {
  std::vector<RuleAlternative> rule(1);
  rule[0].text = call.Text(sizes);
  rule[0].attributes = call.attributes;
  const TargetRule* const known = targets == nullptr || call.own_rule
                                      ? nullptr
                                      : targets->Find(call.target, call.backend_config);
  if (known == nullptr) return own->RegisterRules(call.target, std::move(rule));
  const TargetRule* const forward = targets->Find(VjpOf(*known), "");
  if (forward != nullptr && forward->target != call.target) {
    std::vector<RuleAlternative> rules = forward->alternatives;
    rules.resize(forward->num_given);
    // No call has this rule; without it, an error names the factor as the VJP's rule does.
    own->RegisterRules(forward->target, std::move(rules), "", forward->source).IgnoreError();
  }
  return own->RegisterRules(call.target, std::move(rule), "", known->source);
}

TrialResult Run(const RuleTrial& trial, const TrialOptions& options) {
  const CheckedCall& call = *trial.call;
  auto failed = [](TrialOutcome outcome, const absl::Status& status) {
    return TrialResult{outcome, std::string(status.message())};
  };
  TargetRegistry own;
  RunOptions run;
  run.handlers = HandlersFor(trial.seed, options);
  run.deadline = options.deadline;
  run.check_replicas = true;
  run.partition.targets = &own;
  // The call is to run with just the axes that a trial gives it.
  run.partition.spmd.search = StateSearch::kNone;
  if (call.callbacks) {
    run.partition.targets = options.targets;
  } else {
    const absl::Status s = RegisterTried(call, trial.sizes, options.targets, &own);
    if (!s.ok()) return failed(TrialOutcome::kNotSharded, s);
  }
  // The planner should shard whenever the rule allows it, so sharding must always pay.
  run.partition.spmd.cost.memory_rate = 1;

  absl::StatusOr<Module> whole = Parsed(call.Hlo(trial.sizes, {}));
  if (!whole.ok()) return failed(TrialOutcome::kNoReference, whole.status());
  const std::vector<Tensor> inputs =
      Inputs(call, trial.sizes, *whole, trial.seed, options, trial.negative);
  const absl::StatusOr<std::vector<Tensor>> want = Evaluate(*whole, inputs, run.handlers);
  if (!want.ok()) return failed(TrialOutcome::kNoReference, want.status());

  absl::StatusOr<Module> sharded = Parsed(call.Hlo(trial.sizes, MeshOf(trial)));
  if (!sharded.ok()) return failed(TrialOutcome::kNotSharded, sharded.status());
  absl::StatusOr<std::unique_ptr<PartitionedProgram>> program =
      Partition(*std::move(sharded), run.partition);
  if (!program.ok()) {
    // An error of callbacks counts as a refusal of the sizes, since callbacks have no code for
    // that, unlike rules (E150). The exception is E122: callbacks of a target for manual regions,
    // which trials do not have.
    const bool refused = call.callbacks && DiagnosticCode(program.status()) != "E122";
    return failed(refused ? TrialOutcome::kRefused : TrialOutcome::kNotSharded, program.status());
  }
  if (!call.callbacks && ShardsOf(**program) != (*program)->global->program.num_partitions) {
    return {TrialOutcome::kNotSharded, "the operands are gathered"};
  }
  const absl::StatusOr<std::vector<Tensor>> got = RunPartitioned(**program, inputs, run, nullptr);
  if (!got.ok()) {
    const bool copies_differ = DiagnosticCode(got.status()) == "E321";
    return failed(copies_differ ? TrialOutcome::kWrong : TrialOutcome::kRefused, got.status());
  }
  for (size_t k = 0; k < want->size(); ++k) {
    if (!Compare((*want)[k], (*got)[k], /*exact=*/false).ok) {
      return {TrialOutcome::kWrong,
              Difference(call.ResultOf(static_cast<int>(k)), (*want)[k], (*got)[k])};
    }
  }
  return {};
}

}  // namespace

TrialRun::TrialRun(const TrialOptions& given, absl::Span<const CheckedCall> calls)
    : options_(given) {
  if (given.process != nullptr) return;
  const HandlerRegistry none;
  const HandlerRegistry& handlers = given.handlers == nullptr ? none : *given.handlers;
  options_.handlers = &behind_.emplace(FencedHandlers(handlers, FenceSide::kAfter));
  options_.fenced_before = &before_.emplace(FencedHandlers(handlers, FenceSide::kBefore));
  // A kernel that other devices wait for is ended by their deadline; a single one by that of the
  // process, which is a little later.
  const bool forks = absl::c_all_of(calls, [&](const CheckedCall& call) {
    return RunsInFork(handlers, call.target, call.backend_config);
  });
  options_.process = &process_.emplace(given.deadline + absl::Seconds(1), forks);
}

TrialResult HandlerTakes(const CheckedCall& call, const std::vector<int64_t>& sizes,
                         const TrialOptions& options) {
  return InProcess(options, [&] { return Takes(call, sizes, options); });
}

TrialResult AgainstReference(const CheckedCall& call, const std::vector<int64_t>& sizes,
                             uint64_t seed, const TrialOptions& options) {
  return InProcess(options, [&] { return Against(call, sizes, seed, options); });
}

bool DependsOn(const CheckedCall& call, const std::vector<int64_t>& sizes, int factor,
               uint64_t seed, const TrialOptions& options) {
  const TrialResult result = InProcess(options, [&]() -> TrialResult {
    return {Depends(call, sizes, factor, seed, options) ? TrialOutcome::kHolds
                                                        : TrialOutcome::kWrong};
  });
  return result.outcome == TrialOutcome::kHolds;
}

TrialResult RunTrial(const RuleTrial& trial, const TrialOptions& options) {
  return InProcess(options, [&] { return Run(trial, options); });
}

}  // namespace shardcall
