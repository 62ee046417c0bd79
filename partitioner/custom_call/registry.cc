// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/registry.h"

#include <algorithm>

#include "absl/container/btree_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/custom_call/open_factors.h"
#include "shardcall/partitioner/custom_call/type_signature.h"
#include "shardcall/sharding/base/near_names.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// The dimensions of one value of a rule string; a parenthesised compound is one dimension.
RuleAlternative::Value ReadValue(absl::string_view text) {
  RuleAlternative::Value value;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    size_t end = i + 1;
    if (c == '(' || c == ')') {
      inside = c == '(';
      if (inside) value.dims.emplace_back();
    } else if (c == '.') {
      value.ellipsis = true;
      while (end < text.size() && text[end] == '.') ++end;
      const size_t digits = end;
      while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
      value.group = std::string(text.substr(digits, end - digits));
    } else if (absl::ascii_isalpha(c)) {
      while (end < text.size() && (absl::ascii_isalnum(text[end]) || text[end] == '_')) ++end;
      if (!inside) value.dims.emplace_back();
      value.dims.back().emplace_back(text.substr(i, end - i));
    }
    i = end;
  }
  return value;
}

// The values of a rule string that ParseRule has accepted.
void ReadValues(RuleAlternative* a) {
  const absl::string_view text = a->text.rule;
  const size_t arrow = text.find("->");
  a->values.clear();
  for (absl::string_view value : absl::StrSplit(text.substr(0, arrow), ',')) {
    a->values.push_back(ReadValue(value));
  }
  a->num_operands = static_cast<int>(a->values.size());
  for (absl::string_view value : absl::StrSplit(text.substr(arrow + 2), ',')) {
    a->values.push_back(ReadValue(value));
  }
}

absl::Status CheckTypes(const RuleAlternative& a, absl::string_view target) {
  if (a.types.empty()) return absl::OkStatus();
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<TypeSignature> all,
                             TypeSignature::ParseAll(a.types));
  const int results = static_cast<int>(a.values.size()) - a.num_operands;
  if (std::all_of(all.begin(), all.end(), [&](const TypeSignature& types) {
        return types.num_operands() == a.num_operands && types.num_results() == results;
      })) {
    return absl::OkStatus();
  }
  return ToStatus(
      {.code = "E110",
       .message = absl::StrCat("the element types of \"", target, "\" do not fit its rule"),
       .expected = absl::StrCat(a.num_operands, " operands and ", results, " results"),
       .found = a.types,
       .fix = "Give one type for each operand and result"});
}

const Shape* ShapeAt(size_t i, absl::Span<const Shape* const> operands,
                     absl::Span<const Shape* const> results) {
  return i < operands.size() ? operands[i] : results[i - operands.size()];
}

bool Fits(const RuleAlternative& a, absl::Span<const Shape* const> operands,
          absl::Span<const Shape* const> results) {
  if (a.num_operands != static_cast<int>(operands.size()) ||
      a.values.size() != operands.size() + results.size()) {
    return false;
  }
  for (size_t i = 0; i < a.values.size(); ++i) {
    const Shape* s = ShapeAt(i, operands, results);
    const size_t rank = s->IsArray() ? s->rank() : 0;
    if (a.values[i].ellipsis ? rank < a.values[i].dims.size() : rank != a.values[i].dims.size()) {
      return false;
    }
  }
  return true;
}

// Sizes of the inferred factors for these shapes; 1 where the shapes do not determine them.
std::vector<std::pair<std::string, int64_t>> InferSizes(const RuleAlternative& a,
                                                        absl::Span<const Shape* const> operands,
                                                        absl::Span<const Shape* const> results) {
  absl::btree_map<std::string, int64_t> known;
  for (const auto& [name, size] : a.text.sizes) known[name] = size;
  for (bool compounds : {false, true}) {
    for (size_t i = 0; i < a.values.size(); ++i) {
      const Shape* s = ShapeAt(i, operands, results);
      const RuleAlternative::Value& value = a.values[i];
      const int first = (s->IsArray() ? s->rank() : 0) - static_cast<int>(value.dims.size());
      for (size_t d = 0; d < value.dims.size(); ++d) {
        const std::vector<std::string>& factors = value.dims[d];
        const int64_t size = s->dim(first + static_cast<int>(d));
        if (!compounds) {
          if (factors.size() == 1) known.emplace(factors[0], size);
          continue;
        }
        int64_t product = 1;
        const std::string* unknown = nullptr;
        int num_unknown = 0;
        for (const std::string& f : factors) {
          auto it = known.find(f);
          if (it != known.end()) {
            product *= it->second;
          } else {
            unknown = &f;
            ++num_unknown;
          }
        }
        if (num_unknown == 1 && product > 0) known[*unknown] = std::max<int64_t>(size / product, 1);
      }
    }
  }
  std::vector<std::pair<std::string, int64_t>> sizes = a.text.sizes;
  for (const std::string& name : a.inferred) {
    auto it = known.find(name);
    sizes.push_back({name, it == known.end() ? 1 : it->second});
  }
  return sizes;
}

