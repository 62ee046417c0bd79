// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/narrow_float.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace shardcall {
namespace {

constexpr ElementType kNarrow[] = {
    ElementType::kF16,        ElementType::kBF16,       ElementType::kF8E5M2,
    ElementType::kF8E4M3,     ElementType::kF8E3M4,     ElementType::kF8E4M3FN,
    ElementType::kF8E4M3FNUZ, ElementType::kF8E5M2FNUZ, ElementType::kF8E4M3B11FNUZ,
    ElementType::kF8E8M0FNU,  ElementType::kF6E3M2FN,   ElementType::kF6E2M3FN,
    ElementType::kF4E2M1FN};

float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

uint32_t EncodeOne(ElementType type, float value) {
  uint16_t code = 0;
  StoreFloats(type, &value, 1, &code);
  return code;
}

float DecodeOne(ElementType type, uint16_t code) {
  float value = 0;
  LoadFloats(type, &code, 1, &value);
  return value;
}

bool IsNanCode(ElementType type, uint32_t code) { return std::isnan(FloatFromBits(type, code)); }

// Checks every line of a table, see make_narrow_float_table.py.
int CheckTable(std::istream& table) {
  int lines = 0;
  std::string kind, name, from_text, to_text;
  while (table >> kind >> name >> from_text >> to_text) {
    ++lines;
    const ElementType type = ElementTypeFromName(name);
    const auto from = static_cast<uint32_t>(std::stoul(from_text, nullptr, 16));
    const auto to = static_cast<uint32_t>(std::stoul(to_text, nullptr, 16));
    // ml_dtypes rounds what lies just above 2^-127 up to 2^-126: not to nearest.
    if (kind == "e" && type == ElementType::kF8E8M0FNU && !std::isnormal(FromBits(from))) continue;
    if (kind == "e") {
      const uint32_t code = EncodeOne(type, FromBits(from));
      const bool both_nan = IsNanCode(type, code) && IsNanCode(type, to);
      EXPECT_TRUE(code == to || both_nan)
          << name << " of " << FromBits(from) << ": " << code << ", not " << to;
      EXPECT_EQ(FloatToBits(type, FromBits(from)), code) << name << " of " << FromBits(from);
    } else {
      const float value = DecodeOne(type, static_cast<uint16_t>(from));
      const bool both_nan = std::isnan(value) && std::isnan(FromBits(to));
      EXPECT_TRUE(std::bit_cast<uint32_t>(value) == to || both_nan)
          << name << " code " << from << ": " << value << ", not " << FromBits(to);
    }
    if (testing::Test::HasFailure() && lines > 50) break;
  }
  return lines;
}

TEST(NarrowFloat, ConvertsAsInTheCheckedInTable) {
  std::ifstream table(SHARDCALL_SOURCE_DIR "/tests/sharding/narrow_float_table.txt");
  EXPECT_GT(CheckTable(table), 500);
}

TEST(NarrowFloat, ConvertsAsMlDtypesDoesWherePythonHasIt) {
  const std::string command = std::string("python3 '") + SHARDCALL_SOURCE_DIR +
                              "/tests/sharding/make_narrow_float_table.py' 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  char buffer[1 << 16];
  while (const size_t n = fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, n);
  if (pclose(pipe) != 0) GTEST_SKIP() << "python3 has no ml_dtypes";
  std::istringstream table(text);
  EXPECT_GT(CheckTable(table), 20000);
}

TEST(NarrowFloat, EveryCodeSurvivesTheWayThroughF32AndF64) {
  for (ElementType type : kNarrow) {
    const uint32_t codes = 1u << ElementTypeBits(type);
    for (uint32_t code = 0; code < codes; ++code) {
      const double value = FloatFromBits(type, code);
      if (std::isnan(value)) continue;
      EXPECT_EQ(FloatToBits(type, value), code) << ElementTypeName(type);
      EXPECT_EQ(EncodeOne(type, static_cast<float>(value)), code) << ElementTypeName(type);
      EXPECT_EQ(DecodeOne(type, static_cast<uint16_t>(code)), value) << ElementTypeName(type);
    }
  }
}

TEST(NarrowFloat, F64IsRoundedOnceAndNotByWayOfF32) {
  // Just above a tie of bf16, but f32 would round it onto the tie and then down.
  const double value = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(FloatToBits(ElementType::kBF16, value), 0x3f81u);
  uint16_t code = 0;
  StoreFloats(ElementType::kBF16, &value, 1, &code);
  EXPECT_EQ(code, 0x3f81u);
}

TEST(NarrowFloat, F8E8M0FNUHoldsPositivePowersOfTwoOnly) {
  constexpr ElementType kType = ElementType::kF8E8M0FNU;
  EXPECT_EQ(FloatToBits(kType, 1), 0x7fu);
  EXPECT_EQ(FloatToBits(kType, 0x1p-127), 0u);
  EXPECT_EQ(FloatToBits(kType, 1.4 * 0x1p-127), 0u);
  EXPECT_EQ(FloatToBits(kType, 0x1p-200), 0u);
  EXPECT_EQ(FloatToBits(kType, 3), 0x81u);
  for (double none : {0.0, -1.0, HUGE_VAL, 0x1.8p127}) EXPECT_EQ(FloatToBits(kType, none), 0xffu);
}

TEST(NarrowFloat, NanStaysNanWhereThereIsOne) {
  for (ElementType type : kNarrow) {
    const double back = RoundToFloatType(type, std::numeric_limits<double>::quiet_NaN());
    if (ElementTypeBits(type) >= 8)
      EXPECT_TRUE(std::isnan(back)) << ElementTypeName(type);
    else
      EXPECT_EQ(back, 0) << ElementTypeName(type);
  }
}

}  // namespace
}  // namespace shardcall
