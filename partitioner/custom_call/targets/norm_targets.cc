// SPDX-License-Identifier: Apache-2.0
// Rules of rms_norm and its gradient. A gain with more than one dimension has rules of its own.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

// Rows are independent; the normalized dimension is not sharded.
absl::Status RegisterNormTargets(TargetRegistry& registry) {
  std::vector<RuleAlternative> fwd;
  const char* const kTypes[] = {"T, U -> T, f32 | T, U -> T, T", "T, U -> T"};  // with rstd; y only
  int k = 0;
  for (const char* rule : {"... d, d -> ... d, ...", "... d, d -> ... d",
                           // With a separate gain for each slice of the leading dimensions.
                           "b c d, b d -> b c d, b c", "b c d, b d -> b c d",
                           "a b c d, a d -> a b c d, a b c", "a b c d, a d -> a b c d"}) {
    fwd.push_back({.text = {.rule = rule, .need_replication = {"d"}}, .types = kTypes[k++ % 2]});
  }
  SHARDCALL_RETURN_IF_ERROR(registry.RegisterRules("rms_norm", std::move(fwd), "", "built in"));

  // dgain is a sum over the rows, so it is partial if they are sharded.
  std::vector<RuleAlternative> bwd;
  std::string rows;
  RuleText text;
  text.need_replication = {"d"};
  for (const char* row : {"", "a", "b", "c", "e", "f"}) {
    if (*row != '\0') {
      absl::StrAppend(&rows, row, " ");
      text.reduction.push_back({row, PartialOp::kSum});
    }
    const std::string x = absl::StrCat(rows, "d");
    const std::string rstd(absl::StripSuffix(rows, " "));
    text.rule = absl::StrCat(x, ", ", x, ", d, ", rstd, " -> ", x, ", d");
    bwd.push_back({.text = text});
  }
  // With a gain per slice, only the rows of a slice are summed.
  bwd.push_back({.text = {.rule = "a b d, a b d, a d, a b -> a b d, a d",
                          .need_replication = {"d"},
                          .reduction = {{"b", PartialOp::kSum}}}});
  bwd.push_back({.text = {.rule = "a b c d, a b c d, a d, a b c -> a b c d, a d",
                          .need_replication = {"d"},
                          .reduction = {{"b", PartialOp::kSum}, {"c", PartialOp::kSum}}}});
  SHARDCALL_RETURN_IF_ERROR(registry.RegisterRules("rms_norm_bwd", std::move(bwd), "", "built in"));
  return registry.RegisterVjp("rms_norm",
                              {.target = "rms_norm_bwd",
                               .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0),
                                             VjpArgument::Operand(1), VjpArgument::Result(1)},
                               .gradients = {0, 1}});
}

}  // namespace internal
}  // namespace shardcall