absl::StatusOr<ShardingRule> InstantiateAlternative(const RuleAlternative& a,
                                                    absl::Span<const Shape* const> operands,
                                                    absl::Span<const Shape* const> results) {
  if (a.inferred.empty() || !Fits(a, operands, results)) {
    return InstantiateRule(*a.rule, operands, results);
  }
  RuleText text = a.text;
  text.sizes = InferSizes(a, operands, results);
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const RuleTemplate> rule, ParseRule(text));
  return InstantiateRule(*rule, operands, results);
}

// Open factors are an error for a rule alone; with callbacks the body handles them.
absl::StatusOr<ShardingRule> RuleOfCall(const TargetRule& target, const RuleAlternative& a,
                                        absl::Span<const Shape* const> operands,
                                        absl::Span<const Shape* const> results) {
  SHARDCALL_ASSIGN_OR_RETURN(ShardingRule rule, InstantiateAlternative(a, operands, results));
  if (target.level == RuleLevel::kRule) {
    SHARDCALL_RETURN_IF_ERROR(CheckOpenFactors(rule, results, target.target));
    KeepResultFactorsWhole(&rule);
  }
  return rule;
}

bool Equal(const RuleText& a, const RuleText& b) {
  return a.rule == b.rule && a.need_replication == b.need_replication &&
         a.permutation == b.permutation && a.blocked == b.blocked && a.reduction == b.reduction &&
         a.pad == b.pad && a.sizes == b.sizes;
}

// Functions cannot be compared, so callbacks are equal by their identities.
bool Equal(const PartitionerCallbacks& a, const PartitionerCallbacks& b) {
  return !a.identity.empty() && a.identity == b.identity && a.version == b.version &&
         a.can_side_effecting_have_replicated_sharding ==
             b.can_side_effecting_have_replicated_sharding &&
         a.propagate_reads_result_alone == b.propagate_reads_result_alone;
}

bool Equal(const TargetRule& a, const TargetRule& b) {
  if (a.level != b.level || a.batch_dims != b.batch_dims ||
      (a.level == RuleLevel::kCallbacks && !Equal(a.callbacks, b.callbacks)) ||
      a.num_given != b.num_given) {
    return false;
  }
  for (size_t i = 0; i < a.num_given; ++i) {
    if (a.alternatives[i].applies != b.alternatives[i].applies ||
        a.alternatives[i].types != b.alternatives[i].types ||
        !Equal(a.alternatives[i].text, b.alternatives[i].text)) {
      return false;
    }
  }
  return true;
}

std::string Describe(const TargetRule& r) {
  std::string out;
  switch (r.level) {
    case RuleLevel::kBatchDims:
      out = r.batch_dims == kBatchDimsOfCall ? "batch_dims of the call"
                                             : absl::StrCat("batch_dims=", r.batch_dims);
      break;
    case RuleLevel::kCallbacks:
      out = "callbacks without an identity";
      if (!r.callbacks.identity.empty()) {
        out = absl::StrCat("callbacks of identity {",
                           absl::StrJoin(r.callbacks.identity, ",",
                                         [](std::string* s, const void* p) {
                                           absl::StrAppend(
                                               s, "0x", absl::Hex(reinterpret_cast<uintptr_t>(p)));
                                         }),
                           "}");
      }
      absl::StrAppend(
          &out, ", version ", r.callbacks.version,
          r.callbacks.can_side_effecting_have_replicated_sharding ? ", replicated with side effects"
                                                                  : "",
          r.callbacks.propagate_reads_result_alone ? ", propagating from the result alone" : "");
      break;
    case RuleLevel::kRule: {
      std::vector<std::string> texts;
      for (const RuleAlternative& a : r.alternatives) {
        std::string text = absl::StrCat("\"", a.text.rule, "\"");
        if (!a.text.need_replication.empty()) {
          absl::StrAppend(&text, " need_replication={", absl::StrJoin(a.text.need_replication, ","),
                          "}");
        }
        if (!a.text.permutation.empty()) {
          absl::StrAppend(&text, " permutation={", absl::StrJoin(a.text.permutation, ","), "}");
        }
        for (const auto& [factor, op] : a.text.reduction) {
          absl::StrAppend(&text, " reduction={", factor, ":", PartialOpName(op), "}");
        }
        if (!a.text.blocked.empty()) {
          absl::StrAppend(&text, " blocked={", absl::StrJoin(a.text.blocked, ","), "}");
        }
        for (const auto& [factor, value] : a.text.pad) {
          absl::StrAppend(&text, " pad={", factor, ":", value, "}");
        }
        for (const auto& [factor, size] : a.text.sizes) {
          absl::StrAppend(&text, " sizes={", factor, ":", size, "}");
        }
        if (!a.types.empty()) absl::StrAppend(&text, " types \"", a.types, "\"");
        texts.push_back(std::move(text));
      }
      out = absl::StrJoin(texts, " or ");
      break;
    }
  }
  return absl::StrCat(out, " (", r.source, ")");
}

}  // namespace

