// SPDX-License-Identifier: Apache-2.0
// Parses rule strings, `b s h, h -> b s h`, and the special factors that accompany them.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/near_names.h"
#include "shardcall/sharding/base/text_cursor.h"
#include "shardcall/sharding/base/utf8.h"
#include "shardcall/sharding/rule/rule_sizes.h"
#include "shardcall/sharding/rule/rule_template.h"

namespace shardcall {
namespace {

constexpr absl::string_view kCode = "E110";

class Parser {
 public:
  explicit Parser(const RuleText& text) : text_(text), in_(text_.rule, "rule", kCode) {}

  absl::StatusOr<std::shared_ptr<const RuleTemplate>> Parse() {
    out_->rule = text_.rule;
    const size_t arrow = text_.rule.find("->");
    if (arrow == std::string::npos) {
      return in_.ErrorAt(text_.rule.size(), "a rule needs '->' between operands and results",
                         "'->'", "the end", "write the rule as \"operands -> results\"");
    }
    SHARDCALL_RETURN_IF_ERROR(Side(arrow, &out_->operands));
    in_.set_position(arrow + 2);
    SHARDCALL_RETURN_IF_ERROR(Side(text_.rule.size(), &out_->results));
    SHARDCALL_RETURN_IF_ERROR(Specials());
    SHARDCALL_RETURN_IF_ERROR(Sizes());
    return std::shared_ptr<const RuleTemplate>(std::move(out_));
  }

 private:
  absl::Status Side(size_t end, std::vector<RuleTemplate::Value>* out) {
    out->emplace_back();
    used_.clear();
    while (true) {
      in_.SkipSpace();
      const size_t at = in_.position();
      if (at >= end) return absl::OkStatus();
      const char c = text_.rule[at];
      RuleTemplate::Value& value = out->back();
      if (c == ',') {
        in_.set_position(at + 1);
        out->emplace_back();
        used_.clear();
      } else if (c == '.') {
        if (value.ellipsis >= 0 || !value.dims.empty()) {
          return in_.ErrorAt(at, "an ellipsis must be the first thing of its value", "", "",
                             "move '...' to the front; it stands for the leading dimensions");
        }
        SHARDCALL_RETURN_IF_ERROR(Ellipsis(at, &value));
      } else if (c == '(') {
        in_.set_position(at + 1);
        SHARDCALL_RETURN_IF_ERROR(Compound(at, end, &value));
      } else {
        SHARDCALL_ASSIGN_OR_RETURN(int factor, FactorName(end));
        out_->factors[factor].whole_dim = true;
        value.dims.push_back({factor});
      }
    }
  }

  absl::Status Ellipsis(size_t at, RuleTemplate::Value* value) {
    if (text_.rule.compare(at, 3, "...") != 0) {
      return in_.ErrorAt(at, "malformed rule", "'...'", "'.'", "write an ellipsis as '...'");
    }
    size_t end = at + 3;
    while (end < text_.rule.size() && absl::ascii_isdigit(text_.rule[end])) ++end;
    const std::string name = text_.rule.substr(at, end - at);
    auto found = std::find(out_->ellipses.begin(), out_->ellipses.end(), name);
    if (found == out_->ellipses.end() && !out_->results.empty()) {
      return in_.ErrorAt(at, absl::StrCat("'", name, "' stands in no operand"),
                         "an ellipsis of an operand", absl::StrCat("'", name, "'"),
                         "write the ellipsis of the operand whose dimensions these are");
    }
    value->ellipsis = static_cast<int>(found - out_->ellipses.begin());
    if (found == out_->ellipses.end()) out_->ellipses.push_back(name);
    in_.set_position(end);
    return absl::OkStatus();
  }

