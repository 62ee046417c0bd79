// SPDX-License-Identifier: Apache-2.0
#include "partitioner/api/check_rule.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

constexpr int64_t kDevices[] = {2, 3, 4};
constexpr int64_t kTiles[] = {1, 2, 4, 8, 16, 32, 64};
constexpr int64_t kMostElements = int64_t{1} << 22;
constexpr int kMostPairs = 12;

using Sizes = std::vector<int64_t>;

class CallChecker {
 public:
  CallChecker(const CheckedCall& call, uint64_t seed, const TrialOptions& options, RuleCheck* out)
      : call_(call), seed_(seed), options_(options), out_(*out) {}

  absl::Status Run() {
    SHARDCALL_RETURN_IF_ERROR(FindSizes());
    if (call_.callbacks) {
      CheckCallbacks();
      return absl::OkStatus();
    }
    std::vector<int> sound;
    for (int f = 0; f < NumFactors(); ++f) {
      if (!MayShard(call_.rule.factors[f]) || !IsMajor(f)) continue;
      const Tested tested = TestFactor(call_, f);
      if (tested.failure.has_value()) {
        Report(f, *tested.failure);
      } else if (tested.runs > 0) {
        sound.push_back(f);
      } else {
        out_.untested.push_back(absl::StrCat(call_.rule.factors[f].name, ": ", tested.reason));
      }
    }
    CheckPairs(sound);
    return absl::OkStatus();
  }

  // Factors that the rule keeps whole and that could be sharded, as what.
  std::map<std::string, RuleFinding> Missing() {
    std::map<std::string, RuleFinding> found;
    if (call_.callbacks) return found;
    for (int f = 0; f < NumFactors(); ++f) {
      if (call_.rule.factors[f].kind != FactorKind::kNeedReplication || !IsMajor(f)) continue;
      // What stands in results alone, no operand gives a size to.
      if (!InAnOperand(f)) continue;
      const std::optional<CheckedCall> better = Better(f, /*with_replication=*/false);
      if (!better.has_value()) continue;
      RuleFinding finding;
      finding.verdict = RuleVerdict::kMissing;
      finding.rule = RuleLine(call_.Text(base_));
      finding.factor = call_.rule.factors[f].name;
      finding.message = absl::StrCat("factor ", finding.factor,
                                     " is kept whole, and sharding it gives the same results");
      finding.backend_config = call_.backend_config;
      finding.suggestion = RuleLine(better->Text(base_));
      found.emplace(finding.factor, std::move(finding));
    }
    return found;
  }

 private:
  struct Failure {
    RuleTrial trial;
    TrialResult result;
    bool uneven = false;
  };
  struct Tested {
    int runs = 0;
    std::string reason = "the handler takes no two sizes of it";
    std::optional<Failure> failure;
  };