absl::string_view RuleLevelName(RuleLevel level) {
  switch (level) {
    case RuleLevel::kBatchDims: return "batch_dims";
    case RuleLevel::kRule: return "rule";
    case RuleLevel::kCallbacks: return "callbacks";
  }
  return "rule";
}

absl::StatusOr<ShardingRule> TargetRule::Instantiate(absl::string_view call_backend_config,
                                                     absl::Span<const Shape* const> operands,
                                                     absl::Span<const Shape* const> results) const {
  if (level == RuleLevel::kBatchDims) return BatchRule(batch_dims, operands, results);
  SHARDCALL_CHECK(!alternatives.empty());
  const RuleAlternative* last = nullptr;
  for (const RuleAlternative& a : alternatives) {
    if (a.applies != nullptr && !a.applies(call_backend_config)) continue;
    last = &a;
    if (Fits(a, operands, results)) return RuleOfCall(*this, a, operands, results);
  }
  if (last == nullptr) {
    return ToStatus(
        {.code = "E111",
         .message = absl::StrCat("no rule of target \"", target, "\" is for these attributes"),
         .found = std::string(call_backend_config),
         .fix = "Register a rule for this backend_config"});
  }
  if (alternatives.size() == 1) return RuleOfCall(*this, *last, operands, results);
  std::vector<std::string> have;
  for (const RuleAlternative& a : alternatives) have.push_back(a.text.rule);
  auto shapes = [](absl::Span<const Shape* const> list) {
    return absl::StrJoin(list, ", ", [](std::string* out, const Shape* s) {
      absl::StrAppend(out, s->ToString(/*with_layout=*/false));
    });
  };
  return ToStatus({.code = "E111",
                   .message = absl::StrCat("no rule of target \"", target, "\" fits this call"),
                   .expected = absl::StrJoin(have, " or "),
                   .found = absl::StrCat("(", shapes(operands), ") -> (", shapes(results), ")"),
                   .fix = "Register a rule with as many operands, results and dimensions"});
}

absl::Status TargetRegistry::Add(TargetRule rule) {
  if (rule.target.empty()) {
    return ToStatus({.code = "E105",
                     .message = "a target needs a name",
                     .fix = "Register the rule under the custom_call_target of the call"});
  }
  auto key = std::make_pair(rule.target, rule.backend_config);
  auto [it, inserted] = rules_.try_emplace(std::move(key), rule);
  if (inserted || Equal(it->second, rule)) return absl::OkStatus();
  const bool callbacks =
      rule.level == RuleLevel::kCallbacks && it->second.level == RuleLevel::kCallbacks;
  return ToStatus(
      {.code = "E105",
       .message = absl::StrCat("target \"", rule.target, "\" is registered twice"),
       .expected = Describe(it->second),
       .found = Describe(rule),
       .fix = absl::StrCat("Keep one of the two, or tell them apart by backend_config",
                           callbacks ? "; functions have no equality, so give equal ones an equal "
                                       "PartitionerCallbacks::identity"
                                     : "")},
      absl::StatusCode::kAlreadyExists);
}

absl::Status TargetRegistry::AddAlternatives(std::vector<RuleAlternative> alternatives,
                                             TargetRule rule) {
  if (alternatives.empty()) {
    return ToStatus(
        {.code = "E105",
         .message = absl::StrCat("target \"", rule.target, "\" is registered with no rule"),
         .fix = "Give at least one rule string"});
  }
  for (RuleAlternative& a : alternatives) {
    RuleText text = a.text;
    for (const std::string& name : a.inferred) text.sizes.push_back({name, 1});
    auto parsed = ParseRule(text);
    if (!parsed.ok()) {
      return absl::Status(parsed.status().code(),
                          absl::StrCat(parsed.status().message(), " (rule of target \"",
                                       rule.target, "\", ", rule.source, ")"));
    }
    a.rule = *std::move(parsed);
    ReadValues(&a);
    SHARDCALL_RETURN_IF_ERROR(CheckTypes(a, rule.target));
    if (rule.level == RuleLevel::kRule) {
      SHARDCALL_RETURN_IF_ERROR(CheckOpenFactors(a, rule.target, rule.source));
    }
  }
  rule.text = alternatives[0].text;
  rule.rule = alternatives[0].rule;
  rule.num_given = alternatives.size();
  rule.alternatives = std::move(alternatives);
  return Add(std::move(rule));
}

