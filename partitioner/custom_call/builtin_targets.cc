// SPDX-License-Identifier: Apache-2.0
// Rules of the shipped targets; what the operands mean stands with their
// kernels. A kernel with optional operands or results, or with an attribute
// that changes the order of dimensions, has one rule per signature.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "partitioner/custom_call/collective_targets.h"
#include "partitioner/custom_call/config_text.h"
#include "partitioner/custom_call/lapack_targets.h"
#include "partitioner/custom_call/loss_targets.h"
#include "partitioner/custom_call/moe_targets.h"
#include "partitioner/custom_call/registry.h"
#include "partitioner/custom_call/sparse_targets.h"
#include "partitioner/custom_call/topk_targets.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

bool IsTransposed(absl::string_view config, absl::string_view key) {
  const absl::string_view value = AttributeText(config, key);
  return absl::StartsWith(value, "\"T\"") || absl::StartsWith(value, "\"C\"") ||
         absl::StartsWith(value, "true");
}
template <bool A, bool B>
bool GemmOps(absl::string_view config) {
  return IsTransposed(config, "transa") == A && IsTransposed(config, "transb") == B;
}

bool HeadsFirst(absl::string_view config) {
  return absl::StartsWith(AttributeText(config, "layout"), "\"bhsd\"");
}
bool HeadsThird(absl::string_view config) { return !HeadsFirst(config); }

using Alternatives = std::vector<RuleAlternative>;

// Rows are independent; the normalized dimension is whole.
absl::Status AddRmsNorm(TargetRegistry& registry) {
  Alternatives fwd;
  const char* const kTypes[] = {"T, U -> T, f32 | T, U -> T, T", "T, U -> T"};  // with rstd; y
  int k = 0;
  for (const char* rule : {"... d, d -> ... d, ...", "... d, d -> ... d",
                           // A gain for each slice of the leading dimensions.
                           "b c d, b d -> b c d, b c", "b c d, b d -> b c d",
                           "a b c d, a d -> a b c d, a b c", "a b c d, a d -> a b c d"}) {
    fwd.push_back({.text = {.rule = rule, .need_replication = {"d"}}, .types = kTypes[k++ % 2]});
  }
  SHARDCALL_RETURN_IF_ERROR(registry.RegisterRules("rms_norm", std::move(fwd), "", "built in"));

  // dgain sums over the rows, so it is partial where they are sharded.
  Alternatives bwd;
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
  // A gain for each slice: only the rows of a slice are summed.
  bwd.push_back({.text = {.rule = "a b d, a b d, a d, a b -> a b d, a d",
                          .need_replication = {"d"},
                          .reduction = {{"b", PartialOp::kSum}}}});
  bwd.push_back({.text = {.rule = "a b c d, a b c d, a d, a b c -> a b c d, a d",
                          .need_replication = {"d"},
                          .reduction = {{"b", PartialOp::kSum}, {"c", PartialOp::kSum}}}});
  SHARDCALL_RETURN_IF_ERROR(
      registry.RegisterRules("rms_norm_bwd", std::move(bwd), "", "built in"));
  return registry.RegisterVjp(
      "rms_norm", {.target = "rms_norm_bwd",
                   .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0),
                                 VjpArgument::Operand(1), VjpArgument::Result(1)},
                   .gradients = {0, 1}});
}

