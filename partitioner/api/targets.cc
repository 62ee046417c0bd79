// SPDX-License-Identifier: Apache-2.0
#include "partitioner/api/targets.h"

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

// What stands of one target in the registry of rules.
struct Rules {
  std::set<std::string> kinds, sources;
};

std::string Kind(const TargetRule& r) {
  if (r.level != RuleLevel::kBatchDims) return std::string(RuleLevelName(r.level));
  return r.batch_dims == kBatchDimsOfCall ? "num_batch_dims"
                                          : absl::StrCat("batch_dims=", r.batch_dims);
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

std::string DescribeTargets(const TargetRegistry& rules, const HandlerRegistry& handlers) {
  std::map<std::string, Rules> by_name;
  for (const TargetRule* r : rules.List()) {
    Rules& of = by_name[r->target];
    of.kinds.insert(Kind(*r));
    of.sources.insert(r->source);
  }
  std::map<std::string, std::vector<const HandlerEntry*>> entries;
  for (const HandlerEntry* h : handlers.List()) {
    entries[h->target].push_back(h);
    by_name.try_emplace(h->target);
  }
  std::string out = absl::StrFormat("%-24s %-10s %-4s %-16s %-28s %s\n", "target", "platform", "api",
                                    "rule", "traits", "source");
  for (const auto& [name, of] : by_name) {
    const std::string kind = OrDash(absl::StrJoin(of.kinds, ","));
    if (entries[name].empty()) {
      absl::StrAppendFormat(&out, "%-24s %-10s %-4s %-16s %-28s %s\n", name, "-", "-", kind, "-",
                            absl::StrJoin(of.sources, ","));
    }
    for (const HandlerEntry* h : entries[name]) {
      absl::StrAppendFormat(&out, "%-24s %-10s %-4d %-16s %-28s %s\n", name, h->platform,
                            h->api_version, kind, OrDash(absl::StrJoin(h->traits, ",")), h->source);
    }
  }
  return out;
}

}  // namespace shardcall