absl::Status TargetRegistry::RegisterRules(std::string target,
                                           std::vector<RuleAlternative> alternatives,
                                           std::string backend_config, std::string source) {
  TargetRule rule;
  rule.target = std::move(target);
  rule.backend_config = std::move(backend_config);
  rule.level = RuleLevel::kRule;
  rule.source = std::move(source);
  return AddAlternatives(std::move(alternatives), std::move(rule));
}

absl::Status TargetRegistry::RegisterCallbacksOfRule(std::string target,
                                                     std::vector<RuleAlternative> alternatives,
                                                     PartitionerCallbacks callbacks,
                                                     std::string source) {
  TargetRule rule;
  rule.target = std::move(target);
  rule.level = RuleLevel::kCallbacks;
  rule.callbacks = std::move(callbacks);
  rule.source = std::move(source);
  return AddAlternatives(std::move(alternatives), std::move(rule));
}

absl::Status TargetRegistry::RegisterRule(std::string target, RuleText text,
                                          std::string backend_config, std::string source) {
  std::vector<RuleAlternative> one(1);
  one[0].text = std::move(text);
  return RegisterRules(std::move(target), std::move(one), std::move(backend_config),
                       std::move(source));
}

absl::Status TargetRegistry::RegisterBatchPartitionable(std::string target, int batch_dims,
                                                        std::string backend_config,
                                                        std::string source) {
  if (batch_dims < 0 && batch_dims != kBatchDimsOfCall) {
    return ToStatus({.code = "E105",
                     .message = absl::StrCat("target \"", target, "\" has negative batch_dims"),
                     .expected = "0 or more",
                     .found = absl::StrCat(batch_dims),
                     .fix = "Give the number of leading independent dimensions"});
  }
  TargetRule rule;
  rule.target = std::move(target);
  rule.backend_config = std::move(backend_config);
  rule.level = RuleLevel::kBatchDims;
  rule.batch_dims = batch_dims;
  rule.source = std::move(source);
  return Add(std::move(rule));
}

absl::Status TargetRegistry::RegisterCustomCallPartitioner(std::string target,
                                                           PartitionerCallbacks callbacks,
                                                           std::string backend_config,
                                                           std::string source) {
  TargetRule rule;
  rule.target = std::move(target);
  rule.backend_config = std::move(backend_config);
  rule.level = RuleLevel::kCallbacks;
  rule.callbacks = std::move(callbacks);
  rule.source = std::move(source);
  return Add(std::move(rule));
}

absl::Status TargetRegistry::RegisterReference(std::string target, std::string hlo) {
  std::shared_ptr<const std::string>& known = facts_[target].reference;
  if (known != nullptr && *known != hlo) {
    return ToStatus({.code = "E105",
                     .message = absl::StrCat("target \"", target, "\" has another reference"),
                     .expected = *known,
                     .found = hlo,
                     .fix = "Register one reference"},
                    absl::StatusCode::kAlreadyExists);
  }
  known = std::make_shared<const std::string>(std::move(hlo));
  return absl::OkStatus();
}

const TargetRule* TargetRegistry::Find(absl::string_view target,
                                       absl::string_view backend_config) const {
  auto it = rules_.find(std::make_pair(std::string(target), std::string(backend_config)));
  if (it == rules_.end() && !backend_config.empty()) {
    it = rules_.find(std::make_pair(std::string(target), std::string()));
  }
  return it == rules_.end() ? nullptr : &it->second;
}

void TargetRegistry::Restore(const TargetRegistry& before) {
  std::erase_if(rules_, [&](const auto& r) { return before.rules_.count(r.first) == 0; });
  for (auto& [key, rule] : rules_) {
    // The only change to an existing rule is that batching adds alternatives.
    const TargetRule& then = before.rules_.at(key);
    if (rule.alternatives.size() != then.alternatives.size()) rule = then;
  }
  std::erase_if(facts_, [&](const auto& f) { return before.facts_.count(f.first) == 0; });
  for (auto& [target, facts] : facts_) facts = before.facts_.at(target);
}

std::vector<const TargetRule*> TargetRegistry::List() const {
  std::vector<const TargetRule*> out;
  for (const auto& [key, rule] : rules_) out.push_back(&rule);
  return out;
}

std::vector<std::string> TargetRegistry::NamesLike(absl::string_view target) const {
  std::vector<absl::string_view> names;
  for (const auto& [key, rule] : rules_) {
    if (names.empty() || names.back() != rule.target) names.push_back(rule.target);
  }
  return NearNames(target, names);
}

}  // namespace shardcall
