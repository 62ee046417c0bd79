// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using Value = RuleAlternative::Value;

constexpr absl::string_view kVjpSource = "VJP of ";  // the source of a rule that follows from one

std::string ValueText(const Value& value) {
  std::vector<std::string> dims;
  if (value.ellipsis) dims.push_back(absl::StrCat("...", value.group));
  for (const std::vector<std::string>& factors : value.dims) {
    dims.push_back(factors.size() == 1 ? factors[0]
                                       : absl::StrCat("(", absl::StrJoin(factors, " "), ")"));
  }
  return absl::StrJoin(dims, " ");
}

std::string RuleString(const std::vector<Value>& values, int num_operands) {
  std::vector<std::string> sides[2];
  for (size_t k = 0; k < values.size(); ++k) {
    sides[static_cast<int>(k) >= num_operands].push_back(ValueText(values[k]));
  }
  return absl::StrCat(absl::StrJoin(sides[0], ", "), " -> ", absl::StrJoin(sides[1], ", "));
}

std::set<std::string> Factors(const std::vector<Value>& values) {
  std::set<std::string> names;
  for (const Value& v : values) {
    for (const auto& dim : v.dims) names.insert(dim.begin(), dim.end());
  }
  return names;
}

// A name based on `wish` that no factor has.
std::string Fresh(const std::set<std::string>& taken, const std::string& wish) {
  std::string name = wish;
  for (int k = 0; taken.count(name) > 0; ++k) name = absl::StrCat(wish, k);
  return name;
}

// Factors that occur only in compounds are those that need a size.
void KeepUsed(const std::vector<Value>& values, RuleAlternative* out) {
  std::set<std::string> alone, all = Factors(values);
  for (const Value& v : values) {
    for (const auto& dim : v.dims) {
      if (dim.size() == 1) alone.insert(dim[0]);
    }
  }
  auto unused = [&](const std::string& f) { return all.count(f) == 0; };
  auto sized = [&](const std::string& f) { return all.count(f) == 0 || alone.count(f) > 0; };
  auto drop = [](auto* list, auto&& gone) {
    list->erase(std::remove_if(list->begin(), list->end(), gone), list->end());
  };
  drop(&out->text.need_replication, unused);
  drop(&out->text.permutation, unused);
  drop(&out->text.blocked, unused);
  drop(&out->text.reduction, [&](const auto& e) { return unused(e.first); });
  drop(&out->text.pad, [&](const auto& e) { return unused(e.first); });
  drop(&out->text.sizes, [&](const auto& e) { return sized(e.first); });
}

absl::StatusOr<RuleAlternative> WithLeading(const RuleAlternative& rule,
                                            const std::vector<bool>& chosen, bool whole) {
  auto cannot = [&](std::string message) {
    return ToStatus({.code = "E117",
                     .message = std::move(message),
                     .expected = rule.text.rule,
                     .found = absl::StrJoin(chosen, ","),
                     .fix = "Declare how the target is batched with RegisterBatching"});
  };
  if (static_cast<int>(chosen.size()) != rule.num_operands ||
      std::find(chosen.begin(), chosen.end(), true) == chosen.end()) {
    return cannot("a batch is of one operand or more of those that the rule has");
  }
  bool ellipsis = false, fits = true;
  std::vector<Value> values = rule.values;
  for (size_t k = 0; k < values.size(); ++k) {
    const bool has = static_cast<int>(k) >= rule.num_operands || chosen[k];
    ellipsis = ellipsis || values[k].ellipsis;
    fits = fits && values[k].ellipsis == has;
  }
  RuleAlternative out = rule;
  out.rule = nullptr;
  if (ellipsis) {
    if (fits && !whole) return out;
    return cannot("'...' of the rule does not stand where the batch is");
  }
  const std::string name = Fresh(Factors(values), whole ? "step" : "batch");
  for (size_t k = 0; k < values.size(); ++k) {
    if (static_cast<int>(k) < rule.num_operands && !chosen[k]) continue;
    values[k].dims.insert(values[k].dims.begin(), std::vector<std::string>{name});
  }
  out.text.rule = RuleString(values, rule.num_operands);
  out.values = std::move(values);
  if (whole) out.text.need_replication.push_back(name);
  return out;
}