// Batch and groups of heads are independent: r heads of q share one of k and v.
absl::Status AddFlashAttention(TargetRegistry& registry) {
  struct Layout {
    bool (*applies)(absl::string_view);
    std::vector<std::string> examples;
    std::string q, out, k, v;
  };
  // Masks are between positions s and t. A part of v's features f gives a part
  // of the output; the backward pass contracts over them.
  const std::vector<std::string> whole = {"s", "r", "e", "t"};
  Alternatives fwd, bwd;
  for (const Layout& l :
       {Layout{HeadsThird, {"{causal = true}", "{causal = false}"}, "b s (g r) e", "b s (g r) f",
               "b t g e", "b t g f"},
        Layout{HeadsFirst,
               {"{causal = true, layout = \"bhsd\"}", "{causal = false, layout = \"bhsd\"}"},
               "b (g r) s e", "b (g r) s f", "b g t e", "b g t f"}}) {
    const std::string qkv = absl::StrCat(l.q, ", ", l.k, ", ", l.v);
    for (const char* lse : {", b (g r) s", ""}) {
      fwd.push_back({.text = {.rule = absl::StrCat(qkv, " -> ", l.out, lse),
                              .need_replication = whole},
                     .inferred = {"r"},
                     .applies = l.applies,
                     .example_configs = l.examples,
                     .types = *lse == '\0' ? "T, T, T -> T"
                                           : "T, T, T -> T, f32 | T, T, T -> T, T"});
    }
    bwd.push_back({.text = {.rule = absl::StrCat(l.out, ", ", qkv, ", ", l.out,
                                                 ", b (g r) s -> ", qkv),
                            .need_replication = whole,
                            .reduction = {{"f", PartialOp::kSum}},
                            .pad = {{"f", 0}}},
                   .inferred = {"r"},
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

absl::Status AddGemm(TargetRegistry& registry) {
  struct Ops {
    bool (*applies)(absl::string_view);
    const char *a, *b;
    std::vector<std::string> examples = {};
  };
  Alternatives gemm;
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
    // Every shard of k would add c.
    gemm.push_back({.text = {.rule = absl::StrCat(o.a, ", ", o.b, ", ... m n -> ... m n"),
                             .need_replication = {"k"}},
                    .applies = o.applies,
                    .example_configs = o.examples});
  }
  SHARDCALL_RETURN_IF_ERROR(registry.RegisterRules("gemm", gemm, "", "built in"));
  return registry.RegisterRules("cublas_gemm", std::move(gemm), "", "built in");
}

// The dimensions in `fft_length`, of which there is one if it is absent.
template <int N>
bool TransformsDims(absl::string_view config) {
  const absl::string_view lengths = AttributeText(config, "fft_length");
  const absl::string_view list = lengths.substr(0, lengths.find('>'));
  return std::count(list.begin(), list.end(), ',') + 1 == N;
}

// What is transformed is whole.
absl::Status AddFft(TargetRegistry& registry) {
  Alternatives fft;
  // Complex to complex, real to half a spectrum, and back.
  const char* const kTypes = "T -> T | T -> complex(T) | T -> real(T)";
  auto examples = [](absl::string_view length) {
    std::vector<std::string> configs;
    for (absl::string_view type : {"FFT", "RFFT", "IRFFT"}) {
      configs.push_back(absl::StrCat("{fft_type = \"", type, "\"", length, "}"));
    }
    return configs;
  };
  fft.push_back({.text = {.rule = "... a -> ... d", .need_replication = {"a", "d"}},
                 .applies = TransformsDims<1>,
                 .example_configs = examples(""),
                 .types = kTypes});
  fft.push_back({.text = {.rule = "... b a -> ... b d", .need_replication = {"a", "b", "d"}},
                 .applies = TransformsDims<2>,
                 .example_configs = examples(", fft_length = dense<[4, 4]> : tensor<2xi64>"),
                 .types = kTypes});
  fft.push_back({.text = {.rule = "... c b a -> ... c b d",
                          .need_replication = {"a", "b", "c", "d"}},
                 .applies = TransformsDims<3>,
                 .example_configs = examples(", fft_length = dense<[4, 4, 4]> : tensor<3xi64>"),
                 .types = kTypes});
  return registry.RegisterRules("fft", std::move(fft), "", "built in");
}

}  // namespace

absl::Status RegisterBuiltinTargets(TargetRegistry& registry) {
  SHARDCALL_RETURN_IF_ERROR(AddRmsNorm(registry));
  SHARDCALL_RETURN_IF_ERROR(AddFlashAttention(registry));
  SHARDCALL_RETURN_IF_ERROR(AddGemm(registry));
  SHARDCALL_RETURN_IF_ERROR(AddFft(registry));
  SHARDCALL_RETURN_IF_ERROR(RegisterLapackTargets(registry));
  SHARDCALL_RETURN_IF_ERROR(RegisterUntypedLapackTargets(registry));
  SHARDCALL_RETURN_IF_ERROR(RegisterLossTargets(registry));
  SHARDCALL_RETURN_IF_ERROR(RegisterMoeTargets(registry));
  SHARDCALL_RETURN_IF_ERROR(RegisterCollectiveTargets(registry));
  SHARDCALL_RETURN_IF_ERROR(RegisterSparseTargets(registry));
  SHARDCALL_RETURN_IF_ERROR(RegisterTopKTargets(registry));
  return registry.RegisterRules(
      "custom_relu", {{.text = {.rule = "... -> ..."}, .types = "T -> T"}}, "", "built in");
}

}  // namespace shardcall
