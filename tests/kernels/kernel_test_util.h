// SPDX-License-Identifier: Apache-2.0
// Tensors of double that are given to a shipped handler in any element type,
// and what its results are measured with.
#ifndef SHARDCALL_TESTS_KERNELS_KERNEL_TEST_UTIL_H_
#define SHARDCALL_TESTS_KERNELS_KERNEL_TEST_UTIL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/kernels/host/element_io.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {

struct Tensor {
  ElementType type = ElementType::kF32;
  std::vector<int64_t> dims;
  std::vector<double> values;

  Tensor() = default;
  Tensor(ElementType t, std::vector<int64_t> d) : type(t), dims(std::move(d)) {
    values.resize(size());
  }
  int64_t size() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
  double largest() const {
    double m = 0;
    for (double v : values) m = std::max(m, std::abs(v));
    return m;
  }
};

// Normal numbers, rounded to the type.
inline Tensor RandomTensor(ElementType type, std::vector<int64_t> dims, int seed,
                           double scale = 1) {
  Tensor t(type, std::move(dims));
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  for (double& v : t.values) v = RoundToFloatType(type, scale * normal(rng));
  return t;
}

// Whole numbers from `low` to `high`.
inline Tensor RandomIntegers(ElementType type, std::vector<int64_t> dims, int seed, int low,
                             int high) {
  Tensor t(type, std::move(dims));
  std::mt19937_64 rng(seed);
  std::uniform_int_distribution<int> numbers(low, high);
  for (double& v : t.values) v = numbers(rng);
  return t;
}

// Runs the shipped handler of `target`; `results` gives types and shapes and
// gets the values. Result memory is full of NaN (integers: 85) before: all must be
// written.
inline absl::Status CallKernel(absl::string_view target, const std::vector<Tensor>& operands,
                               std::vector<Tensor>* results, absl::string_view attributes = "") {
  HandlerRegistry registry;
  SHARDCALL_RETURN_IF_ERROR(RegisterBuiltinHandlers(registry));
  SHARDCALL_ASSIGN_OR_RETURN(const HandlerEntry* entry, registry.Find(target, "Host"));
  SHARDCALL_ASSIGN_OR_RETURN(const AttributeMapView map, AttributeMapView::Parse(attributes));
  std::vector<std::vector<char>> memory;
  auto view = [&memory](const Tensor& t, double fill) {
    memory.emplace_back(t.size() * ElementTypeBytes(t.type) + 1);
    std::vector<double> values = t.values;
    if (std::isnan(fill)) values.assign(t.size(), IsFloat(t.type) ? fill : 85);
    if (IsFloat(t.type)) {
      StoreFloats(t.type, values.data(), t.size(), memory.back().data());
    } else {
      std::vector<uint64_t> bits;
      for (double v : values) bits.push_back(static_cast<uint64_t>(static_cast<int64_t>(v)));
      StoreElements(t.type, bits.data(), t.size(), memory.back().data());
    }
    return BufferView{t.type, t.dims, memory.back().data()};
  };
  std::vector<BufferView> in, out;
  for (const Tensor& t : operands) in.push_back(view(t, 0));
  for (const Tensor& t : *results) out.push_back(view(t, std::nan("")));
  HandlerContext context;
  context.target = target;
  context.instruction = "%call.1";
  context.attributes = &map;
  context.backend_config = attributes;
  SHARDCALL_RETURN_IF_ERROR(entry->host(context, in, out));
  for (size_t i = 0; i < results->size(); ++i) {
    LoadElements(out[i].type, out[i].data, (*results)[i].size(), (*results)[i].values.data());
  }
  return absl::OkStatus();
}

// Every element within `relative` of the largest expected value, or of `least`
// where cancellation makes the expected values smaller than what they come from.
inline void ExpectNear(const Tensor& found, const std::vector<double>& expected, double relative,
                       absl::string_view what, double least = 0) {
  ASSERT_EQ(found.values.size(), expected.size()) << what;
  double largest = least, worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isinf(expected[i])) {
      EXPECT_EQ(found.values[i], expected[i]) << what << " at " << i;
      continue;
    }
    largest = std::max(largest, std::abs(expected[i]));
    const double difference = std::abs(found.values[i] - expected[i]);
    if (!(difference <= worst)) worst = difference;  // NaN stays
  }
  EXPECT_LE(worst, relative * largest) << what << ", largest " << largest;
}

// (f(x + h) - f(x - h)) / 2h for each of `count` elements of x, spread evenly.
inline std::vector<std::pair<size_t, double>> FiniteDifferences(std::vector<double>* x,
                                                                const std::function<double()>& f,
                                                                size_t count, double h = 1e-5) {
  std::vector<std::pair<size_t, double>> slopes;
  const size_t step = std::max<size_t>(1, x->size() / count);
  for (size_t i = 0; i < x->size(); i += step) {
    const double old = (*x)[i];
    (*x)[i] = old + h;
    const double up = f();
    (*x)[i] = old - h;
    const double down = f();
    (*x)[i] = old;
    slopes.emplace_back(i, (up - down) / (2 * h));
  }
  return slopes;
}

inline void ExpectSlopes(const std::vector<double>& gradient,
                         const std::vector<std::pair<size_t, double>>& slopes,
                         absl::string_view what) {
  double largest = 0;
  for (double g : gradient) largest = std::max(largest, std::abs(g));
  for (const auto& [i, slope] : slopes) {
    EXPECT_NEAR(gradient[i], slope, 1e-7 * std::max(largest, 1.0)) << what << " at " << i;
  }
}

// A bad call: the code, and texts that the message must have.
inline void ExpectError(const absl::Status& status, absl::string_view code,
                        std::vector<std::string> parts) {
  EXPECT_EQ(DiagnosticCode(status), code) << status;
  for (const std::string& part : parts) {
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(part));
  }
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_KERNELS_KERNEL_TEST_UTIL_H_
