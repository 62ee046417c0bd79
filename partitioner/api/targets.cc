// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/targets.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace shardcall {
namespace {

// What the rule registry has for one target.
struct Rules {
  std::set<std::string> kinds, sources;
  std::string has;
};

// Whether every factor of every result occurs in an operand, so that shapes can be inferred.
bool GivesShapes(const TargetRule& rule) {
  if (rule.alternatives.empty()) return false;
  for (const RuleAlternative& a : rule.alternatives) {
    std::set<std::string> known;
    for (size_t k = 0; k < a.values.size(); ++k) {
      for (const auto& dim : a.values[k].dims) {
        for (const std::string& f : dim) {
          if (static_cast<int>(k) < a.num_operands) known.insert(f);
          if (known.count(f) == 0) return false;
        }
      }
    }
  }
  return true;
}

std::string Kind(const TargetRule& r) {
  if (r.level != RuleLevel::kBatchDims) return std::string(RuleLevelName(r.level));
  return r.batch_dims == kBatchDimsOfCall ? "num_batch_dims"
                                          : absl::StrCat("batch_dims=", r.batch_dims);
}

}  // namespace

std::string DescribeTargets(const TargetRegistry& rules, const HandlerRegistry& handlers,
                            const LoweringRegistry* lowerings) {
  std::map<std::string, Rules> by_name;
  std::set<std::string> shaped;
  for (const TargetRule* r : rules.List()) {
    Rules& of = by_name[r->target];
    of.kinds.insert(Kind(*r));
    of.sources.insert(r->source);
    if (GivesShapes(*r)) shaped.insert(r->target);
  }
  std::map<std::string, std::vector<const HandlerEntry*>> entries;
  for (const HandlerEntry* h : handlers.List()) {
    entries[h->target].push_back(h);
    by_name.try_emplace(h->target);
  }
  for (auto& [name, of] : by_name) {
    const TargetFacts* facts = rules.Facts(name);
    std::vector<std::string> has;
    if (shaped.count(name) != 0 || (facts != nullptr && facts->shapes != nullptr)) {
      has.push_back("shapes");
    }
    if (facts != nullptr && facts->reference != nullptr) of.kinds = {"partition_like"};
    if (facts != nullptr && facts->vjp.has_value()) has.push_back("vjp");
    if (facts != nullptr && facts->batching.has_value()) has.push_back("batching");
    of.has = absl::StrJoin(has, ",");
  }
  constexpr absl::string_view kTitles[] = {"target", "platform", "api",   "rule",
                                           "has",    "traits",   "source"};
  std::string out;
  auto line = [&](absl::Span<const absl::string_view> f) {
    absl::StrAppendFormat(&out, "%-24s %-10s %-6s %-16s %-20s %-28s %s\n", f[0], f[1], f[2],
                          f[3].empty() ? "-" : f[3], f[4].empty() ? "-" : f[4],
                          f[5].empty() ? "-" : f[5], f[6]);
  };
  line(kTitles);
  for (const auto& [name, of] : by_name) {
    const std::string kinds = absl::StrJoin(of.kinds, ",");
    if (entries[name].empty()) {
      line({name, "-", "-", kinds, of.has, "", absl::StrJoin(of.sources, ",")});
    }
    for (const HandlerEntry* h : entries[name]) {
      line({name, h->platform, h->ApiText(), kinds, of.has, absl::StrJoin(h->traits, ","),
            h->source});
    }
  }
  const auto entries_of =
      lowerings == nullptr ? std::vector<LoweringRegistry::Entry>() : lowerings->List();
  if (!entries_of.empty()) {
    absl::StrAppendFormat(&out, "\n%-24s %-10s %s\n", "lowering of", "platform", "source");
  }
  for (const LoweringRegistry::Entry& e : entries_of) {
    absl::StrAppendFormat(&out, "%-24s %-10s %s\n", e.name.empty() ? "any" : e.name,
                          e.platform.empty() ? "any" : e.platform, e.source);
  }
  return out;
}

}  // namespace shardcall
