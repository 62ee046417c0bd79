// SPDX-License-Identifier: Apache-2.0
// Calls of a shipped target by its handler for Host and by that for CUDA, on equal bytes.
#ifndef SHARDCALL_TESTS_KERNELS_CUDA_TARGET_UTIL_H_
#define SHARDCALL_TESTS_KERNELS_CUDA_TARGET_UTIL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shardcall/kernels/builtin.h"
#include "shardcall/kernels/ffi/cuda_device.h"
#include "shardcall/kernels/ffi/staged_call.h"
#include "shardcall/kernels/host/element_io.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

// Numbers of any type; whole ones are exact in each.
struct Array {
  ElementType type = ElementType::kF32;
  std::vector<int64_t> dims;
  std::vector<std::complex<double>> values = {};

  int64_t size() const {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    return n;
  }
};

inline bool IsComplexType(ElementType type) {
  return type == ElementType::kC64 || type == ElementType::kC128;
}

// Whole numbers from -3 to 3, of complex types in both parts.
inline Array WholeNumbers(ElementType type, std::vector<int64_t> dims, int seed) {
  Array array{type, std::move(dims)};
  uint64_t state = seed * 7919 + 1;
  const auto next = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 33) - 7 * static_cast<double>((state >> 33) / 7) - 3;
  };
  for (int64_t k = 0; k < array.size(); ++k) {
    const double re = next();
    array.values.emplace_back(re, IsComplexType(type) ? next() : 0);
  }
  return array;
}

inline Array Indices(std::vector<int> values) {
  Array array{ElementType::kS32, {static_cast<int64_t>(values.size())}};
  for (int v : values) array.values.emplace_back(v);
  return array;
}

inline std::vector<char> BytesOf(const Array& array) {
  std::vector<char> bytes(array.size() * ElementTypeBytes(array.type) + 1);
  std::vector<double> real;
  for (const auto& v : array.values) real.push_back(v.real());
  if (IsComplexType(array.type)) {
    StoreElements(array.type, array.values.data(), array.size(), bytes.data());
  } else if (IsFloat(array.type)) {
    StoreElements(array.type, real.data(), array.size(), bytes.data());
  } else {
    std::vector<uint64_t> whole;
    for (double v : real) whole.push_back(static_cast<uint64_t>(static_cast<int64_t>(v)));
    StoreElements(array.type, whole.data(), array.size(), bytes.data());
  }
  return bytes;
}

inline std::vector<std::complex<double>> NumbersOf(ElementType type, const std::vector<char>& bytes,
                                                   int64_t size) {
  std::vector<std::complex<double>> numbers(size);
  if (IsComplexType(type)) {
    LoadElements(type, bytes.data(), size, numbers.data());
  } else if (IsFloat(type)) {
    std::vector<double> real(size);
    LoadElements(type, bytes.data(), size, real.data());
    std::copy(real.begin(), real.end(), numbers.begin());
  } else {
    std::vector<uint64_t> whole(size);
    LoadElements(type, bytes.data(), size, whole.data());
    std::copy(whole.begin(), whole.end(), numbers.begin());
  }
  return numbers;
}

class CudaTargets : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(RegisterBuiltinHandlers(registry_).ok());
    auto opened = OpenCudaDevice(0, nullptr);
    if (!opened.ok()) {
      EXPECT_EQ(DiagnosticCode(opened.status()), "E303") << opened.status();
      GTEST_SKIP() << opened.status().message();
    }
    device_ = *std::move(opened);
  }

  // The result's numbers by the handler for `platform`. `alias` is the operand whose
  // memory the result shares, -1: none.
  absl::StatusOr<std::vector<std::complex<double>>> Call(
      absl::string_view platform, absl::string_view target, const std::vector<Array>& operands,
      const Array& result, absl::string_view attributes = "", int alias = -1,
      const std::function<void(HandlerContext&)>& change = nullptr) {
    return CallBy(device_, platform, target, operands, result, attributes, alias, change);
  }
  absl::StatusOr<std::vector<std::complex<double>>> CallOn(
      const std::shared_ptr<HandlerDevice>& device, absl::string_view target,
      const std::vector<Array>& operands, const Array& result, absl::string_view attributes) {
    return CallBy(device, "CUDA", target, operands, result, attributes, -1, nullptr);
  }
  absl::StatusOr<std::vector<std::complex<double>>> CallBy(
      const std::shared_ptr<HandlerDevice>& device, absl::string_view platform,
      absl::string_view target, const std::vector<Array>& operands, const Array& result,
      absl::string_view attributes, int alias, const std::function<void(HandlerContext&)>& change) {
    SHARDCALL_ASSIGN_OR_RETURN(const HandlerEntry* entry, registry_.Find(target, platform));
    SHARDCALL_ASSIGN_OR_RETURN(const AttributeMapView map, AttributeMapView::Parse(attributes));
    std::vector<std::vector<char>> memory;
    std::vector<BufferView> in;
    for (const Array& operand : operands) {
      memory.push_back(BytesOf(operand));
      in.push_back({operand.type, operand.dims, memory.back().data()});
    }
    std::vector<char> out(result.size() * ElementTypeBytes(result.type) + 1, 0x55);
    if (alias >= 0) out = memory[alias];
    const BufferView to{result.type, result.dims, out.data()};
    if (alias >= 0) in[alias].data = out.data();
    HandlerContext context;
    context.target = target;
    context.instruction = "call.1";
    context.attributes = &map;
    context.backend_config = attributes;
    if (change) change(context);
    SHARDCALL_RETURN_IF_ERROR(platform == "Host" ? entry->host(context, in, {to})
                                                 : CallStaged(*entry, device, context, in, {to}));
    return NumbersOf(result.type, out, result.size());
  }

  // A toolkit may lack the library that the target needs; the test is left out then.
  bool Lacks(absl::string_view target) { return !registry_.Find(target, "CUDA").ok(); }

  // Both handlers give the same numbers, `tolerance` of the largest apart.
  void ExpectAsOnHost(absl::string_view target, const std::vector<Array>& operands,
                      const Array& result, absl::string_view attributes = "", int alias = -1,
                      double tolerance = 0) {
    if (Lacks(target)) GTEST_SKIP() << "there is no handler of " << target;
    SCOPED_TRACE(testing::Message()
                 << target << " " << attributes << " " << ElementTypeName(operands[0].type)
                 << " to " << ElementTypeName(result.type) << " alias " << alias);
    const auto want = Call("Host", target, operands, result, attributes, alias);
    const auto got = Call("CUDA", target, operands, result, attributes, alias);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    double largest = 0;
    for (const auto& v : *want) largest = std::max(largest, std::abs(v));
    for (size_t k = 0; k < want->size(); ++k) {
      ASSERT_LE(std::abs((*want)[k] - (*got)[k]), tolerance * largest)
          << "element " << k << ": " << (*want)[k] << " by the host, " << (*got)[k];
    }
  }

  // Both refuse it, in the same words.
  void ExpectErrorOfHost(absl::string_view target, const std::vector<Array>& operands,
                         const Array& result, absl::string_view code,
                         absl::string_view attributes = "") {
    if (Lacks(target)) GTEST_SKIP() << "there is no handler of " << target;
    const auto want = Call("Host", target, operands, result, attributes);
    const auto got = Call("CUDA", target, operands, result, attributes);
    EXPECT_EQ(DiagnosticCode(want.status()), code) << want.status();
    EXPECT_EQ(got.status(), want.status());
  }

  HandlerRegistry registry_;
  std::shared_ptr<HandlerDevice> device_;
};

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_KERNELS_CUDA_TARGET_UTIL_H_
