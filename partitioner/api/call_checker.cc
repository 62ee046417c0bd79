// SPDX-License-Identifier: Apache-2.0
#include "partitioner/api/call_checker.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

constexpr int64_t kDevices[] = {2, 3, 4};
constexpr int64_t kTiles[] = {1, 2, 4, 8, 16, 32, 64};
constexpr int64_t kMostElements = int64_t{1} << 22;
constexpr int kMostPairs = 12;
constexpr size_t kMostEnumerated = 6;

bool MayShard(const Factor& f) {
  return f.kind == FactorKind::kPassThrough || f.kind == FactorKind::kReduction;
}

}  // namespace

absl::Status CallChecker::Run() {
  SHARDCALL_RETURN_IF_ERROR(FindSizes());
  if (options_.reference != nullptr) CheckReference();
  CheckShapes();
  if (call_.callbacks) {
    CheckCallbacks();
    return absl::OkStatus();
  }
  for (int f = 0; f < NumFactors(); ++f) {
    if (!MayShard(call_.rule.factors[f]) || !IsMajor(f)) continue;
    const Tested tested = TestFactor(call_, f);
    if (tested.failure.has_value()) {
      Report(f, *tested.failure);
    } else if (tested.runs > 0) {
      sound_.push_back(f);
    } else {
      out_.untested.push_back(absl::StrCat(call_.rule.factors[f].name, ": ", tested.reason));
    }
  }
  CheckPairs(sound_);
  return absl::OkStatus();
}

void CallChecker::CheckShapes() {
  const TargetRegistry* targets = options_.targets;
  const TargetFacts* facts = targets == nullptr ? nullptr : targets->Facts(call_.target);
  if (facts == nullptr || facts->shapes == nullptr) return;
  Context context;
  std::vector<const Shape*> shapes;
  for (int t = 0; t < call_.num_tensors(); ++t) {
    shapes.push_back(context.MakeArray(call_.types[t], call_.Dims(t, base_)));
  }
  const auto results = absl::MakeConstSpan(shapes).subspan(call_.num_operands);
  const Shape* declared =
      results.size() == 1 && !call_.tuple_result ? results[0] : context.MakeTuple(results);
  const absl::Status status =
      targets->CheckShape({&context, call_.target, call_.backend_config,
                           absl::MakeConstSpan(shapes).first(call_.num_operands)},
                          declared);
  if (status.ok()) return;
  RuleFinding finding;
  finding.verdict = RuleVerdict::kIncorrect;
  finding.rule = call_.RuleLine(base_);
  finding.message =
      absl::StrCat("the target's shape function contradicts its handler, which gives ",
                   declared->ToString(/*with_layout=*/false), "; asked of it: ", status.message());
  finding.signature = call_.SignatureText(base_);
  finding.backend_config = call_.backend_config;
  out_.findings.push_back(std::move(finding));
}

bool CallChecker::IsMajor(int f) const {
  bool used = false;
  for (int t = 0; t < call_.num_tensors(); ++t) {
    for (const FactorList& dim : call_.rule.tensor(t).dims) {
      const auto it = std::find(dim.begin(), dim.end(), f);
      if (it != dim.begin() && it != dim.end()) return false;
      used = used || it != dim.end();
    }
  }
  return used;
}

bool CallChecker::InEveryResult(const CheckedCall& call, int f) {
  const auto& results = call.rule.results;
  return std::all_of(results.begin(), results.end(),
                     [&](const TensorFactors& t) { return Has(t, f); });
}

bool CallChecker::InAnOperand(int f) const {
  const auto& operands = call_.rule.operands;
  return std::any_of(operands.begin(), operands.end(),
                     [&](const TensorFactors& t) { return Has(t, f); });
}

bool CallChecker::Takes(const Sizes& sizes, std::string* message) {
  const auto [it, inserted] = takes_.try_emplace(sizes);
  if (inserted) {
    int64_t elements = 0;
    for (int t = 0; t < call_.num_tensors(); ++t) {
      int64_t n = 1;
      for (int64_t d : call_.Dims(t, sizes)) n *= d;
      elements = std::max(elements, n);
    }
    it->second.first = elements <= kMostElements &&
                       HandlerTakes(call_, sizes, options_, &it->second.second);
  }
  if (message != nullptr) *message = it->second.second;
  return it->second.first;
}

