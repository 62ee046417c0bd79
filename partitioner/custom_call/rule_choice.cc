// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/rule_choice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/custom_call/type_signature.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// Numbers of dimensions that ellipses stand for, which are not known, and what is known of their
// differences: a union-find whose edges say how much larger a number is than its parent.
class EllipsisRanks {
 public:
  // The number for the ellipsis `group` of signature `side`.
  int Of(int side, const std::string& group) {
    const auto [it, inserted] = index_.try_emplace({side, group}, static_cast<int>(parent_.size()));
    if (inserted) {
      parent_.push_back(it->second);
      above_.push_back(0);
    }
    return it->second;
  }
  // A number that is `value`: that many more than one that is 0.
  int Zero() { return Of(-1, ""); }

  // Says that x + dx equals y + dy; false where that contradicts what was said before.
  bool Equate(int x, int dx, int y, int dy) {
    const auto [root_x, above_x] = Root(x);
    const auto [root_y, above_y] = Root(y);
    const int difference = above_y + dy - above_x - dx;  // of root_x to root_y
    if (root_x == root_y) return difference == 0;
    parent_[root_x] = root_y;
    above_[root_x] = difference;
    return true;
  }

  // Whether some numbers of 0 or more are as was said.
  bool Possible() {
    const auto [zero, above] = Root(Zero());
    for (size_t x = 0; x < parent_.size(); ++x) {
      const auto [root, own] = Root(static_cast<int>(x));
      if (root == zero && own < above) return false;
    }
    return true;
  }

 private:
  std::pair<int, int> Root(int x) const {
    int above = 0;
    for (; parent_[x] != x; x = parent_[x]) above += above_[x];
    return {x, above};
  }

  std::map<std::pair<int, std::string>, int> index_;
  std::vector<int> parent_, above_;
};

bool SameCounts(const RuleAlternative& a, const RuleAlternative& b) {
  return a.num_operands == b.num_operands && a.values.size() == b.values.size();
}

bool RanksOverlap(const RuleAlternative& a, const RuleAlternative& b) {
  EllipsisRanks ranks;
  const auto number = [&](int side, const RuleAlternative::Value& v) {
    return v.ellipsis ? ranks.Of(side, v.group) : ranks.Zero();
  };
  for (size_t k = 0; k < a.values.size(); ++k) {
    const RuleAlternative::Value &x = a.values[k], &y = b.values[k];
    if (!ranks.Equate(number(0, x), static_cast<int>(x.dims.size()), number(1, y),
                      static_cast<int>(y.dims.size()))) {
      return false;
    }
  }
  return ranks.Possible();
}

// Whether all ranks that `a` allows are such that `b` allows.
bool RanksWithin(const RuleAlternative& a, const RuleAlternative& b) {
  // By ellipsis of b: the ellipsis of a that it covers ("-" for none), and how many more
  // dimensions it stands for.
  std::map<std::string, std::pair<std::string, int>> covered;
  for (size_t k = 0; k < a.values.size(); ++k) {
    const RuleAlternative::Value &x = a.values[k], &y = b.values[k];
    const int more = static_cast<int>(x.dims.size()) - static_cast<int>(y.dims.size());
    if (!y.ellipsis) {
      if (x.ellipsis || more != 0) return false;
      continue;
    }
    if (more < 0) return false;
    const auto what = std::make_pair(x.ellipsis ? x.group : "-", more);
    if (covered.try_emplace(y.group, what).first->second != what) return false;
  }
  return true;
}

bool TypesOverlap(const RuleAlternative& a, const RuleAlternative& b) {
  const auto x = TypesOf(a), y = TypesOf(b);
  if (!x.ok() || !y.ok() || (*x)->signatures.empty() || (*y)->signatures.empty()) return true;
  return absl::c_any_of((*x)->signatures, [&](const TypeSignature& s) {
    return absl::c_any_of((*y)->signatures,
                          [&](const TypeSignature& t) { return TypeSignature::Overlap(s, t); });
  });
}

