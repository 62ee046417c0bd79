// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/rule/rule.h"
#include "shardcall/sharding/rule/rule_sizes.h"
#include "shardcall/sharding/rule/sdy_text.h"

namespace shardcall {
namespace {

// The factors in the order of their first use; unused ones are left out.
std::vector<int> FirstUse(const ShardingRule& rule) {
  std::vector<int> order;
  std::vector<bool> seen(rule.factors.size(), false);
  for (int t = 0; t < rule.num_tensors(); ++t) {
    for (const FactorList& dim : rule.tensor(t).dims) {
      for (int f : dim) {
        if (!seen[f]) order.push_back(f);
        seen[f] = true;
      }
    }
  }
  return order;
}

// ` key={a, b}` of the factors that `has` holds for; nothing if there are none.
template <typename Has, typename Text>
void AppendSet(const std::vector<int>& order, absl::string_view key, const Has& has,
               const Text& text, std::string* out) {
  bool first = true;
  for (int f : order) {
    if (!has(f)) continue;
    absl::StrAppend(out, first ? absl::StrCat(" ", key, "={") : ", ", text(f));
    first = false;
  }
  if (!first) *out += "}";
}

// By factor: whether it is the only one of some dimension.
std::vector<bool> WholeDims(const ShardingRule& rule) {
  std::vector<bool> whole(rule.factors.size(), false);
  for (int t = 0; t < rule.num_tensors(); ++t) {
    for (const FactorList& dim : rule.tensor(t).dims) {
      if (dim.size() == 1) whole[dim[0]] = true;
    }
  }
  return whole;
}

// The rule, with the sizes of the factors that `sized` does not name.
std::string Print(const ShardingRule& rule, const std::vector<bool>& sized) {
  const std::vector<int> order = FirstUse(rule);
  const std::vector<Factor>& factors = rule.factors;
  // The author's factor names where they are distinct and not empty, else letters.
  std::set<std::string> distinct;
  for (int f : order) distinct.insert(factors[f].name);
  std::vector<std::string> names(factors.size());
  const bool named = distinct.size() == order.size() && distinct.count("") == 0;
  for (size_t i = 0; i < order.size(); ++i) {
    names[order[i]] = named ? factors[order[i]].name : SdyFactorName(static_cast<int64_t>(i));
  }
  std::string out;
  auto append_side = [&](const std::vector<TensorFactors>& tensors) {
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (t > 0) out += ",";
      for (const FactorList& dim : tensors[t].dims) {
        if (!out.empty() && out.back() != ' ') out += " ";
        if (dim.size() == 1) {
          out += names[dim[0]];
        } else if (dim.empty()) {
          out += "1";
        } else {
          absl::StrAppend(
              &out, "(",
              absl::StrJoin(dim, " ", [&](std::string* o, int f) { absl::StrAppend(o, names[f]); }),
              ")");
        }
      }
    }
  };
  append_side(rule.operands);
  out += out.empty() ? "->" : " ->";
  append_side(rule.results);
  auto name = [&](int f) { return names[f]; };
  auto kind = [&](FactorKind k) { return [&factors, k](int f) { return factors[f].kind == k; }; };
  AppendSet(
      order, "reduction", kind(FactorKind::kReduction),
      [&](int f) { return absl::StrCat(names[f], ":", PartialOpName(factors[f].reduction)); },
      &out);
  AppendSet(order, "need_replication", kind(FactorKind::kNeedReplication), name, &out);
  AppendSet(order, "permutation", kind(FactorKind::kPermutation), name, &out);
  AppendSet(order, "blocked", [&](int f) { return factors[f].blocked; }, name, &out);
  AppendSet(
      order, "pad", [&](int f) { return factors[f].has_pad; },
      [&](int f) { return absl::StrCat(names[f], ":", factors[f].pad); }, &out);
  AppendSet(
      order, "sizes", [&](int f) { return !sized[f]; },
      [&](int f) { return absl::StrCat(names[f], ":", factors[f].size); }, &out);
  return out;
}

}  // namespace

std::string internal::RuleAsWritten(const ShardingRule& rule) {
  return Print(rule, SizesFollow(rule));
}

int64_t ShardingRule::Extent(int tensor, int factor) const {
  // They are sorted: a concatenate of n operands has n.
  const std::pair<int, int> where(tensor, factor);
  const auto it = std::lower_bound(
      extents.begin(), extents.end(), where,
      [](const auto& extent, const std::pair<int, int>& w) { return extent.first < w; });
  return it != extents.end() && it->first == where ? it->second : factors[factor].size;
}

std::string ShardingRule::ToString() const { return Print(*this, WholeDims(*this)); }

std::string ShardingRule::ToSdyText() const {
  const std::vector<int> order = FirstUse(*this);
  std::vector<std::string> names(factors.size());
  for (size_t i = 0; i < order.size(); ++i)
    names[order[i]] = SdyFactorName(static_cast<int64_t>(i));
  auto side = [&](const std::vector<TensorFactors>& tensors) {
    return absl::StrJoin(tensors, ", ", [&](std::string* out, const TensorFactors& t) {
      absl::StrAppend(out, "[",
                      absl::StrJoin(t.dims, ", ",
                                    [&](std::string* o, const FactorList& dim) {
                                      for (int f : dim) *o += names[f];
                                    }),
                      "]");
    });
  };
  std::string out =
      absl::StrCat("#sdy.op_sharding_rule<(", side(operands), ")->(", side(results), ")");
  if (!order.empty()) {
    absl::StrAppend(&out, " {",
                    absl::StrJoin(order, ", ",
                                  [&](std::string* o, int f) {
                                    absl::StrAppend(o, names[f], "=", factors[f].size);
                                  }),
                    "}");
  }
  auto name = [&](int f) { return names[f]; };
  auto kind = [&](FactorKind k) { return [this, k](int f) { return factors[f].kind == k; }; };
  // Shardy takes no reduction over a factor that a result has: it passes through to that one.
  const auto passes = [this](int f) {
    return absl::c_any_of(results, [&](const TensorFactors& t) {
      return absl::c_any_of(t.dims,
                            [&](const FactorList& dim) { return absl::c_linear_search(dim, f); });
    });
  };
  AppendSet(
      order, "reduction",
      [&](int f) { return factors[f].kind == FactorKind::kReduction && !passes(f); }, name, &out);
  AppendSet(order, "need_replication", kind(FactorKind::kNeedReplication), name, &out);
  AppendSet(order, "permutation", kind(FactorKind::kPermutation), name, &out);
  AppendSet(order, "blocked_propagation", [&](int f) { return factors[f].blocked; }, name, &out);
  return out + (custom ? ", custom>" : ">");
}

}  // namespace shardcall
