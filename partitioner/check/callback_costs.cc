// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/callback_costs.h"

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/check/factor_uses.h"
#include "shardcall/partitioner/check/linked_factors.h"
#include "shardcall/partitioner/check/reference.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kDevices[] = {2, 4};
constexpr int64_t kTiles[] = {2, 4, 8, 32};

// Every dimension whose first factor is in `factors` is sharded over that factor's axis.
CheckedCall::Mesh MeshOf(const CheckedCall& call, const std::vector<int>& factors, int64_t n) {
  CheckedCall::Mesh mesh;
  for (size_t k = 0; k < factors.size(); ++k) mesh.axes.emplace_back(absl::StrCat("x", k), n);
  for (int t = 0; t < call.num_tensors(); ++t) {
    const auto& dims = call.rule.tensor(t).dims;
    mesh.dims.emplace_back(dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      for (size_t k = 0; k < factors.size(); ++k) {
        if (!dims[d].empty() && dims[d][0] == factors[k]) mesh.dims[t][d] = mesh.axes[k].first;
      }
    }
  }
  return mesh;
}

}  // namespace

double CallbackCosts::BytesSent(const CheckedCall& call, const Sizes& sizes,
                                const CheckedCall::Mesh& mesh) const {
  const auto run = [&]() -> absl::StatusOr<double> {
    TargetRegistry own;
    PartitionOptions options;
    options.targets = &own;
    options.spmd.search = StateSearch::kNone;  // it is about this call
    options.spmd.cost.memory_rate = 1;         // as in trials, so that sharding always pays
    if (call.callbacks) {
      options.targets = options_.targets;
    } else {
      SHARDCALL_RETURN_IF_ERROR(own.RegisterRule(call.target, call.Text(sizes)));
    }
    SHARDCALL_ASSIGN_OR_RETURN(
        Module module, ParseModule(std::make_shared<const std::string>(call.Hlo(sizes, mesh)),
                                   std::make_shared<Context>(), "check-rule"));
    SHARDCALL_ASSIGN_OR_RETURN(const std::unique_ptr<PartitionedProgram> program,
                               Partition(std::move(module), options));
    return TotalBytesMoved(program->local);
  };
  const absl::StatusOr<double> bytes = run();
  return bytes.ok() ? *bytes : -1;
}

void CallbackCosts::Compare(const CheckedCall& better, const std::vector<int>& factors) {
  for (int64_t n : kDevices) {
    for (int64_t tile : kTiles) {
      // Even sizes, since padding can be a reason to send more.
      Sizes whole = sizes_.base(), part = sizes_.base();
      for (int f : factors) {
        for (int linked : sizes_.linked(f)) {
          whole[linked] = n * tile;
          part[linked] = tile;
        }
      }
      if (!sizes_.Takes(whole) || !sizes_.Takes(part)) continue;
      RuleTrial trial{.call = &better, .sizes = whole};
      for (int f : factors) trial.shards.emplace_back(f, n);
      FactorTrials::Tested tested;
      if (!trials_.Try(trial, &tested) || tested.failure.has_value()) return;
      const CheckedCall::Mesh mesh = MeshOf(better, factors, n);
      const double by_rule = BytesSent(better, whole, mesh);
      const double by_callbacks = BytesSent(call_, whole, mesh);
      if (by_rule < 0 || by_callbacks <= by_rule) break;
      std::vector<std::string> names, where;
      RuleFinding finding;
      for (int f : factors) {
        names.push_back(better.rule.factors[f].name);
        for (int t = 0; t < call_.num_tensors(); ++t) {
          const auto& dims = better.rule.tensor(t).dims;
          for (size_t d = 0; d < dims.size(); ++d) {
            if (dims[d].empty() || dims[d][0] != f) continue;
            where.push_back(absl::StrCat(t < call_.num_operands ? "operand " : "result ",
                                         t < call_.num_operands ? t : t - call_.num_operands,
                                         ", dimension ", d));
          }
        }
        finding.shards.emplace_back(names.back(), n);
      }
      finding.verdict = RuleVerdict::kNeedless;
      finding.rule = "callbacks";
      finding.factor = where[0];
      finding.message = absl::StrCat("with ", absl::StrJoin(where, "; "), " over ", n,
                                     " devices, the callbacks make each "
                                     "device send ",
                                     HumanBytes(by_callbacks), ", and the rule below ",
                                     HumanBytes(by_rule), ", for the same results");
      finding.signature = call_.SignatureText(whole);
      finding.backend_config = call_.backend_config;
      finding.suggestion = better.RuleLine(sizes_.base());
      found_.emplace(absl::StrCat("callbacks ", absl::StrJoin(names, " ")), std::move(finding));
      return;
    }
  }
}

std::vector<CallbackCosts::GroupRule> CallbackCosts::Rules() {
  std::vector<GroupRule> found;
  std::vector<bool> grouped(NumFactors(call_));
  CheckedCall plain = call_;  // the same call with a rule that needs replication for all factors
  plain.callbacks = false;
  for (Factor& f : plain.rule.factors) {
    f.kind = FactorKind::kNeedReplication;
    f.has_pad = f.blocked = false;
  }
  const auto add = [&](const CheckedCall& call, const std::vector<int>& group) {
    const std::optional<CheckedCall> better =
        trials_.Better(call, group[0], /*with_replication=*/false);
    if (better.has_value() && DependsOn(*better, sizes_.base(), group[0], seed_, options_)) {
      found.emplace_back(group, *better);
    }
  };
  ForEachLinkedGroup(&sizes_, [&](const std::vector<int>& group) {
    for (int f : group) grouped[f] = true;
    add(Merged(plain, group), group);
  });
  for (int f = 0; f < NumFactors(call_); ++f) {
    if (!grouped[f] && IsMajor(call_, f) && InAnOperand(call_, f)) add(plain, {f});
  }
  return found;
}

FindingsByName CallbackCosts::Find() {
  const std::vector<GroupRule> rules = Rules();
  for (const auto& [group, better] : rules) {
    sizes_.Link(group);
    Compare(better, {group[0]});
  }
  // Pairs: each factor alone may need no communication, but one may be gathered because of the
  // other. One rule for both is tested.
  for (size_t i = 0; found_.empty() && i < rules.size(); ++i) {
    for (size_t j = i + 1; found_.empty() && j < rules.size(); ++j) {
      const auto& [a, rule_a] = rules[i];
      const auto& [b, rule_b] = rules[j];
      CheckedCall both = Merged(rule_a, b);
      both.rule.factors[b[0]] = rule_b.rule.factors[b[0]];
      Compare(both, {a[0], b[0]});
    }
  }
  for (const auto& [group, better] : rules) sizes_.Unlink(group[0]);
  return std::move(found_);
}

}  // namespace internal
}  // namespace shardcall