bool TypesWithin(const RuleAlternative& a, const RuleAlternative& b) {
  const auto x = TypesOf(a), y = TypesOf(b);
  if (!x.ok() || !y.ok() || (*y)->signatures.empty()) return true;
  return !(*x)->signatures.empty() && absl::c_all_of((*x)->signatures, [&](const TypeSignature& s) {
    return absl::c_any_of((*y)->signatures, [&](const TypeSignature& t) { return s.IsWithin(t); });
  });
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ParsedTypes>> TypesOf(const RuleAlternative& a) {
  if (a.parsed_types != nullptr && a.parsed_types->text == a.types) return a.parsed_types;
  ParsedTypes out = {.text = a.types, .signatures = {}};
  if (!a.types.empty()) {
    SHARDCALL_ASSIGN_OR_RETURN(out.signatures, TypeSignature::ParseAll(a.types));
  }
  return std::make_shared<const ParsedTypes>(std::move(out));
}

bool Overlap(const RuleAlternative& a, const RuleAlternative& b) {
  const bool apart = a.applies != nullptr && b.applies != nullptr && a.applies != b.applies;
  return !apart && SameCounts(a, b) && RanksOverlap(a, b) && TypesOverlap(a, b) &&
         Compatible(a.when, b.when);
}

bool IsWithin(const RuleAlternative& a, const RuleAlternative& b) {
  return (b.applies == nullptr || a.applies == b.applies) && SameCounts(a, b) &&
         RanksWithin(a, b) && TypesWithin(a, b) && Implies(a.when, b.when);
}

bool IsNarrowerInOperands(const RuleAlternative& a, const RuleAlternative& b) {
  const auto operands_of = [](RuleAlternative rule) {
    rule.values.resize(rule.num_operands);
    std::vector<std::string> types;
    for (const absl::string_view one : absl::StrSplit(rule.types, '|', absl::SkipWhitespace())) {
      types.push_back(absl::StrCat(one.substr(0, one.find("->")), "->"));
    }
    rule.types = absl::StrJoin(types, "|");
    return rule;
  };
  const RuleAlternative x = operands_of(a), y = operands_of(b);
  return IsWithin(x, y) && !IsWithin(y, x);
}

absl::Status OrderSignatures(absl::string_view target, absl::string_view source,
                             std::vector<RuleAlternative>* alternatives) {
  std::vector<RuleAlternative> ordered;
  for (RuleAlternative& a : *alternatives) {
    size_t at = ordered.size();
    for (size_t k = 0; k < ordered.size(); ++k) {
      const RuleAlternative& b = ordered[k];
      if (!Overlap(a, b)) continue;
      const bool narrower = IsWithin(a, b), wider = IsWithin(b, a);
      if (narrower == wider) {
        return ToStatus(
            {.code = "E105",
             .message = absl::StrCat("two rules of target \"", target, "\" (", source,
                                     narrower ? ") are for the same calls"
                                              : ") fit some calls "
                                                "equally well"),
             .expected = "rules of which at most one fits a call, or one that is narrower",
             .found = absl::StrCat(DescribeSignature(b), " and ", DescribeSignature(a)),
             .fix = "Leave one of them out, or tell them apart by `types` or by the attributes "
                    "that their calls have (`when`)"});
      }
      if (narrower) at = std::min(at, k);
    }
    ordered.insert(ordered.begin() + static_cast<std::ptrdiff_t>(at), std::move(a));
  }
  *alternatives = std::move(ordered);
  return absl::OkStatus();
}

void PutNarrowerFirst(std::vector<RuleAlternative>* alternatives) {
  std::vector<RuleAlternative> ordered;
  for (RuleAlternative& a : *alternatives) {
    const auto at = std::find_if(ordered.begin(), ordered.end(), [&](const RuleAlternative& b) {
      return IsWithin(a, b) && !IsWithin(b, a);
    });
    ordered.insert(at, std::move(a));
  }
  *alternatives = std::move(ordered);
}

std::string DescribeSignature(const RuleAlternative& a) {
  std::string text = absl::StrCat("\"", a.text.rule, "\"");
  const auto set = [&](absl::string_view name, const std::vector<std::string>& factors) {
    if (factors.empty()) return;
    absl::StrAppend(&text, " ", name, "={", absl::StrJoin(factors, ","), "}");
  };
  set("need_replication", a.text.need_replication);
  set("permutation", a.text.permutation);
  for (const auto& [factor, op] : a.text.reduction) {
    absl::StrAppend(&text, " reduction={", factor, ":", PartialOpName(op), "}");
  }
  set("blocked", a.text.blocked);
  for (const auto& [factor, value] : a.text.pad) {
    absl::StrAppend(&text, " pad={", factor, ":", value, "}");
  }
  for (const auto& [factor, size] : a.text.sizes) {
    absl::StrAppend(&text, " sizes={", factor, ":", size, "}");
  }
  if (!a.types.empty()) absl::StrAppend(&text, " types \"", a.types, "\"");
  for (const auto& [name, formula] : a.attributes) {
    absl::StrAppend(&text, " attributes={", name, ": ", formula, "}");
  }
  if (!a.when.empty()) absl::StrAppend(&text, " when ", AttributeConditionsText(a.when));
  return text;
}

}  // namespace internal
}  // namespace shardcall
