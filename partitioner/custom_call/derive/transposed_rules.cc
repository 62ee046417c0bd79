// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"
#include "shardcall/partitioner/custom_call/derive/rule_union.h"
#include "shardcall/partitioner/custom_call/rule_values.h"
#include "shardcall/partitioner/custom_call/size_expression.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using Value = RuleAlternative::Value;

bool Has(const Value& value, const std::string& factor) {
  return absl::c_linear_search(FactorsOf({&value, 1}), factor);
}

// Factors that occur only in compounds are those that need a size.
void KeepUsed(const std::vector<Value>& values, RuleAlternative* out) {
  const std::vector<std::string> all = FactorsOf(values);
  std::set<std::string> alone;
  for (const Value& v : values) {
    for (const auto& dim : v.dims) {
      if (dim.size() == 1) alone.insert(dim[0]);
    }
  }
  auto unused = [&](const std::string& f) { return !absl::c_linear_search(all, f); };
  auto sized = [&](const std::string& f) {
    return !absl::c_linear_search(all, f) || alone.count(f) > 0;
  };
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

// `rule` with `...` replaced by `count` named factors.
RuleAlternative Expanded(const RuleAlternative& rule, int count, VjpSpec* vjp) {
  RuleAlternative out = rule;
  std::vector<std::string> taken = FactorsOf(rule.values);
  std::vector<std::vector<std::string>> lead;
  for (int k = 0; k < count; ++k) {
    const std::string name = FreshFactor(taken, absl::StrCat("n", k));
    taken.push_back(name);
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

// The words of one signature, "T, U -> T".
std::vector<std::string> TypeWords(absl::string_view types) {
  std::vector<std::string> words;
  for (absl::string_view side : absl::StrSplit(types, "->")) {
    for (absl::string_view word : absl::StrSplit(side, ',', absl::SkipWhitespace())) {
      words.emplace_back(absl::StripAsciiWhitespace(word));
    }
  }
  return words;
}

// The letter of a word: T of "T" and of "real(T)"; empty for a type.
absl::string_view LetterOf(absl::string_view word) {
  if (word.size() == 1) return word;
  if (!absl::ConsumePrefix(&word, "real(") && !absl::ConsumePrefix(&word, "complex(")) return "";
  return absl::StripAsciiWhitespace(absl::StripSuffix(word, ")"));
}

// The types of a VJP whose values are those `from` of the rule, the first of them its arguments.
// Empty, for all types, if the arguments do not give the types of all gradients: where the rule
// says "T, f32 -> f32" and the VJP does not take the first operand.
std::string TransposedTypes(const std::string& types, absl::Span<const int> from,
                            size_t num_arguments) {
  std::vector<std::string> out;
  if (types.empty()) return "";
  for (absl::string_view signature : absl::StrSplit(types, '|')) {
    const std::vector<std::string> words = TypeWords(signature);
    std::vector<std::string> sides[2];
    for (size_t k = 0; k < from.size(); ++k) {
      // A call without results has a scalar as its result's cotangent, of which no type is given.
      if (from[k] >= static_cast<int>(words.size())) return "";
      const std::string& word = words[from[k]];
      const absl::string_view letter = LetterOf(word);
      // The type of real(T) or complex(T) does not say what T is.
      if (k >= num_arguments && !letter.empty() && !absl::c_linear_search(sides[0], letter)) {
        return "";
      }
      sides[k >= num_arguments].push_back(word);
    }
    std::string one =
        absl::StrCat(absl::StrJoin(sides[0], ", "), " -> ", absl::StrJoin(sides[1], ", "));
    if (!absl::c_linear_search(out, one)) out.push_back(std::move(one));
  }
  return absl::StrJoin(out, " | ");
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
                       Has(rule.values[rule.num_operands + a.index], f);
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
  std::erase_if(vjp.pad, [names = FactorsOf(rule.values)](const auto& pad) {
    return pad.first != "..." && !absl::c_linear_search(names, pad.first);
  });
  return vjp;
}

// By value of the VJP, arguments and then gradients: the value of the rule that it is like.
std::vector<int> ValuesOfVjp(const RuleAlternative& rule, const VjpSpec& vjp) {
  std::vector<int> from;
  for (const VjpArgument& a : vjp.arguments) {
    from.push_back(a.kind == VjpArgument::Kind::kOperand ? a.index : rule.num_operands + a.index);
  }
  from.insert(from.end(), vjp.gradients.begin(), vjp.gradients.end());
  return from;
}

// Formulas for the attributes of the VJP's call, which has those of the call itself. What follows
// from factors that the VJP lacks is of the whole call there; so an attribute that follows from
// others too stays as it is, and the others are whole.
void TransposeAttributes(const RuleAlternative& rule, RuleAlternative* out) {
  const std::vector<std::string> has = FactorsOf(out->values);
  for (const auto& [name, formula] : rule.attributes) {
    const absl::StatusOr<SizeExpression> e = SizeExpression::Parse(formula);
    SHARDCALL_CHECK(e.ok());  // checked when the rule was registered
    if (absl::c_all_of(e->factors(),
                       [&](const auto& f) { return absl::c_linear_search(has, f); })) {
      out->attributes.emplace_back(name, formula);
      continue;
    }
    for (const std::string& f : e->factors()) {
      if (!IsWhole(out->text, f)) out->text.need_replication.push_back(f);
    }
  }
}

RuleAlternative Transposed(const RuleAlternative& rule, const VjpSpec& vjp) {
  RuleAlternative out;
  out.num_operands = static_cast<int>(vjp.arguments.size());
  const std::vector<int> from = ValuesOfVjp(rule, vjp);
  for (const int k : from) out.values.push_back(rule.values[k]);
  out.types = TransposedTypes(rule.types, from, vjp.arguments.size());
  out.text = rule.text;
  out.text.pad.clear();
  out.text.reduction.clear();
  if (vjp.backend_config.has_value()) {
    out.example_configs = {*vjp.backend_config};
  } else {
    out.applies = rule.applies;
    out.when = rule.when;
    out.example_configs = rule.example_configs;
    TransposeAttributes(rule, &out);
  }
  for (const auto& [f, op] : rule.text.reduction) {
    if (op != PartialOp::kSum && !IsWhole(out.text, f)) out.text.need_replication.push_back(f);
  }
  // A gradient that lacks a factor over which the VJP is sharded is a sum over its shards.
  for (const std::string& f : FactorsOf(out.values)) {
    const auto gradients = absl::MakeConstSpan(out.values).subspan(out.num_operands);
    if (IsWhole(out.text, f) ||
        absl::c_all_of(gradients, [&](const Value& v) { return Has(v, f); })) {
      continue;
    }
    out.text.reduction.emplace_back(f, PartialOp::kSum);
    const std::optional<double> pad = PadOf(rule, vjp, f);
    if (pad.has_value()) out.text.pad.emplace_back(f, *pad);
  }
  out.text.rule = RuleString(out.values, out.num_operands);
  KeepUsed(out.values, &out);
  return out;
}

}  // namespace

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
    if (name == "..." || absl::c_linear_search(FactorsOf(rule.values), name)) continue;
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

bool VjpShowsCall(const RuleAlternative& rule, const VjpSpec& given,
                  const RuleAlternative& transposed) {
  if (given.backend_config.has_value() || transposed.types.empty() != rule.types.empty()) {
    return false;
  }
  const std::vector<int> from = ValuesOfVjp(rule, ForPresentOperands(given, rule));
  for (int k = 0; k < static_cast<int>(rule.values.size()); ++k) {
    if (!absl::c_linear_search(from, k)) return false;
  }
  return true;
}

}  // namespace shardcall
