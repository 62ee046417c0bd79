// SPDX-License-Identifier: Apache-2.0
// Rules of flash_attention, forward and backward, for both orders of the dimensions.
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

bool HeadsFirst(absl::string_view config) {
  const auto attributes = AttributeMapView::Parse(config);
  return attributes.ok() && attributes->GetString("layout", "").value_or("") == "bhsd";
}
bool HeadsThird(absl::string_view config) { return !HeadsFirst(config); }

}  // namespace

// Batch and groups of heads are independent: r heads of q share one of k and v.
absl::Status RegisterAttentionTargets(TargetRegistry& registry) {
  struct Layout {
    bool (*applies)(absl::string_view);
    std::vector<std::string> examples;
    std::string q, out, k, v;
  };
  // Masks compare positions s and t, so these are whole. A shard of v's features f gives a shard of
  // the output; the backward pass contracts over f.
  const std::vector<std::string> whole = {"s", "r", "e", "t"};
  std::vector<RuleAlternative> fwd, bwd;
  for (const Layout& l :
       {Layout{HeadsThird,
               {"{causal = true}", "{causal = false}"},
               "b s (g r) e",
               "b s (g r) f",
               "b t g e",
               "b t g f"},
        Layout{HeadsFirst,
               {"{causal = true, layout = \"bhsd\"}", "{causal = false, layout = \"bhsd\"}"},
               "b (g r) s e",
               "b (g r) s f",
               "b g t e",
               "b g t f"}}) {
    const std::string qkv = absl::StrCat(l.q, ", ", l.k, ", ", l.v);
    for (const char* lse : {", b (g r) s", ""}) {
      fwd.push_back(
          {.text = {.rule = absl::StrCat(qkv, " -> ", l.out, lse), .need_replication = whole},
           .applies = l.applies,
           .example_configs = l.examples,
           .types = *lse == '\0' ? "T, T, T -> T" : "T, T, T -> T, f32 | T, T, T -> T, T"});
    }
    bwd.push_back(
        {.text = {.rule = absl::StrCat(l.out, ", ", qkv, ", ", l.out, ", b (g r) s -> ", qkv),
                  .need_replication = whole,
                  .reduction = {{"f", PartialOp::kSum}},
                  .pad = {{"f", 0}}},
         .applies = l.applies,
         .example_configs = l.examples});
  }
  SHARDCALL_RETURN_IF_ERROR(
      registry.RegisterRules("flash_attention_fwd", std::move(fwd), "", "built in"));
  SHARDCALL_RETURN_IF_ERROR(
      registry.RegisterRules("flash_attention_bwd", std::move(bwd), "", "built in"));
  return registry.RegisterVjp(
      "flash_attention_fwd",
      {.target = "flash_attention_bwd",
       .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0), VjpArgument::Operand(1),
                     VjpArgument::Operand(2), VjpArgument::Result(0), VjpArgument::Result(1)},
       .gradients = {0, 1, 2}});
}

}  // namespace internal
}  // namespace shardcall