// `rule` with `...` replaced by `count` named factors.
RuleAlternative Expanded(const RuleAlternative& rule, int count, VjpSpec* vjp) {
  RuleAlternative out = rule;
  std::set<std::string> taken = Factors(rule.values);
  std::vector<std::vector<std::string>> lead;
  for (int k = 0; k < count; ++k) {
    const std::string name = Fresh(taken, absl::StrCat("n", k));
    taken.insert(name);
    lead.push_back({name});
  }
  for (const auto& [name, value] : std::vector<std::pair<std::string, double>>(vjp->pad)) {
    for (size_t k = 0; name == "..." && k < lead.size(); ++k) {
      vjp->pad.emplace_back(lead[k][0], value);
    }
  }
  for (Value& v : out.values) {
    if (!v.ellipsis) continue;
    v.ellipsis = false;
    v.dims.insert(v.dims.begin(), lead.begin(), lead.end());
  }
  return out;
}

// The words of "T, U -> T"; empty where there are several signatures.
std::vector<std::string> TypeWords(const std::string& types) {
  std::vector<std::string> words;
  if (types.empty() || types.find('|') != types.npos) return words;
  for (absl::string_view side : absl::StrSplit(types, "->")) {
    for (absl::string_view word : absl::StrSplit(side, ',', absl::SkipWhitespace())) {
      words.emplace_back(absl::StripAsciiWhitespace(word));
    }
  }
  return words;
}

// The padding value of factor `f` that adds nothing in the VJP; see TransposedRules.
std::optional<double> PadOf(const RuleAlternative& rule, const VjpSpec& vjp, const std::string& f) {
  for (const auto& [name, value] : vjp.pad) {
    if (name == f) return value;
  }
  for (const auto& [name, value] : rule.text.pad) {
    if (name != f) continue;
    for (const VjpArgument& a : vjp.arguments) {
      const bool cut = a.kind == VjpArgument::Kind::kCotangent &&
                       Factors({rule.values[rule.num_operands + a.index]}).count(f) > 0;
      if (cut && value != 0) return std::nullopt;
    }
    return value;
  }
  return std::nullopt;
}

// What a VJP that may skip absent operands takes and gives for calls with this signature.
VjpSpec ForPresentOperands(VjpSpec vjp, const RuleAlternative& rule) {
  if (!vjp.skip_absent_operands) return vjp;
  std::erase_if(vjp.arguments, [&](const VjpArgument& a) {
    return a.kind == VjpArgument::Kind::kOperand && a.index >= rule.num_operands;
  });
  std::erase_if(vjp.gradients, [&](int g) { return g >= rule.num_operands; });
  std::erase_if(vjp.pad, [names = Factors(rule.values)](const auto& pad) {
    return pad.first != "..." && names.count(pad.first) == 0;
  });
  return vjp;
}

RuleAlternative Transposed(const RuleAlternative& rule, const VjpSpec& vjp) {
  RuleAlternative out;
  out.num_operands = static_cast<int>(vjp.arguments.size());
  std::vector<int> from;  // by value of the VJP: the corresponding value of the rule
  for (const VjpArgument& a : vjp.arguments) {
    from.push_back(a.kind == VjpArgument::Kind::kOperand ? a.index : rule.num_operands + a.index);
  }
  from.insert(from.end(), vjp.gradients.begin(), vjp.gradients.end());
  const std::vector<std::string> words = TypeWords(rule.types);
  for (size_t k = 0; k < from.size(); ++k) {
    out.values.push_back(rule.values[from[k]]);
    if (words.empty()) continue;
    absl::StrAppend(&out.types,
                    static_cast<int>(k) == out.num_operands ? " -> "
                    : k > 0                                 ? ", "
                                                            : "",
                    words[from[k]]);
  }
  out.text = rule.text;
  out.text.pad.clear();
  out.text.reduction.clear();
  out.applies = rule.applies;
  if (!vjp.backend_config.has_value()) out.when = rule.when;
  out.example_configs = rule.example_configs;
  std::set<std::string> whole(rule.text.need_replication.begin(), rule.text.need_replication.end());
  whole.insert(rule.text.permutation.begin(), rule.text.permutation.end());
  for (const auto& [f, op] : rule.text.reduction) {
    if (op != PartialOp::kSum && whole.insert(f).second) out.text.need_replication.push_back(f);
  }
  // A gradient that lacks a factor over which the VJP is sharded is a sum over its shards.
  for (const std::string& f : Factors(out.values)) {
    if (whole.count(f) > 0) continue;
    bool everywhere = true;
    for (size_t k = out.num_operands; k < out.values.size(); ++k) {
      everywhere = everywhere && Factors({out.values[k]}).count(f) > 0;
    }
    if (everywhere) continue;
    out.text.reduction.emplace_back(f, PartialOp::kSum);
    const std::optional<double> pad = PadOf(rule, vjp, f);
    if (pad.has_value()) out.text.pad.emplace_back(f, *pad);
  }
  out.text.rule = RuleString(out.values, out.num_operands);
  KeepUsed(out.values, &out);
  return out;
}

}  // namespace

