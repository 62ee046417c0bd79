// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"
#include "tests/collectives/reference.h"

namespace shardcall {
namespace {

using E = ElementType;

const std::vector<E>& NarrowTypes() {
  static const std::vector<E> kTypes = {
      E::kF16,        E::kBF16,   E::kF8E5M2, E::kF8E4M3FN, E::kF8E4M3B11FNUZ, E::kF8E5M2FNUZ,
      E::kF8E4M3FNUZ, E::kF8E4M3, E::kF8E3M4, E::kF4E2M1FN, E::kF6E3M2FN,      E::kF6E2M3FN};
  return kTypes;
}

int NumCodes(E type) { return 1 << ElementTypeBits(type); }

float DecodeCode(E type, int code) {
  const uint16_t wide = static_cast<uint16_t>(code);  // little endian
  float value;
  LoadFloats(type, &wide, 1, &value);
  return value;
}

int EncodeValue(E type, float value) {
  uint16_t code = 0;
  StoreFloats(type, &value, 1, &code);
  return code;
}

template <typename T>
T Reduce(ReduceKind kind, E type, const std::vector<T>& values) {
  std::vector<const void*> sources;
  for (const T& value : values) sources.push_back(&value);
  T result{};
  void* out = &result;
  ReduceRange(kind, type, sources, absl::MakeConstSpan(&out, 1), 0, 1);
  return result;
}

TEST(NarrowFloat, EveryCodeSurvivesDecodingAndEncoding) {
  for (E type : NarrowTypes()) {
    for (int code = 0; code < NumCodes(type); ++code) {
      const float value = DecodeCode(type, code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(DecodeCode(type, EncodeValue(type, value))));
      } else {
        EXPECT_EQ(EncodeValue(type, value), code) << ElementTypeName(type) << " " << value;
      }
    }
  }
}

TEST(NarrowFloat, RoundsToTheNearestAndTiesToEven) {
  for (E type : NarrowTypes()) {
    const int half = NumCodes(type) / 2;
    for (int code = 0; code + 1 < half; ++code) {
      const float low = DecodeCode(type, code);
      const float high = DecodeCode(type, code + 1);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const float middle = low + (high - low) / 2;
      EXPECT_EQ(EncodeValue(type, middle), code % 2 == 0 ? code : code + 1)
          << ElementTypeName(type) << " between " << low << " and " << high;
      EXPECT_EQ(EncodeValue(type, std::nextafter(middle, low)), code);
      EXPECT_EQ(EncodeValue(type, std::nextafter(middle, high)), code + 1);
    }
  }
}

TEST(NarrowFloat, ValuesAreThoseOfTheFormats) {
  EXPECT_EQ(DecodeCode(E::kF8E4M3FN, 0x7e), 448.0f);
  EXPECT_EQ(DecodeCode(E::kF8E5M2, 0x7b), 57344.0f);
  EXPECT_EQ(DecodeCode(E::kF8E4M3FNUZ, 0x7f), 240.0f);
  EXPECT_EQ(DecodeCode(E::kF8E5M2FNUZ, 0x7f), 57344.0f);
  EXPECT_EQ(DecodeCode(E::kF8E4M3B11FNUZ, 0x7f), 30.0f);
  EXPECT_EQ(DecodeCode(E::kF8E4M3, 0x77), 240.0f);
  EXPECT_EQ(DecodeCode(E::kF8E3M4, 0x6f), 15.5f);
  EXPECT_EQ(DecodeCode(E::kF4E2M1FN, 0x7), 6.0f);
  EXPECT_EQ(DecodeCode(E::kF8E4M3FN, 0x01), std::ldexp(1.0f, -9));
  EXPECT_TRUE(std::isnan(DecodeCode(E::kF8E4M3FNUZ, 0x80)));
}

TEST(NarrowFloat, OverflowIsInfinityElseNanElseTheLargest) {
  EXPECT_EQ(EncodeValue(E::kF8E5M2, 1e9f), 0x7c);
  EXPECT_EQ(EncodeValue(E::kF8E4M3FN, -1e9f), 0xff);
  EXPECT_EQ(EncodeValue(E::kF8E4M3FNUZ, 1e9f), 0x80);
  EXPECT_EQ(EncodeValue(E::kF4E2M1FN, -1e9f), 0xf);
  EXPECT_EQ(EncodeValue(E::kF8E4M3FN, HUGE_VALF), 0x7f);
}

TEST(Reduce, AgreesWithTheDefinitionForEveryTypeKindAndNumberOfSources) {
  for (E type : testing::ReducibleTypes()) {
    for (ReduceKind kind : testing::AllKinds()) {
      if (!CheckReduction(kind, type).ok()) continue;
      for (int n = 1; n <= 9; ++n) {
        constexpr int64_t kFirst = 3;
        constexpr int64_t kCount = 1030;
        std::vector<testing::Bytes> inputs;
        std::vector<const void*> sources;
        for (int r = 0; r < n; ++r) {
          inputs.push_back(testing::Data(r, 77 + n, type, kFirst + kCount));
        }
        for (const auto& input : inputs) sources.push_back(input.data());
        testing::Bytes out(inputs[0].size());
        void* outs[] = {out.data()};
        ReduceRange(kind, type, sources, outs, kFirst, kCount);
        out.erase(out.begin(), out.begin() + kFirst * ElementTypeBytes(type));
        EXPECT_EQ(out, testing::ReferenceReduce(kind, type, inputs, kFirst, kCount))
            << ReduceKindName(kind) << " " << ElementTypeName(type) << " of " << n;
      }
    }
  }
}

TEST(Reduce, NarrowFloatsAreRoundedOnceAtTheEnd) {
  const auto bf16 = [](float value) { return static_cast<uint16_t>(EncodeValue(E::kBF16, value)); };
  // Rounded at every step, 256 + 1 stays 256.
  EXPECT_EQ(Reduce<uint16_t>(ReduceKind::kSum, E::kBF16, {bf16(256), bf16(1), bf16(1)}), bf16(258));
}

TEST(Reduce, AKindThatIsNoneIsRefused) {
  const absl::Status status = CheckReduction(static_cast<ReduceKind>(200), ElementType::kF32);
  EXPECT_EQ(DiagnosticCode(status), "E306") << status;
}

TEST(Reduce, FoldsFromTheLeft) {
  EXPECT_EQ(Reduce<float>(ReduceKind::kSum, E::kF32, {1e8f, 1.0f, -1e8f}), 0.0f);
  EXPECT_EQ(Reduce<float>(ReduceKind::kSum, E::kF32, {1e8f, -1e8f, 1.0f}), 1.0f);
}

TEST(Reduce, MaxAndMinPassNanOnFromAnyPlace) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin}) {
    for (int at = 0; at < 5; ++at) {
      std::vector<float> values = {1, 2, 3, 2, 1};
      values[at] = nan;
      EXPECT_TRUE(std::isnan(Reduce<float>(kind, E::kF32, values))) << at;
    }
  }
}