  absl::Status Compound(size_t open, size_t end, RuleTemplate::Value* value) {
    std::vector<int> factors;
    while (true) {
      in_.SkipSpace();
      const size_t at = in_.position();
      const char c = at < end ? text_.rule[at] : ',';
      if (c == ')') break;
      if (c == ',') {
        return in_.ErrorAt(open, "a bracket of the rule is not closed", "')'", "",
                           "close the compound dimension with ')'");
      }
      if (c == '.') {
        return in_.ErrorAt(at, "an ellipsis cannot stand inside a compound dimension", "", "",
                           "move '...' to the front of its value");
      }
      if (c == '(') {
        return in_.ErrorAt(at, "compound dimensions do not nest", "a factor or ')'", "'('");
      }
      SHARDCALL_ASSIGN_OR_RETURN(int factor, FactorName(end));
      factors.push_back(factor);
    }
    if (factors.size() < 2) {
      return in_.ErrorAt(open, "a compound dimension needs at least two factors", "",
                         absl::StrCat(factors.size()), "drop the brackets");
    }
    in_.set_position(in_.position() + 1);
    value->dims.push_back(std::move(factors));
    return absl::OkStatus();
  }

  absl::StatusOr<int> FactorName(size_t end) {
    const std::string& rule = text_.rule;
    const size_t at = in_.position();
    if (rule[at] == ')') {
      return in_.ErrorAt(at, "a bracket of the rule is not open", "", "')'",
                         "open the compound dimension with '('");
    }
    if (!absl::ascii_isalpha(rule[at])) {
      const bool later = absl::ascii_isdigit(rule[at]) || rule[at] == '_';
      return in_.ErrorAt(
          at, later ? "a factor must start with a letter" : "a rule has an unknown character",
          "factors, '...', '(', ')', ',' and '->'",
          absl::StrCat("'", FirstCharacter(absl::string_view(rule).substr(at)), "'"),
          "name factors by letters, digits and '_'");
    }
    size_t stop = at;
    while (stop < end && (absl::ascii_isalnum(rule[stop]) || rule[stop] == '_')) ++stop;
    const std::string name = rule.substr(at, stop - at);
    in_.set_position(stop);
    if (!used_.insert(name).second) {
      return in_.ErrorAt(at, absl::StrCat("factor ", name, " stands twice in one value"), "", "",
                         "use each factor once per operand or result");
    }
    const int known = Find(name);
    if (known >= 0) return known;
    RuleTemplate::NamedFactor& factor = out_->factors.emplace_back();
    factor.factor.name = name;
    factor.factor.size = -1;
    return static_cast<int>(out_->factors.size() - 1);
  }

  int Find(const std::string& name) const {
    for (size_t i = 0; i < out_->factors.size(); ++i) {
      if (out_->factors[i].factor.name == name) return static_cast<int>(i);
    }
    return -1;
  }

  // An error in the special factors shows the rule string without a caret.
  absl::Status Error(std::string message, std::string fix) const {
    return ToStatus({.code = std::string(kCode),
                     .message = std::move(message),
                     .fix = std::move(fix),
                     .excerpt = absl::StrCat("  ", text_.rule)});
  }

  absl::StatusOr<RuleTemplate::NamedFactor*> Used(const std::string& name, absl::string_view set) {
    const int i = Find(name);
    if (i < 0) {
      std::vector<absl::string_view> names;
      for (const RuleTemplate::NamedFactor& f : out_->factors) names.push_back(f.factor.name);
      const std::vector<std::string> near = NearNames(name, names, 1);
      return Error(absl::StrCat(set, " names factor ", name, ", which the rule does not use"),
                   near.empty() ? absl::StrCat("use ", name, " in the rule, or drop it from ", set)
                                : absl::StrCat("write ", near[0], " in ", set));
    }
    return &out_->factors[i];
  }

  absl::Status SetKind(const std::string& name, FactorKind kind, absl::string_view set) {
    SHARDCALL_ASSIGN_OR_RETURN(RuleTemplate::NamedFactor * f, Used(name, set));
    if (f->factor.kind == kind) {
      return Error(absl::StrCat(set, " names factor ", name, " twice"), "name it once");
    }
    if (f->factor.kind != FactorKind::kPassThrough) {
      return Error(absl::StrCat("factor ", name, " is in two sets of special factors"),
                   "a factor is one of reduction, need_replication and permutation");
    }
    f->factor.kind = kind;
    return absl::OkStatus();
  }

