// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/derive/rule_union.h"

#include <map>
#include <set>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/custom_call/rule_choice.h"
#include "shardcall/partitioner/custom_call/rule_values.h"
#include "shardcall/partitioner/custom_call/size_expression.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

using Value = RuleAlternative::Value;
using Names = std::set<std::string>;

// Which factors of two rules stand for the same dimensions of calls that fit both. Dimensions of an
// ellipsis have names that no factor has.
class Correspondence {
 public:
  // False if an ellipsis of `a` stands where `b` has named dimensions.
  bool Read(const RuleAlternative& a, const RuleAlternative& b) {
    for (size_t k = 0; k < a.values.size(); ++k) {
      const Value &x = a.values[k], &y = b.values[k];
      if (x.ellipsis && (!y.ellipsis || x.dims.size() < y.dims.size())) return false;
      for (size_t at = 0; at < x.dims.size(); ++at) {  // from the last dimension
        Pair(a, x.dims[x.dims.size() - 1 - at], b, DimOf(y, at));
      }
      if (x.ellipsis) Pair({Leading(x, 0)}, {Leading(y, x.dims.size() - y.dims.size())});
    }
    return true;
  }

  const Names& InB(const std::string& of_a) const { return in_b_.at(of_a); }
  // The factors of `a` that are not one factor of `b` each, wherever they stand, and those of which
  // `whole` holds there.
  template <typename Whole>
  Names WholeInA(const Whole& whole) const {
    Names out;
    for (const auto& [factor, partners] : in_b_) {
      const std::string& partner = *partners.begin();
      if (partners.size() > 1 || in_a_.at(partner).size() > 1 || whole(partner)) out.insert(factor);
    }
    return out;
  }

 private:
  // The name for the dimensions of an ellipsis but the last `without`.
  static std::string Leading(const Value& v, size_t without) {
    return absl::StrCat("...", v.group, "-", without);
  }
  static std::vector<std::string> DimOf(const Value& v, size_t at) {
    if (at < v.dims.size()) return v.dims[v.dims.size() - 1 - at];
    return {absl::StrCat("...", v.group, "#", at - v.dims.size())};
  }
  static int64_t SizeOf(const RuleAlternative& a, const std::string& factor) {
    for (const auto& [name, size] : a.text.sizes) {
      if (name == factor) return size;
    }
    return 0;  // not declared
  }

  // The factors of one dimension: each is its like in the other rule, or, where they divide the
  // dimension in another way, each is all of those there.
  void Pair(const RuleAlternative& a, const std::vector<std::string>& x, const RuleAlternative& b,
            const std::vector<std::string>& y) {
    bool alike = x.size() == y.size();
    for (size_t k = 0; alike && x.size() > 1 && k < x.size(); ++k) {
      alike = SizeOf(a, x[k]) == SizeOf(b, y[k]);
    }
    if (!alike) return Pair(x, y);
    for (size_t k = 0; k < x.size(); ++k) Pair({x[k]}, {y[k]});
  }
  void Pair(const std::vector<std::string>& x, const std::vector<std::string>& y) {
    for (const std::string& of_a : x) {
      in_b_[of_a].insert(y.begin(), y.end());
      for (const std::string& of_b : y) in_a_[of_b].insert(of_a);
    }
  }

  std::map<std::string, Names> in_b_, in_a_;
};

// The factors that its attributes follow from.
Names FactorsOfAttributes(const RuleAlternative& a) {
  Names names;
  for (const auto& [name, formula] : a.attributes) {
    const absl::StatusOr<SizeExpression> e = SizeExpression::Parse(formula);
    SHARDCALL_CHECK(e.ok());  // checked when the rule was registered
    names.insert(e->factors().begin(), e->factors().end());
  }
  return names;
}

// Drops the padding values that `other` does not have for the same factors.
void KeepPadsOf(const RuleAlternative& other, const Correspondence& same, RuleAlternative* rule) {
  std::erase_if(rule->text.pad, [&](const auto& pad) {
    return absl::c_none_of(other.text.pad, [&](const auto& p) {
      return same.InB(pad.first).count(p.first) > 0 && p.second == pad.second;
    });
  });
}

// Restricts `rule` so that calls which fit `other` too are partitioned as it allows.
absl::Status Obey(const RuleAlternative& other, absl::string_view target, RuleAlternative* rule) {
  const auto cannot = [&] {
    return ToStatus(
        {.code = "E116",
         .message = absl::StrCat("the VJP of \"", target,
                                 "\" does not show which of two rules a call had"),
         .expected = "rules that give the VJP's calls the same dimensions",
         .found = absl::StrCat(DescribeSignature(*rule), " and ", DescribeSignature(other)),
         .fix = "Register a rule for the target of the VJP, or let the VJP take the "
                "operand or the result that tells the rules apart"});
  };
  Correspondence same;
  if (!same.Read(*rule, other)) return cannot();
  const Names own = FactorsOfAttributes(*rule), others = FactorsOfAttributes(other);
  const bool agree =
      rule->attributes == other.attributes &&
      absl::c_all_of(own, [&](const std::string& f) { return same.InB(f) == Names{f}; });
  Names whole = same.WholeInA([&](const std::string& f) {
    return IsWhole(other.text, f) || (!agree && others.count(f) > 0);
  });
  if (!agree) {
    whole.insert(own.begin(), own.end());
    rule->attributes.clear();
  }
  KeepPadsOf(other, same, rule);
  for (const std::string& f : whole) {
    if (f[0] == '.') return cannot();
    std::erase_if(rule->text.reduction, [&](const auto& r) { return r.first == f; });
    std::erase_if(rule->text.pad, [&](const auto& p) { return p.first == f; });
    if (!IsWhole(rule->text, f)) rule->text.need_replication.push_back(f);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<RuleAlternative>> RulesThatObeyAll(absl::string_view target,
                                                              std::vector<DerivedRule> derived) {
  std::vector<RuleAlternative> out;
  for (const DerivedRule& a : derived) {
    RuleAlternative rule = a.rule;
    bool known = false;  // a rule before it is for the same calls, and obeys this one
    for (const DerivedRule& b : derived) {
      if (a.from == b.from || (a.shows_call && b.shows_call) || !Overlap(a.rule, b.rule)) continue;
      const bool narrower = IsWithin(a.rule, b.rule), wider = IsWithin(b.rule, a.rule);
      if (wider && !narrower) continue;  // calls that fit both have the narrower rule
      known = known || (wider && &b < &a);
      SHARDCALL_RETURN_IF_ERROR(Obey(b.rule, target, &rule));
    }
    if (!known) out.push_back(std::move(rule));
  }
  PutNarrowerFirst(&out);
  return out;
}

}  // namespace internal
}  // namespace shardcall