// As on one device, whatever the order and the number of devices.
TEST(Reduce, MaxOfZerosIsPlusZeroAndMinMinusZeroInAnyOrder) {
  const auto check = [](auto plus, auto minus, E type) {
    for (size_t n = 2; n <= 9; ++n) {
      for (size_t other = 0; other < n; ++other) {
        std::vector<decltype(plus)> low(n, minus), high(n, plus);
        low[other] = plus;
        high[other] = minus;
        const auto max = Reduce(ReduceKind::kMax, type, low);
        const auto min = Reduce(ReduceKind::kMin, type, high);
        EXPECT_EQ(std::memcmp(&max, &plus, sizeof plus), 0) << ElementTypeName(type) << " " << n;
        EXPECT_EQ(std::memcmp(&min, &minus, sizeof plus), 0) << ElementTypeName(type) << " " << n;
      }
    }
  };
  check(0.f, -0.f, E::kF32);
  check(0., -0., E::kF64);
  for (const E type : NarrowTypes()) {
    const int minus = EncodeValue(type, -0.f);
    if (minus != 0) check(uint16_t{0}, static_cast<uint16_t>(minus), type);
  }
}

TEST(Reduce, IntegersWrap) {
  EXPECT_EQ(Reduce<int8_t>(ReduceKind::kSum, E::kS8, {127, 1}), -128);
  EXPECT_EQ(Reduce<int8_t>(ReduceKind::kSum, E::kS4, {7, 1}), -8);
  EXPECT_EQ(Reduce<uint8_t>(ReduceKind::kSum, E::kU4, {15, 3}), 2);
  EXPECT_EQ(Reduce<uint16_t>(ReduceKind::kProduct, E::kU16, {65535, 65535}), 1);
}

TEST(Reduce, PredSumsAreOrAndProductsAnd) {
  EXPECT_EQ(Reduce<uint8_t>(ReduceKind::kSum, E::kPred, {1, 1, 0}), 1);
  EXPECT_EQ(Reduce<uint8_t>(ReduceKind::kProduct, E::kPred, {1, 1, 0}), 0);
}

TEST(Reduce, RefusesWhatHasNoMeaning) {
  for (auto [kind, type] :
       std::vector<std::pair<ReduceKind, E>>{{ReduceKind::kXor, E::kF32},
                                             {ReduceKind::kAnd, E::kBF16},
                                             {ReduceKind::kMin, E::kC128},
                                             {ReduceKind::kSum, E::kTuple},
                                             {ReduceKind::kSum, E::kF8E8M0FNU}}) {
    EXPECT_EQ(DiagnosticCode(CheckReduction(kind, type)), "E306") << ElementTypeName(type);
  }
}

}  // namespace
}  // namespace shardcall