  absl::Status Specials() {
    for (const auto& [name, op] : text_.reduction) {
      SHARDCALL_RETURN_IF_ERROR(SetKind(name, FactorKind::kReduction, "reduction"));
      const int index = Find(name);
      out_->factors[index].factor.reduction = op;
      // A result that has the factor is sharded by it; one that lacks it is partial.
      const bool summed = std::any_of(
          out_->results.begin(), out_->results.end(), [index](const RuleTemplate::Value& v) {
            return std::none_of(v.dims.begin(), v.dims.end(), [index](const std::vector<int>& d) {
              return std::find(d.begin(), d.end(), index) != d.end();
            });
          });
      if (!summed && !out_->results.empty()) {
        return Error(absl::StrCat("reduction factor ", name, " stands in every result"),
                     "drop it from a result, or from reduction");
      }
    }
    for (const std::string& name : text_.need_replication) {
      SHARDCALL_RETURN_IF_ERROR(SetKind(name, FactorKind::kNeedReplication, "need_replication"));
    }
    for (const std::string& name : text_.permutation) {
      SHARDCALL_RETURN_IF_ERROR(SetKind(name, FactorKind::kPermutation, "permutation"));
    }
    for (const std::string& name : text_.blocked) {
      SHARDCALL_ASSIGN_OR_RETURN(RuleTemplate::NamedFactor * f, Used(name, "blocked"));
      if (f->factor.blocked) {
        return Error(absl::StrCat("blocked names factor ", name, " twice"), "name it once");
      }
      f->factor.blocked = true;
    }
    for (const auto& [name, value] : text_.pad) {
      SHARDCALL_ASSIGN_OR_RETURN(RuleTemplate::NamedFactor * f, Used(name, "pad"));
      if (f->factor.has_pad) {
        return Error(absl::StrCat("pad names factor ", name, " twice"), "name it once");
      }
      f->factor.has_pad = true;
      f->factor.pad = value;
    }
    return absl::OkStatus();
  }

  absl::Status Sizes() {
    for (const auto& [name, size] : text_.sizes) {
      SHARDCALL_ASSIGN_OR_RETURN(RuleTemplate::NamedFactor * f, Used(name, "sizes"));
      if (f->whole_dim) {
        return Error(absl::StrCat("factor ", name,
                                  " is a whole dimension, so its size comes from the shapes"),
                     absl::StrCat("drop the size of ", name));
      }
      if (size < 0 || f->factor.size >= 0) {
        return Error(absl::StrCat("factor ", name, " needs one size of at least 0"),
                     "give each compound factor one size");
      }
      f->factor.size = size;
    }
    return CheckSizesFollow();
  }

  // A factor has a size if the text gives it, if it is a whole dimension somewhere, or if it is the
  // only one of some compound dimension that has none.
  absl::Status CheckSizesFollow() const {
    std::vector<bool> known;
    for (const RuleTemplate::NamedFactor& f : out_->factors) {
      known.push_back(f.whole_dim || f.factor.size >= 0);
    }
    std::vector<absl::Span<const int>> dims;
    for (const auto* side : {&out_->operands, &out_->results}) {
      for (const RuleTemplate::Value& value : *side) {
        dims.insert(dims.end(), value.dims.begin(), value.dims.end());
      }
    }
    AddSizesThatFollow(dims, &known);
    const auto unknown = std::find(known.begin(), known.end(), false);
    if (unknown == known.end()) return absl::OkStatus();
    const std::string& name = out_->factors[unknown - known.begin()].factor.name;
    return Error(absl::StrCat("factor ", name,
                              " stands only in compound dimensions and has no size: none of them "
                              "has a size for each of its other factors"),
                 absl::StrCat("give sizes={", name, ": N}, or the sizes of the factors beside it"));
  }

  const RuleText& text_;
  TextCursor in_;
  std::set<std::string> used_;  // within one value
  std::shared_ptr<RuleTemplate> out_ = std::make_shared<RuleTemplate>();
};

}  // namespace

absl::StatusOr<std::shared_ptr<const RuleTemplate>> ParseRule(const RuleText& text) {
  return Parser(text).Parse();
}

}  // namespace shardcall
