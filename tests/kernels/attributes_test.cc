// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/attributes.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

AttributeMapView Parsed(absl::string_view text) {
  auto map = AttributeMapView::Parse(text);
  EXPECT_TRUE(map.ok()) << map.status();
  return map.ok() ? *std::move(map) : AttributeMapView();
}

const AttributeScalar& Scalar(const AttributeMapView& map, absl::string_view name) {
  return absl::get<AttributeScalar>(map.Find(name)->value);
}
const AttributeArray& Array(const AttributeMapView& map, absl::string_view name) {
  return absl::get<AttributeArray>(map.Find(name)->value);
}

TEST(Attributes, ReadsEveryKindThatJaxWrites) {
  const AttributeMapView map =
      Parsed(R"({empty = "", f32 = 1.000000e-01 : f32, f64 = 1.000000e-300 : f64, flag = true, )"
             R"(floats = dense<[5.000000e-01, -1.500000e+00]> : tensor<2xf32>, i32 = 7 : i32, )"
             R"(i64 = -1099511627776 : i64, i8 = -3 : i8, inf = 0x7F800000 : f32, )"
             R"(ints = dense<[1, 2, 3]> : tensor<3xi64>, matrix = dense<[[1, 2], [3, 4]]> : )"
             R"(tensor<2x2xi32>, nested = {a = 1 : i64, b = "two", c = false}, )"
             R"(text = "quote \22 back\\slash, {brace}", )"
             R"(u64 = 4611686018427387904 : ui64, u8 = 200 : ui8})");
  EXPECT_EQ(map.entries().size(), 15);
  EXPECT_EQ(*map.GetString("empty", "x"), "");
  EXPECT_EQ(*map.GetFloat("f32", 0), 0.1f);
  EXPECT_EQ(*map.GetFloat("f64", 0), 1e-300);
  EXPECT_EQ(*map.GetBool("flag", false), true);
  EXPECT_THAT(Array(map, "floats").floats, ElementsAre(0.5, -1.5));
  EXPECT_EQ(*map.GetInt("i32", 0), 7);
  EXPECT_EQ(*map.GetInt("i64", 0), -(int64_t{1} << 40));
  EXPECT_EQ(*map.GetInt("i8", 0), -3);
  EXPECT_EQ(Scalar(map, "i8").type, ElementType::kS8);
  EXPECT_EQ(*map.GetFloat("inf", 0), HUGE_VAL);
  EXPECT_THAT(*map.GetInts("ints", {}), ElementsAre(1, 2, 3));
  EXPECT_EQ(Array(map, "ints").type, ElementType::kS64);
  EXPECT_THAT(Array(map, "matrix").ints, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(*map.GetString("text", ""), "quote \" back\\slash, {brace}");
  EXPECT_EQ(*map.GetInt("u64", 0), int64_t{1} << 62);
  EXPECT_EQ(Scalar(map, "u8").i, 200);
  EXPECT_EQ(Scalar(map, "u8").type, ElementType::kU8);
  const auto& nested = absl::get<Attribute::Dictionary>(map.Find("nested")->value);
  ASSERT_EQ(nested.size(), 3);
  EXPECT_EQ(nested[1].first, "b");
  EXPECT_EQ(absl::get<std::string>(nested[1].second.value), "two");
}

TEST(Attributes, BlankTextAndBracesAreTheEmptyMap) {
  for (const char* text : {"", "  ", "{}", " { } "}) {
    EXPECT_TRUE(Parsed(text).entries().empty()) << text;
  }
}

TEST(Attributes, AbsentAttributesTakeTheDefault) {
  const AttributeMapView map = Parsed("{a = 1 : i32}");
  EXPECT_EQ(*map.GetInt("b", 5), 5);
  EXPECT_EQ(*map.GetFloat("b", 0.5), 0.5);
  EXPECT_EQ(*map.GetBool("b", true), true);
  EXPECT_EQ(*map.GetString("b", "x"), "x");
  EXPECT_THAT(*map.GetInts("b", {3, 4}), ElementsAre(3, 4));
  EXPECT_EQ(map.Find("b"), nullptr);
}

TEST(Attributes, EntriesAreSortedByName) {
  const AttributeMapView map = Parsed(R"({b = 1 : i32, "a b" = 2 : i32, B = 3 : i32})");
  std::vector<std::string> names;
  for (const auto& e : map.entries()) names.push_back(e.first);
  EXPECT_THAT(names, ElementsAre("B", "a b", "b"));
}

TEST(Attributes, ASplatFillsItsTensor) {
  const AttributeMapView map = Parsed(
      "{a = dense<5> : tensor<3xi64>, b = dense<1.5> : tensor<2x2xf16>, c = dense<true> : "
      "tensor<2xi1>, d = dense<128> : tensor<2xi64>}");
  EXPECT_THAT(Array(map, "a").ints, ElementsAre(5, 5, 5));
  EXPECT_THAT(Array(map, "b").floats, ElementsAre(1.5, 1.5, 1.5, 1.5));
  EXPECT_EQ(Array(map, "b").type, ElementType::kF16);
  EXPECT_THAT(Array(map, "c").ints, ElementsAre(1, 1));
  EXPECT_EQ(Array(map, "c").type, ElementType::kPred);
}

TEST(Attributes, EmptyTensorsAndArraysHaveNoElements) {
  const AttributeMapView map = Parsed(
      "{a = dense<> : tensor<0xi64>, b = dense<[]> : tensor<0xf32>, c = array<i64>, "
      "d = dense<[[], []]> : tensor<2x0xi32>}");
  for (const char* name : {"a", "b", "c", "d"}) {
    EXPECT_TRUE(Array(map, name).ints.empty() && Array(map, name).floats.empty()) << name;
  }
  EXPECT_EQ(Array(map, "b").type, ElementType::kF32);
}

TEST(Attributes, ADenseArrayHasItsTypeFirst) {
  const AttributeMapView map =
      Parsed("{a = array<i64: 128, -1>, b = array<f32: 0.1, 2.0e0>, c = array<i1: true, false>}");
  EXPECT_THAT(*map.GetInts("a", {}), ElementsAre(128, -1));
  EXPECT_THAT(Array(map, "b").floats, ElementsAre(0.1f, 2.0));
  EXPECT_THAT(Array(map, "c").ints, ElementsAre(1, 0));
}

TEST(Attributes, RawBytesAreLittleEndianElements) {
  const AttributeMapView map =
      Parsed(R"({a = dense<"0x01000000FEFFFFFF"> : tensor<2xi32>, )"
             R"(b = dense<"0x0000803F"> : tensor<3xf32>, )"
             R"(c = dense<"0x803F"> : tensor<1xbf16>, d = dense<"0xFF"> : tensor<1xui8>})");
  EXPECT_THAT(Array(map, "a").ints, ElementsAre(1, -2));
  EXPECT_THAT(Array(map, "b").floats, ElementsAre(1, 1, 1));
  EXPECT_THAT(Array(map, "c").floats, ElementsAre(1));
  EXPECT_THAT(Array(map, "d").ints, ElementsAre(255));
}

TEST(Attributes, FloatBitsAreReadInTheTypesOwnWidth) {
  const AttributeMapView map = Parsed(
      "{a = 0xFF80 : bf16, b = 0x7C00 : f16, c = 0x7FF0000000000000 : f64, d = 0x7FC00000 : f32, "
      "e = 0x7F : f8E4M3FN, f = 2.0 : f8E5M2}");
  EXPECT_EQ(*map.GetFloat("a", 0), -HUGE_VAL);
  EXPECT_EQ(*map.GetFloat("b", 0), HUGE_VAL);
  EXPECT_EQ(*map.GetFloat("c", 0), HUGE_VAL);
  EXPECT_TRUE(std::isnan(*map.GetFloat("d", 0)));
  EXPECT_TRUE(std::isnan(*map.GetFloat("e", 0)));
  EXPECT_EQ(*map.GetFloat("f", 0), 2);
  EXPECT_EQ(Scalar(map, "f").type, ElementType::kF8E5M2);
}

TEST(Attributes, IntegersKeepTheirBitsToTheEndsOfTheirRange) {
  const AttributeMapView map = Parsed(
      "{a = 18446744073709551615 : ui64, b = -9223372036854775808 : i64, c = 255 : i8, "
      "d = -128 : i8, e = 3, f = 2.5, g = 0x10 : i32, h = -1 : index}");
  EXPECT_EQ(Scalar(map, "a").i, -1);
  EXPECT_FALSE(map.GetInt("a", 0).ok());
  EXPECT_EQ(*map.GetInt("b", 0), INT64_MIN);
  EXPECT_EQ(*map.GetInt("c", 0), -1);
  EXPECT_EQ(*map.GetInt("d", 0), -128);
  EXPECT_EQ(Scalar(map, "e").type, ElementType::kS64);
  EXPECT_EQ(Scalar(map, "f").type, ElementType::kF64);
  EXPECT_EQ(*map.GetInt("g", 0), 16);
  EXPECT_EQ(*map.GetInt("h", 0), -1);
}

TEST(Attributes, StringsUnescapeHexAndNamedEscapes) {
  const AttributeMapView map = Parsed(R"({a = "\00\FF\0A", b = "\"\\\n\t", c = "\E2\82\AC"})");
  EXPECT_EQ(*map.GetString("a", ""), std::string("\0\xff\n", 3));
  EXPECT_EQ(*map.GetString("b", ""), "\"\\\n\t");
  EXPECT_EQ(*map.GetString("c", ""), "\u20ac");
}