  int NumFactors() const { return static_cast<int>(call_.rule.factors.size()); }
  static bool MayShard(const Factor& f) {
    return f.kind == FactorKind::kPassThrough || f.kind == FactorKind::kReduction;
  }
  // Whether it can be sharded before any other in every dimension it is part of.
  bool IsMajor(int f) const {
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
  static bool Has(const TensorFactors& tensor, int f) {
    for (const FactorList& dim : tensor.dims) {
      if (std::find(dim.begin(), dim.end(), f) != dim.end()) return true;
    }
    return false;
  }
  bool InEveryResult(int f) const {
    const auto& results = call_.rule.results;
    return std::all_of(results.begin(), results.end(),
                       [&](const TensorFactors& t) { return Has(t, f); });
  }
  bool InAnOperand(int f) const {
    const auto& operands = call_.rule.operands;
    return std::any_of(operands.begin(), operands.end(),
                       [&](const TensorFactors& t) { return Has(t, f); });
  }

  bool Takes(const Sizes& sizes, std::string* message = nullptr) {
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

  // Sizes that the handler takes: small and distinct, if it can be.
  absl::Status FindSizes() {
    std::vector<Sizes> tries;
    Sizes given;
    bool known = true;
    for (const Factor& f : call_.rule.factors) {
      given.push_back(f.size);
      known = known && f.size > 0;
    }
    if (known) {
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
    }
    std::string message;
    for (const Sizes& sizes : tries) {
      base_ = sizes;
      if (Takes(sizes, &message)) return absl::OkStatus();
    }
    return ToStatus({.code = "E190",
                     .message = absl::StrCat("the handler of \"", call_.target,
                                             "\" takes no call that was tried; it says: ", message),
                     .found = call_.SignatureText(base_),
                     .fix = "Give a program with a call that it takes: shardcall check-rule "
                            "CALL.hlo --target=" + call_.target},
                    absl::StatusCode::kFailedPrecondition);
  }

  Sizes With(int factor, int64_t size) const {
    Sizes sizes = base_;
    sizes[factor] = size;
    return sizes;
  }

  // The trial with both kinds of inputs. True if one of them was compared.
  bool Try(RuleTrial trial, bool uneven, Tested* tested) {
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
      tested->failure = Failure{trial, std::move(result), uneven};
      tested->failure->trial.call = nullptr;  // `call` may end before
      return true;
    }
    return compared;
  }

  // One factor over 2, 3 and 4 devices: shards of the first tile size at which
  // the handler takes the whole and the shard, then a whole that is one less,
  // then one that leaves the last device nothing.
  Tested TestFactor(const CheckedCall& call, int f) {
    Tested tested;
    bool taken = false;
    std::string refusal;
    for (int64_t n : kDevices) {
      for (int64_t tile : kTiles) {
        if (!Takes(With(f, tile), &refusal) || !Takes(With(f, n * tile))) continue;
        taken = true;
        RuleTrial trial{.call = &call, .sizes = With(f, n * tile), .shards = {{f, n}}};
        tested.runs += Try(trial, false, &tested);
        if (tested.failure.has_value()) return tested;
        if (tile == 1) continue;  // one row a shard says little of an order
        break;
      }
      for (int64_t size : {2 * n - 1, 4 * n - 1, n + 1}) {
        const int64_t tile = (size + n - 1) / n;
        if (!Takes(With(f, tile)) || !Takes(With(f, size))) continue;
        RuleTrial trial{.call = &call, .sizes = With(f, size), .shards = {{f, n}}};
        tested.runs += Try(trial, true, &tested);
        if (tested.failure.has_value()) return tested;
      }
    }
    if (!taken && !refusal.empty()) {
      // The whole call is taken as it is, and never with less of this factor.
      RuleTrial trial{.sizes = base_, .shards = {{f, 2}}};
      tested.failure = Failure{trial, {TrialOutcome::kRefused, refusal}, false};
    }
    return tested;
  }

  void CheckPairs(const std::vector<int>& factors) {
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
          Try({.call = &call_, .sizes = whole, .shards = {{factors[i], 2}, {factors[j], 2}}}, false,
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

  // A variant of the rule that holds for factor `f`.
  std::optional<CheckedCall> Better(int f, bool with_replication) {
    std::vector<Factor> variants;
    auto add = [&](FactorKind kind, PartialOp op, std::optional<double> pad) {
      Factor v = call_.rule.factors[f];
      v.kind = kind;
      v.reduction = op;
      v.has_pad = pad.has_value();
      v.pad = pad.value_or(0);
      variants.push_back(v);
    };
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    add(FactorKind::kPassThrough, PartialOp::kSum, std::nullopt);
    if (!InEveryResult(f)) {
      add(FactorKind::kReduction, PartialOp::kSum, 0);
      add(FactorKind::kReduction, PartialOp::kMax, -kInfinity);
      add(FactorKind::kReduction, PartialOp::kMin, kInfinity);
      for (PartialOp op : {PartialOp::kSum, PartialOp::kMax, PartialOp::kMin}) {
        add(FactorKind::kReduction, op, std::nullopt);
      }
    }
    for (const Factor& v : variants) {
      CheckedCall call = call_;
      call.rule.factors[f] = v;
      const Tested tested = TestFactor(call, f);
      if (tested.runs > 0 && !tested.failure.has_value()) return call;
    }
    if (!with_replication) return std::nullopt;
    CheckedCall call = call_;
    call.rule.factors[f].kind = FactorKind::kNeedReplication;
    call.rule.factors[f].has_pad = false;
    return call;
  }

  void Report(int f, const Failure& failure) {
    RuleFinding finding;
    finding.verdict = RuleVerdict::kIncorrect;
    finding.rule = RuleLine(call_.Text(base_));
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
      finding.suggestion = RuleLine(Better(f, /*with_replication=*/true)->Text(base_));
    }
    out_.findings.push_back(std::move(finding));
  }

  void CheckCallbacks() {
    for (int t = 0; t < call_.num_operands; ++t) {
      const std::vector<int64_t> dims = call_.Dims(t, base_);
      for (size_t d = 0; d < dims.size(); ++d) {
        for (int64_t n : kDevices) {
          Tested tested;
          const int dim = static_cast<int>(d);
          Try({.call = &call_, .sizes = base_, .dims = {{{t, dim}, n}}}, dims[d] % n != 0, &tested);
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

  const CheckedCall& call_;
  const uint64_t seed_;
  const TrialOptions& options_;
  RuleCheck& out_;
  Sizes base_;
  std::map<Sizes, std::pair<bool, std::string>> takes_;
};

}  // namespace

absl::string_view RuleVerdictName(RuleVerdict verdict) {
  constexpr absl::string_view kNames[] = {"holds", "missing", "incorrect"};
  return kNames[static_cast<int>(verdict)];
}

std::string RuleLine(const RuleText& text) {
  std::string out = text.rule;
  auto set = [&](absl::string_view key, const std::vector<std::string>& entries) {
    if (!entries.empty()) absl::StrAppend(&out, " ", key, "={", absl::StrJoin(entries, ", "), "}");
  };
  std::vector<std::string> reduction, pad, sizes;
  for (const auto& [name, op] : text.reduction) {
    reduction.push_back(absl::StrCat(name, ":", op == PartialOp::kSum ? "add" : PartialOpName(op)));
  }
  for (const auto& [name, value] : text.pad) pad.push_back(absl::StrCat(name, ":", value));
  for (const auto& [name, size] : text.sizes) sizes.push_back(absl::StrCat(name, ":", size));
  set("reduction", reduction);
  set("need_replication", text.need_replication);
  set("permutation", text.permutation);
  set("blocked", text.blocked);
  set("pad", pad);
  set("sizes", sizes);
  return out;
}

absl::StatusOr<RuleCheck> CheckRule(const std::vector<CheckedCall>& calls, uint64_t seed,
                                    const TrialOptions& options) {
  RuleCheck check;
  // What is missing from a signature is missing for all its attributes.
  std::map<std::string, std::map<std::string, RuleFinding>> missing;
  for (const CheckedCall& call : calls) {
    check.target = call.target;
    CallChecker checker(call, seed, options, &check);
    SHARDCALL_RETURN_IF_ERROR(checker.Run());
    std::map<std::string, RuleFinding> found = checker.Missing();
    Sizes sizes(call.rule.factors.size(), 1);
    const auto [it, first] = missing.try_emplace(RuleLine(call.Text(sizes)), found);
    if (first) continue;
    for (auto at = it->second.begin(); at != it->second.end();) {
      at = found.count(at->first) > 0 ? std::next(at) : it->second.erase(at);
    }
  }
  for (auto& [rule, by_factor] : missing) {
    for (auto& [factor, finding] : by_factor) check.findings.push_back(std::move(finding));
  }
  std::stable_sort(check.findings.begin(), check.findings.end(),
                   [](const RuleFinding& a, const RuleFinding& b) { return a.verdict > b.verdict; });
  if (!check.findings.empty()) check.verdict = check.findings[0].verdict;
  return check;
}

std::string RuleCheckJson(const RuleCheck& check) {
  using Json = nlohmann::ordered_json;
  Json j;
  j["target"] = check.target;
  j["verdict"] = RuleVerdictName(check.verdict).data();
  const RuleFinding first = check.findings.empty() ? RuleFinding() : check.findings[0];
  j["factor"] = first.factor;
  j["suggestion"] = first.suggestion;
  j["trials"] = check.trials;
  j["findings"] = Json::array();
  for (const RuleFinding& f : check.findings) {
    Json shards = Json::object();
    for (const auto& [factor, n] : f.shards) shards[factor] = n;
    Json finding = {{"verdict", RuleVerdictName(f.verdict).data()},
                    {"rule", f.rule},
                    {"factor", f.factor},
                    {"message", f.message},
                    {"suggestion", f.suggestion}};
    if (!f.backend_config.empty()) finding["backend_config"] = f.backend_config;
    if (!f.signature.empty()) {
      finding["counter_example"] = {{"call", f.signature}, {"shards", shards}, {"seed", f.seed}};
    }
    j["findings"].push_back(std::move(finding));
  }
  j["untested"] = check.untested;
  return j.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace shardcall