absl::Status CallChecker::FindSizes() {
  std::vector<Sizes> tries;
  Sizes given;
  std::vector<int> open;
  for (const Factor& f : call_.rule.factors) {
    if (f.size == 0) open.push_back(static_cast<int>(given.size()));
    given.push_back(f.size);
  }
  if (open.empty()) {
    Sizes less = given;
    for (int64_t& s : less) s = std::min<int64_t>(s, 8);
    tries = {less, given};
  } else {
    for (int64_t all : {0, 4, 8, 16, 64}) {
      Sizes sizes = given;
      int64_t next = 4;
      for (int64_t& s : sizes) {
        if (s == 0) s = all > 0 ? all : next;
        next += 2;
      }
      tries.push_back(std::move(sizes));
    }
    // One more or less, as of a bidiagonal or half a spectrum.
    for (uint32_t bits = 1; open.size() <= kMostEnumerated && bits + 1 < 1u << open.size();
         ++bits) {
      Sizes sizes = given;
      for (size_t k = 0; k < open.size(); ++k) sizes[open[k]] = (bits >> k & 1) != 0 ? 3 : 4;
      tries.push_back(std::move(sizes));
    }
  }
  // What the handler said, and of what call.
  std::string message;
  std::vector<ElementType> message_types;
  Sizes message_sizes;
  for (const std::vector<ElementType>& types : TypesToTry(call_)) {
    call_.types = types;
    takes_.clear();
    for (const Sizes& sizes : tries) {
      base_ = sizes;
      std::string said;
      if (Takes(sizes, &said)) return absl::OkStatus();
      // The first types are the likeliest, so what is wrong with them says most.
      if (types == TypesToTry(call_)[0] || message.empty()) {
        message = said;
        message_types = types;
        message_sizes = sizes;
      }
    }
  }
  call_.types = message_types;
  return ToStatus({.code = "E190",
                   .message = absl::StrCat("the handler of \"", call_.target,
                                           "\" takes no call that was tried; it says: ", message),
                   .found = call_.SignatureText(message_sizes),
                   .fix = "Give a program with a call that it takes: shardcall check-rule "
                          "CALL.hlo --target=" + call_.target},
                  absl::StatusCode::kFailedPrecondition);
}

CallChecker::Sizes CallChecker::With(int factor, int64_t size) const {
  Sizes sizes = base_;
  for (int f : linked_[factor]) sizes[f] = size;
  return sizes;
}

bool CallChecker::Try(RuleTrial trial, Tested* tested) {
  bool compared = false;
  for (uint64_t kind : {0, 1}) {
    trial.seed = 2 * seed_ + kind;
    TrialResult result = RunTrial(trial, options_);
    if (result.outcome == TrialOutcome::kNoReference) continue;
    if (result.outcome == TrialOutcome::kNotSharded) {
      tested->reason = result.message;
      continue;
    }
    ++out_.trials;
    compared = true;
    if (result.outcome == TrialOutcome::kHolds) continue;
    tested->failure = Failure{trial, std::move(result)};
    tested->failure->trial.call = nullptr;  // `call` may end before
    return true;
  }
  return compared;
}

CallChecker::Tested CallChecker::TestFactor(const CheckedCall& call, int f) {
  Tested tested;
  bool taken = false;
  std::string refusal;
  for (int64_t n : kDevices) {
    for (int64_t tile : kTiles) {
      if (!Takes(With(f, tile), &refusal) || !Takes(With(f, n * tile))) continue;
      taken = true;
      RuleTrial trial{.call = &call, .sizes = With(f, n * tile), .shards = {{f, n}}};
      tested.runs += Try(trial, &tested);
      if (tested.failure.has_value()) return tested;
      if (tile == 1) continue;  // one row a shard says little of an order
      break;
    }
    for (int64_t size : {2 * n - 1, 4 * n - 1, n + 1}) {
      const int64_t tile = (size + n - 1) / n;
      if (!Takes(With(f, tile)) || !Takes(With(f, size))) continue;
      RuleTrial trial{.call = &call, .sizes = With(f, size), .shards = {{f, n}}};
      tested.runs += Try(trial, &tested);
      if (tested.failure.has_value()) return tested;
    }
  }
  if (!taken && !refusal.empty()) {
    // The whole call is taken as it is, and never with less of this factor.
    RuleTrial trial{.sizes = base_, .shards = {{f, 2}}};
    tested.failure = Failure{trial, {TrialOutcome::kRefused, refusal}};
  }
  return tested;
}

void CallChecker::CheckPairs(const std::vector<int>& factors) {
  int pairs = 0;
  for (size_t i = 0; i < factors.size(); ++i) {
    for (size_t j = i + 1; j < factors.size(); ++j) {
      if (++pairs > kMostPairs) return;
      for (int64_t tile : {2, 8, 32}) {
        Sizes whole = base_, part = base_;
        for (int f : {factors[i], factors[j]}) {
          whole[f] = 2 * tile;
          part[f] = tile;
        }
        if (!Takes(whole) || !Takes(part)) continue;
        Tested tested;
        Try({.call = &call_, .sizes = whole, .shards = {{factors[i], 2}, {factors[j], 2}}},
            &tested);
        if (tested.failure.has_value()) {
          Report(factors[j], *tested.failure);
          return;
        }
        break;
      }
    }
  }
}

