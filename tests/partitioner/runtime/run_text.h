// SPDX-License-Identifier: Apache-2.0
// Runs HLO text for tests.
#ifndef SHARDCALL_TESTS_PARTITIONER_RUNTIME_RUN_TEXT_H_
#define SHARDCALL_TESTS_PARTITIONER_RUNTIME_RUN_TEXT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/execute/executor.h"
#include "shardcall/partitioner/runtime/float_arrays.h"
#include "shardcall/partitioner/runtime/lower/lower.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

// `text` is a whole module, or the instructions of an entry computation. The
// header may be given apart, "num_partitions=2".
inline absl::StatusOr<std::shared_ptr<const DeviceProgram>> LowerText(
    absl::string_view text, absl::string_view header = "", const LowerOptions& options = {}) {
  std::string whole =
      absl::StrContains(text, "ENTRY")
          ? absl::StrCat("HloModule m", header.empty() ? "" : ", ", header, "\n", text)
          : absl::StrCat("HloModule m", header.empty() ? "" : ", ", header, "\nENTRY e {\n", text,
                         "\n}\n");
  SHARDCALL_ASSIGN_OR_RETURN(const Module module,
                             ParseModule(std::make_shared<const std::string>(std::move(whole)),
                                         std::make_shared<Context>(), "test"));
  return Lower(module, options);
}

inline absl::StatusOr<std::vector<Tensor>> RunText(absl::string_view text,
                                                   std::vector<Tensor> arguments = {},
                                                   const DeviceContext& device = {}) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceProgram> program, LowerText(text));
  return Execute(*program, std::move(arguments), device);
}

// Elements as f64 (real parts of complex numbers).
inline std::vector<double> Numbers(const Tensor& t) {
  std::vector<double> out;
  if (IsFloat(t.type()) || IsComplex(t.type())) {
    for (const auto& x : ToComplexes(t)) out.push_back(x.real());
  } else {
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      out.push_back(static_cast<double>(IntElement(t, i)));
    }
  }
  return out;
}

// The first result's elements; fails the test on an error.
inline std::vector<double> Eval(absl::string_view text, std::vector<Tensor> arguments = {}) {
  const auto results = RunText(text, std::move(arguments));
  EXPECT_TRUE(results.ok()) << results.status() << "\n" << text;
  return results.ok() && !results->empty() ? Numbers((*results)[0]) : std::vector<double>();
}

inline Tensor F32(absl::Span<const int64_t> dims, const std::vector<float>& values) {
  return Tensor::From(ElementType::kF32, dims, values);
}
inline Tensor S32(absl::Span<const int64_t> dims, const std::vector<int32_t>& values) {
  return Tensor::From(ElementType::kS32, dims, values);
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_RUNTIME_RUN_TEXT_H_