absl::StatusOr<RuleAlternative> BatchedRule(const RuleAlternative& rule,
                                            const std::vector<bool>& batched) {
  return WithLeading(rule, batched, /*whole=*/false);
}

bool TakesBatch(const TargetRule& rule, absl::string_view backend_config,
                absl::Span<const Shape* const> operands, absl::Span<const Shape* const> results,
                const std::vector<bool>& batched) {
  const RuleAlternative* const a = rule.Choose(backend_config, operands, results);
  if (a == nullptr || operands.empty() || batched.size() != operands.size()) return false;
  const size_t first = a->num_operands;
  for (size_t k = 0; k < a->values.size(); ++k) {
    if (a->values[k].ellipsis != (k >= first || batched[k])) return false;
  }
  // A narrower rule may be that of the call with more dimensions.
  Context context;
  std::vector<const Shape*> wide;
  for (size_t k = 0; k < operands.size() + results.size(); ++k) {
    const Shape& shape = k < first ? *operands[k] : *results[k - first];
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    if (k >= first || batched[k]) dims.insert(dims.begin(), 2);
    wide.push_back(context.MakeArray(shape.element_type(), dims));
  }
  const absl::Span<const Shape* const> all(wide);
  return rule.Choose(backend_config, all.first(first), all.subspan(first)) == a;
}

absl::StatusOr<RuleAlternative> ScannedRule(const RuleAlternative& rule,
                                            const std::vector<bool>& stacked) {
  return WithLeading(rule, stacked, /*whole=*/true);
}

absl::StatusOr<std::vector<RuleAlternative>> TransposedRules(const RuleAlternative& rule,
                                                             const VjpSpec& given) {
  const VjpSpec vjp = ForPresentOperands(given, rule);
  const int results = static_cast<int>(rule.values.size()) - rule.num_operands;
  auto misfit = [&](std::string message, int index) {
    return ToStatus({.code = "E116",
                     .message = std::move(message),
                     .expected = rule.text.rule,
                     .found = absl::StrCat(index),
                     .fix = "Name operands and results of the target, numbered from 0"});
  };
  for (const VjpArgument& a : vjp.arguments) {
    const int most = a.kind == VjpArgument::Kind::kOperand ? rule.num_operands : results;
    if (a.index < 0 || a.index >= most) {
      return misfit("the VJP has an argument that the rule does not", a.index);
    }
  }
  for (const auto& [name, value] : vjp.pad) {
    if (name == "..." || Factors(rule.values).count(name) > 0) continue;
    return ToStatus(
        {.code = "E116",
         .message = absl::StrCat("the VJP pads factor ", name, ", which the rule does not have"),
         .expected = rule.text.rule,
         .found = name,
         .fix = "Name a factor of the rule, or \"...\""});
  }
  std::set<int> seen;
  for (int g : vjp.gradients) {
    if (g < 0 || g >= rule.num_operands || !seen.insert(g).second) {
      return misfit("the VJP gives a gradient of no operand, or one twice", g);
    }
  }
  bool lead = false, lacks = false;
  for (const Value& v : rule.values) lead = lead || v.ellipsis;
  for (int g : vjp.gradients) lacks = lacks || !rule.values[g].ellipsis;
  std::vector<RuleAlternative> out;
  if (!lead || !lacks) {
    out.push_back(Transposed(rule, vjp));
    return out;
  }
  constexpr int kMost = 5;
  for (int n = 0; n <= kMost; ++n) {
    VjpSpec own = vjp;
    const RuleAlternative expanded = Expanded(rule, n, &own);
    out.push_back(Transposed(expanded, own));
  }
  return out;
}

