// SPDX-License-Identifier: Apache-2.0
// Registers VJPs, and the rules that follow for their targets.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"
#include "shardcall/partitioner/custom_call/derive/rule_union.h"
#include "shardcall/partitioner/custom_call/rule_values.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

constexpr absl::string_view kVjpSource = "VJP of ";  // the source of a rule that follows from one

bool Equal(const VjpSpec& a, const VjpSpec& b) {
  return a.target == b.target && a.computation == b.computation && a.gradients == b.gradients &&
         a.backend_config == b.backend_config && SamePads(a.pad, b.pad) && a.applies == b.applies &&
         a.skip_absent_operands == b.skip_absent_operands &&
         std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(),
                    [](const VjpArgument& x, const VjpArgument& y) {
                      return x.kind == y.kind && x.index == y.index;
                    });
}

// "target "g" of (cotangent 0, operand 1) giving gradients of operands 0, 1"
std::string Describe(const VjpSpec& vjp) {
  static constexpr absl::string_view kKinds[] = {"operand ", "result ", "cotangent "};
  std::vector<std::string> arguments;
  for (const VjpArgument& a : vjp.arguments) {
    arguments.push_back(absl::StrCat(kKinds[static_cast<int>(a.kind)], a.index));
  }
  return absl::StrCat(vjp.target.empty()
                          ? absl::StrCat("a computation of ", vjp.computation.size(), " bytes")
                          : absl::StrCat("target \"", vjp.target, "\""),
                      " of (", absl::StrJoin(arguments, ", "), ") giving gradients of operands ",
                      absl::StrJoin(vjp.gradients, ", "));
}

}  // namespace

absl::string_view VjpOf(const TargetRule& rule) {
  absl::string_view source = rule.source;
  return absl::ConsumePrefix(&source, kVjpSource) ? source : absl::string_view();
}

absl::Status TargetRegistry::RegisterVjp(std::string target, VjpSpec vjp) {
  auto refuse = [&](const char* code, std::string message, std::string fix,
                    absl::StatusCode status = absl::StatusCode::kInvalidArgument) {
    return ToStatus({.code = code,
                     .message = absl::StrCat("the VJP of \"", target, "\" ", message),
                     .fix = std::move(fix)},
                    status);
  };
  if (vjp.target.empty() == vjp.computation.empty()) {
    return refuse("E105", "is neither a target nor a computation, or both", "Give one of the two");
  }
  if (vjp.arguments.empty() || vjp.gradients.empty()) {
    return refuse("E116", "takes or gives nothing",
                  "Say what it takes and whose gradients it gives");
  }
  const auto state = state_.Lock();
  const TargetFacts* known = Facts(target);
  if (known != nullptr && known->vjp.has_value()) {
    if (Equal(*known->vjp, vjp)) return absl::OkStatus();
    return ToStatus({.code = "E105",
                     .message = absl::StrCat("the VJP of \"", target, "\" is registered twice"),
                     .expected = Describe(*known->vjp),
                     .found = Describe(vjp),
                     .fix = "Keep one of the two"},
                    absl::StatusCode::kAlreadyExists);
  }
  if (Find(target, "") == nullptr && EntriesOf(target).empty()) {
    return refuse("E105", "is registered before its rule", "Register the target's rule first",
                  absl::StatusCode::kFailedPrecondition);
  }
  SHARDCALL_RETURN_IF_ERROR(DeriveVjpRules(target, vjp));
  TargetFacts facts = FactsOf(target);
  facts.vjp = std::move(vjp);
  state->PutFacts(target, std::move(facts));
  return absl::OkStatus();
}

std::vector<const TargetRule*> TargetRegistry::EntriesOf(const std::string& target) const {
  std::vector<const TargetRule*> entries;
  const auto state = state_.Lock();
  for (auto it = state->rules.lower_bound({target, ""});
       it != state->rules.end() && it->first.first == target; ++it) {
    entries.push_back(it->second.get());
  }
  return entries;
}

absl::Status TargetRegistry::DeriveVjpRules(const std::string& target, const VjpSpec& vjp) {
  // A rule that somebody registered for the target of the VJP is that of all its calls.
  const TargetRule* const own = vjp.target.empty() ? nullptr : Find(vjp.target, "");
  const bool needed = !vjp.target.empty() && (own == nullptr || VjpOf(*own) == target);
  struct Rules {
    std::vector<DerivedRule> derived;
    bool types_bind = false;
  };
  std::map<std::string, Rules> by_config;  // of the VJP's calls
  absl::Status status;
  size_t from = 0;
  for (const TargetRule* entry : EntriesOf(target)) {
    if (entry->level != RuleLevel::kRule) {
      if (!needed) continue;
      return ToStatus({.code = "E105",
                       .message = absl::StrCat("the VJP of \"", target, "\" is \"", vjp.target,
                                               "\", which has no rule, and none follows from ",
                                               RuleLevelName(entry->level)),
                       .fix = "Register its rule"},
                      absl::StatusCode::kFailedPrecondition);
    }
    Rules& rules = by_config[vjp.backend_config.has_value() ? "" : entry->backend_config];
    rules.types_bind = rules.types_bind || entry->types_bind || !rules.derived.empty();
    // An alternative that lacks values the VJP needs (a norm without its rstd) gets no VJP rule.
    for (size_t i = 0; i < entry->num_given; ++i, ++from) {
      const RuleAlternative& a = entry->alternatives[i];
      absl::StatusOr<std::vector<RuleAlternative>> transposed = TransposedRules(a, vjp);
      if (!transposed.ok() && status.ok()) status = transposed.status();
      if (!transposed.ok()) continue;
      for (RuleAlternative& rule : *transposed) {
        const bool shows_call = VjpShowsCall(a, vjp, rule);
        rules.derived.push_back({std::move(rule), from, shows_call});
      }
    }
  }
  std::erase_if(by_config, [](const auto& rules) { return rules.second.derived.empty(); });
  if (by_config.empty()) return status;
  if (!needed) return absl::OkStatus();
  for (auto& [config, rules] : by_config) {
    SHARDCALL_ASSIGN_OR_RETURN(std::vector<RuleAlternative> all,
                               RulesThatObeyAll(target, std::move(rules.derived)));
    TargetRule rule;
    rule.target = vjp.target;
    rule.backend_config = config;
    rule.source = absl::StrCat(kVjpSource, target);
    TargetRegistry scratch;
    SHARDCALL_RETURN_IF_ERROR(
        scratch.RegisterDerived(std::move(rule), std::move(all), rules.types_bind));
    const TargetRule& derived = *scratch.List()[0];
    // One that is there already follows from the rules that the target had before.
    const auto state = state_.Lock();
    const auto known = state->rules.find({vjp.target, config});
    if (known == state->rules.end() ||
        (VjpOf(*known->second) == target && !Equal(*known->second, derived))) {
      state->Put(derived);
    }
  }
  return absl::OkStatus();
}

}  // namespace shardcall