TEST(Attributes, AnotherKindThanAskedForIsAnError) {
  const AttributeMapView map =
      Parsed(R"({b = true, i = 1 : i64, f = 1.0 : f32, s = "x", a = dense<1.0> : tensor<1xf32>})");
  for (const absl::Status& status :
       {map.GetInt("b", 0).status(), map.GetInt("f", 0).status(), map.GetInt("s", 0).status(),
        map.GetFloat("i", 0).status(), map.GetBool("i", false).status(),
        map.GetString("i", "").status(), map.GetInts("a", {}).status(),
        map.GetInt("a", 0).status()}) {
    EXPECT_EQ(DiagnosticCode(status), "E131") << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("found"));
  }
}

TEST(Attributes, AnUnknownNameIsRefusedWithTheNearestKnownOne) {
  const AttributeMapView map = Parsed("{causal = true, windw = 3 : i64}");
  EXPECT_TRUE(map.OnlyKnown({"causal", "windw"}).ok());
  const absl::Status status = map.OnlyKnown({"causal", "window", "scale"});
  EXPECT_EQ(DiagnosticCode(status), "E131");
  EXPECT_THAT(std::string(status.message()), HasSubstr("Write window"));
}

TEST(Attributes, MalformedTextIsAnErrorWithItsColumn) {
  const char* const kBad[] = {
      "x",
      "{",
      "{a}",
      "{a = }",
      "{a = 1",
      "{a = 1 : i64,}",
      "{a = 1 : i64 b = 2 : i64}",
      "{a = 1 : i64} x",
      "{a = 1 : i64, a = 2 : i64}",
      "{= 1 : i64}",
      "{a = 1 : q7}",
      "{a = 1 : }",
      "{a = 256 : ui8}",
      "{a = -1 : ui8}",
      "{a = 300 : i8}",
      "{a = -129 : i8}",
      "{a = 99999999999999999999 : i64}",
      "{a = 1.5 : i32}",
      "{a = true : i1 : i1}",
      "{a = abc : f32}",
      "{a = 1.0x : f32}",
      "{a = nan : f32}",
      "{a = 0x1FFFFFFFF : f32}",
      "{a = \"open}",
      "{a = \"bad \\q\"}",
      "{a = \"bad \\4\"}",
      "{a = dense<[1, 2]> : tensor<3xi64>}",
      "{a = dense<[1, 2] : tensor<2xi64>}",
      "{a = dense<[[1], [2, 3]]> : tensor<2x2xi64>}",
      "{a = dense<[1, [2]]> : tensor<2xi64>}",
      "{a = dense<[[1], 2]> : tensor<2xi64>}",
      "{a = dense<[1,]> : tensor<1xi64>}",
      "{a = dense<[1 2]> : tensor<2xi64>}",
      "{a = dense<1> : tensor<?xi64>}",
      "{a = dense<1> : tensor<99999999999xi64>}",
      "{a = dense<1> : tensor<9999999x9999999x9999999xi64>}",
      "{a = dense<1> : i64}",
      "{a = dense<> : tensor<2xi64>}",
      "{a = dense<\"0x01\"> : tensor<1xi64>}",
      "{a = dense<\"0xZZ\"> : tensor<1xui8>}",
      "{a = dense<\"01\"> : tensor<1xui8>}",
      "{a = array<i64: >}",
      "{a = array<: 1>}",
      "{a = array<i64: 1, 2}",
      "{a = [1, 2]}",
      "{a = @symbol}",
      "{a = dense_resource<x> : tensor<1xi8>}",
      "{a = {b = }}",
  };
  for (const char* text : kBad) {
    const absl::Status status = AttributeMapView::Parse(text).status();
    EXPECT_EQ(DiagnosticCode(status), "E131") << text << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("column")) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("^")) << text;
  }
}

TEST(Attributes, EveryPrefixOfGoodTextIsAnErrorAndNotACrash) {
  const std::string text =
      R"({a = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>, b = array<f32: 1.0>, c = "\22", )"
      R"(d = {e = 0x7F800000 : f32}, f = dense<"0x01000000"> : tensor<1xi32>})";
  EXPECT_TRUE(AttributeMapView::Parse(text).ok());
  for (size_t n = 1; n < text.size(); ++n) {
    EXPECT_FALSE(AttributeMapView::Parse(text.substr(0, n)).ok()) << n;
  }
}

TEST(Attributes, DeepNestingIsAnErrorAndNotAStackOverflow) {
  std::string text = "1";
  std::string open;
  for (int i = 0; i < 100000; ++i) open += "{a = ";
  EXPECT_EQ(DiagnosticCode(AttributeMapView::Parse(open).status()), "E131");
  EXPECT_EQ(
      DiagnosticCode(
          AttributeMapView::Parse(absl::StrCat("{a = dense<", std::string(100000, '['))).status()),
      "E131");
}

}  // namespace
}  // namespace shardcall
