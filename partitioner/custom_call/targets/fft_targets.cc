// SPDX-License-Identifier: Apache-2.0
// The rule of batched FFTs, by the number of dimensions that are transformed.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/attributes.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"

namespace shardcall {
inline namespace internal {
namespace {

// Whether `fft_length` has N dimensions. If it is absent, there is one.
template <int N>
bool TransformsDims(absl::string_view config) {
  const auto attributes = AttributeMapView::Parse(config);
  if (!attributes.ok()) return N == 1;
  const auto lengths = attributes->GetInts("fft_length", {1});
  return (lengths.ok() ? lengths->size() : 1) == N;
}

}  // namespace

// The transformed dimensions are not sharded.
absl::Status RegisterFftTargets(TargetRegistry& registry) {
  std::vector<RuleAlternative> fft;
  // Complex to complex, real to half a spectrum, and half a spectrum to real.
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
  fft.push_back(
      {.text = {.rule = "... c b a -> ... c b d", .need_replication = {"a", "b", "c", "d"}},
       .applies = TransformsDims<3>,
       .example_configs = examples(", fft_length = dense<[4, 4, 4]> : tensor<3xi64>"),
       .types = kTypes});
  return registry.RegisterRules("fft", std::move(fft), "", "built in");
}

}  // namespace internal
}  // namespace shardcall
