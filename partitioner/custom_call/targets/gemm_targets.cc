// SPDX-License-Identifier: Apache-2.0
// Rules of gemm and cublas_gemm, one for each transposition of the operands, and of their
// gradients.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/attributes.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

bool IsTransposed(absl::string_view config, absl::string_view key) {
  const auto attributes = AttributeMapView::Parse(config);
  if (!attributes.ok()) return false;
  const std::string text = attributes->GetString(key, "").value_or("");
  return text == "T" || text == "C" || attributes->GetBool(key, false).value_or(false);
}
template <bool A, bool B>
bool GemmOps(absl::string_view config) {
  return IsTransposed(config, "transa") == A && IsTransposed(config, "transb") == B;
}

}  // namespace

absl::Status RegisterGemmTargets(TargetRegistry& registry) {
  struct Ops {
    bool (*applies)(absl::string_view);
    const char *a, *b;
    std::vector<std::string> examples = {};
  };
  std::vector<RuleAlternative> gemm, gemm_bwd;
  for (const Ops& o :
       {Ops{GemmOps<false, false>, "... m k", "... k n"},
        Ops{GemmOps<false, true>, "... m k", "... n k", {"{transb = \"T\"}"}},
        Ops{GemmOps<true, false>, "... k m", "... k n", {"{transa = \"T\"}"}},
        Ops{GemmOps<true, true>, "... k m", "... n k", {"{transa = \"T\", transb = \"C\"}"}}}) {
    gemm.push_back({.text = {.rule = absl::StrCat(o.a, ", ", o.b, " -> ... m n"),
                             .reduction = {{"k", PartialOp::kSum}},
                             .pad = {{"k", 0}}},
                    .applies = o.applies,
                    .example_configs = o.examples});
    // k is not sharded if there is an operand c, since every shard would add it.
    gemm.push_back({.text = {.rule = absl::StrCat(o.a, ", ", o.b, ", ... m n -> ... m n"),
                             .need_replication = {"k"}},
                    .applies = o.applies,
                    .example_configs = o.examples});
    // The gradient of a is a sum over n, that of b over m. That of c is beta * d, which does not
    // depend on k.
    for (const char* c : {"", ", ... m n"}) {
      gemm_bwd.push_back(
          {.text = {.rule = absl::StrCat("... m n, ", o.a, ", ", o.b, " -> ", o.a, ", ", o.b, c),
                    .reduction = {{"m", PartialOp::kSum}, {"n", PartialOp::kSum}},
                    .pad = {{"m", 0}, {"n", 0}}},
           .applies = o.applies,
           .example_configs = o.examples});
    }
  }
  SHARDCALL_RETURN_IF_ERROR(
      registry.RegisterRules("gemm_bwd", std::move(gemm_bwd), "", "built in"));
  const VjpSpec vjp = {
      .target = "gemm_bwd",
      .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0), VjpArgument::Operand(1)},
      .gradients = {0, 1, 2},
      .skip_absent_operands = true};
  for (const char* name : {"gemm", "cublas_gemm"}) {
    SHARDCALL_RETURN_IF_ERROR(registry.RegisterRules(name, gemm, "", "built in"));
    SHARDCALL_RETURN_IF_ERROR(registry.RegisterVjp(name, vjp));
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