namespace {

bool Equal(const VjpSpec& a, const VjpSpec& b) {
  return a.target == b.target && a.computation == b.computation && a.gradients == b.gradients &&
         a.backend_config == b.backend_config && a.pad == b.pad && a.applies == b.applies &&
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
std::string Describe(const BatchingSpec& b) {
  static constexpr absl::string_view kKinds[] = {"leading", "broadcast", "target", "loop"};
  return absl::StrCat(kKinds[static_cast<int>(b.kind)], b.target.empty() ? "" : " ", b.target);
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
  const TargetRule* rule = Find(target, "");
  if (rule == nullptr) {
    return refuse("E105", "is registered before its rule", "Register the target's rule first",
                  absl::StatusCode::kFailedPrecondition);
  }
  if (rule->level == RuleLevel::kRule) {
    // An alternative that lacks values the VJP needs (a norm without its rstd) gets no VJP rule.
    std::vector<RuleAlternative> transposed;
    absl::Status status;
    for (size_t i = 0; i < rule->num_given; ++i) {
      const RuleAlternative& a = rule->alternatives[i];
      absl::StatusOr<std::vector<RuleAlternative>> rules = TransposedRules(a, vjp);
      if (!rules.ok()) {
        if (status.ok()) status = rules.status();
        continue;
      }
      for (RuleAlternative& r : *rules) transposed.push_back(std::move(r));
    }
    if (transposed.empty()) return status;
    if (!vjp.target.empty() && Find(vjp.target, "") == nullptr) {
      SHARDCALL_RETURN_IF_ERROR(
          RegisterDerived(vjp.target, std::move(transposed), absl::StrCat(kVjpSource, target)));
    }
  } else if (!vjp.target.empty() && Find(vjp.target, "") == nullptr) {
    return refuse("E105",
                  absl::StrCat("is \"", vjp.target,
                               "\", which has no rule, and none "
                               "follows from ",
                               RuleLevelName(rule->level)),
                  "Register its rule", absl::StatusCode::kFailedPrecondition);
  }
  facts_[target].vjp = std::move(vjp);
  return absl::OkStatus();
}

absl::Status TargetRegistry::RegisterBatching(std::string target, BatchingSpec batching) {
  using Kind = BatchingSpec::Kind;
  const TargetRule* found = Find(target, "");
  const TargetFacts* known = Facts(target);
  const bool has = known != nullptr && known->batching.has_value();
  if (has && known->batching->kind == batching.kind && known->batching->target == batching.target) {
    return absl::OkStatus();
  }
  if (found == nullptr || has || batching.target.empty() == (batching.kind == Kind::kTarget)) {
    return ToStatus(
        {.code = "E105",
         .message = absl::StrCat("the batching of \"", target, "\" cannot be registered"),
         .expected = "a target that has a rule and no batching yet; with the name of "
                     "another target for that kind alone",
         .found = found == nullptr ? "no rule"
                  : has ? absl::StrCat(Describe(*known->batching), ", and now ", Describe(batching))
                        : Describe(batching),
         .fix = "Register the rule first, and its batching once"});
  }
  if (found->level == RuleLevel::kRule &&
      (batching.kind == Kind::kLeading || batching.kind == Kind::kBroadcast)) {
    // The ranks of a call's operands show which of them are batched.
    std::vector<RuleAlternative> all = found->alternatives;
    for (const RuleAlternative& a : found->alternatives) {
      // All operands batched, and, where there are few operands, every subset of them.
      std::vector<std::vector<bool>> forms = {std::vector<bool>(a.num_operands, true)};
      constexpr int kMost = 6;  // operands: 63 forms
      if (batching.kind == Kind::kLeading && a.num_operands <= kMost) {
        for (uint32_t bits = (1u << a.num_operands) - 1; bits-- > 1;) {
          std::vector<bool>& flags = forms.emplace_back();
          for (int k = 0; k < a.num_operands; ++k) flags.push_back((bits >> k & 1) != 0);
        }
      }
      for (const std::vector<bool>& flags : forms) {
        absl::StatusOr<RuleAlternative> batched = BatchedRule(a, flags);
        if (batched.ok() && batched->text.rule != a.text.rule) all.push_back(*std::move(batched));
      }
    }
    const std::string source = found->source;
    const size_t num_given = found->num_given;
    TargetRegistry batched;
    SHARDCALL_RETURN_IF_ERROR(batched.RegisterDerived(target, std::move(all), source));
    TargetRule& rule = rules_.at({target, ""});
    rule = std::move(batched.rules_.at({target, ""}));
    rule.num_given = num_given;
  }
  facts_[target].batching = std::move(batching);
  return absl::OkStatus();
}

}  // namespace shardcall