std::optional<CheckedCall> CallChecker::Better(const CheckedCall& given, int f,
                                               bool with_replication) {
  std::vector<Factor> variants;
  auto add = [&](FactorKind kind, PartialOp op, std::optional<double> pad) {
    Factor v = given.rule.factors[f];
    v.kind = kind;
    v.reduction = op;
    v.has_pad = pad.has_value();
    v.pad = pad.value_or(0);
    variants.push_back(v);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  add(FactorKind::kPassThrough, PartialOp::kSum, std::nullopt);
  if (!InEveryResult(given, f)) {
    add(FactorKind::kReduction, PartialOp::kSum, 0);
    add(FactorKind::kReduction, PartialOp::kMax, -kInfinity);
    add(FactorKind::kReduction, PartialOp::kMin, kInfinity);
    for (PartialOp op : {PartialOp::kSum, PartialOp::kMax, PartialOp::kMin}) {
      add(FactorKind::kReduction, op, std::nullopt);
    }
  }
  for (const Factor& v : variants) {
    CheckedCall call = given;
    call.rule.factors[f] = v;
    const Tested tested = TestFactor(call, f);
    if (tested.runs > 0 && !tested.failure.has_value()) return call;
  }
  if (!with_replication) return std::nullopt;
  CheckedCall call = given;
  call.rule.factors[f].kind = FactorKind::kNeedReplication;
  call.rule.factors[f].has_pad = false;
  return call;
}

void CallChecker::Report(int f, const Failure& failure) {
  RuleFinding finding;
  finding.verdict = RuleVerdict::kIncorrect;
  finding.rule = call_.RuleLine(base_);
  finding.factor = call_.rule.factors[f].name;
  std::string over;
  for (const auto& [factor, n] : failure.trial.shards) {
    const std::string& name = call_.rule.factors[factor].name;
    finding.shards.emplace_back(name, n);
    absl::StrAppend(&over, over.empty() ? "" : ", ", name, " = ", failure.trial.sizes[factor],
                    " over ", n, " devices");
  }
  finding.message = absl::StrCat(
      over, ": ",
      failure.result.outcome == TrialOutcome::kRefused ? "the handler refuses a shard: " : "",
      failure.result.message);
  finding.signature = call_.SignatureText(failure.trial.sizes);
  finding.backend_config = call_.backend_config;
  finding.seed = failure.trial.seed;
  if (failure.trial.shards.size() == 1) {
    finding.suggestion = Better(call_, f, /*with_replication=*/true)->RuleLine(base_);
  }
  out_.findings.push_back(std::move(finding));
}

void CallChecker::CheckReference() {
  std::vector<Sizes> tries = {base_};
  for (int f = 0; f < NumFactors(); ++f) {
    for (int64_t size : {1, 3, 8}) tries.push_back(With(f, size));
  }
  for (const Sizes& sizes : tries) {
    if (!Takes(sizes)) continue;
    const TrialResult result = AgainstReference(call_, sizes, seed_, options_);
    if (result.outcome == TrialOutcome::kNoReference) {
      if (sizes != base_) continue;
      out_.untested.push_back(absl::StrCat("the reference: ", result.message));
      return;
    }
    ++out_.trials;
    if (result.outcome == TrialOutcome::kHolds) continue;
    RuleFinding finding;
    finding.verdict = RuleVerdict::kIncorrect;
    finding.rule = call_.RuleLine(base_);
    finding.message = absl::StrCat("the handler and the reference disagree on one device: ",
                                   result.message);
    finding.signature = call_.SignatureText(sizes);
    finding.backend_config = call_.backend_config;
    finding.seed = seed_;
    out_.findings.push_back(std::move(finding));
    return;
  }
}

void CallChecker::CheckCallbacks() {
  for (int t = 0; t < call_.num_operands; ++t) {
    const std::vector<int64_t> dims = call_.Dims(t, base_);
    for (size_t d = 0; d < dims.size(); ++d) {
      for (int64_t n : kDevices) {
        Tested tested;
        const int dim = static_cast<int>(d);
        const bool compared =
            Try({.call = &call_, .sizes = base_, .dims = {{{t, dim}, n}}}, &tested);
        if (!compared && !tested.reason.empty()) {
          out_.untested.push_back(absl::StrCat("operand ", t, ", dimension ", d, ": ",
                                               tested.reason));
          break;
        }
        if (!tested.failure.has_value()) continue;
        RuleFinding finding;
        finding.verdict = RuleVerdict::kIncorrect;
        finding.rule = "callbacks";
        finding.factor = absl::StrCat("operand ", t, ", dimension ", d);
        finding.message = tested.failure->result.message;
        finding.signature = call_.SignatureText(base_);
        finding.backend_config = call_.backend_config;
        finding.shards.emplace_back(finding.factor, n);
        finding.seed = tested.failure->trial.seed;
        out_.findings.push_back(std::move(finding));
        break;
      }
    }
  }
}

}  // namespace shardcall
