// SPDX-License-Identifier: Apache-2.0
// The numbers of a backend_config, by their names, in each of its forms.
#include "shardcall/kernels/ffi/config_numbers.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using testing::ElementsAre;

std::vector<std::string> Names(const ConfigNumbers& numbers) {
  std::vector<std::string> names;
  for (const NumberPlace& n : numbers.numbers()) names.push_back(n.name);
  return names;
}

ConfigNumbers Read(const std::string& text) {
  auto numbers = ConfigNumbers::Read(text);
  EXPECT_TRUE(numbers.ok()) << numbers.status();
  return numbers.ok() ? *std::move(numbers) : *ConfigNumbers::Read("");
}

TEST(ConfigNumbers, OfADictionaryHaveTheirTypes) {
  const ConfigNumbers numbers = Read(
      "{a = -3 : i8, b = {c = 7, \"d e\" = 0x10 : ui16}, f = 1.5 : f32, flag = true, s = \"n = "
      "1\", "
      "all = dense<2> : tensor<2xi32>, list = dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>, "
      "short = array<i32: 5>}");
  EXPECT_THAT(Names(numbers), ElementsAre("a", "b.c", "b.d e", "f", "flag", "all", "list[0]",
                                          "list[1]", "list[2]", "list[3]", "short[0]"));
  EXPECT_EQ(numbers.Find("a")->value, -3);
  EXPECT_EQ(numbers.Find("a")->type, ElementType::kS8);
  EXPECT_EQ(numbers.Find("b.c")->type, ElementType::kS64);
  EXPECT_EQ(numbers.Find("b.d e")->value, 16);
  EXPECT_EQ(numbers.Find("f")->type, ElementType::kF32);
  EXPECT_EQ(numbers.Find("flag")->type, ElementType::kPred);
  EXPECT_EQ(numbers.Find("list[2]")->value, 3);
  EXPECT_EQ(numbers.Find("n"), nullptr);
}

TEST(ConfigNumbers, OthersStandInTheirPlacesWhateverTheirOrder) {
  const ConfigNumbers numbers = Read("{a = 1, b = 22, c = dense<3> : tensor<2xi32>}");
  const std::vector<std::pair<size_t, int64_t>> values = {{2, -7}, {0, 1000}};
  EXPECT_EQ(numbers.With(values), "{a = 1000, b = 22, c = dense<-7> : tensor<2xi32>}");
}

TEST(ConfigNumbers, OfJsonAreIntegersAndOthers) {
  const ConfigNumbers numbers = Read(
      "{\"grid\": [4, 2], \"more\": {\"n\": -1, \"eps\": 0.5}, \"large\": "
      "18446744073709551615, \"s\": \"1\", \"flag\": true}");
  EXPECT_THAT(Names(numbers), ElementsAre("grid[0]", "grid[1]", "more.n", "more.eps", "large"));
  EXPECT_EQ(numbers.Find("more.n")->value, -1);
  EXPECT_EQ(numbers.Find("more.eps")->type, ElementType::kF64);
  EXPECT_EQ(numbers.Find("large")->type, ElementType::kF64);  // beyond 64 bits with a sign
  EXPECT_EQ(numbers.With({{1, 9}}),
            "{\"grid\":[4,9],\"more\":{\"n\":-1,\"eps\":0.5},\"large\":18446744073709551615,"
            "\"s\":\"1\",\"flag\":true}");
}

TEST(ConfigNumbers, TextOfNoFormIsE131) {
  std::string deep = "{\"a\":";
  for (int k = 0; k < 10000; ++k) deep += "[";
  deep += "1";
  for (int k = 0; k < 10000; ++k) deep += "]";
  for (const std::string& text : {std::string("rows"), std::string("{\"a\": }"), deep + "}"}) {
    EXPECT_EQ(DiagnosticCode(ConfigNumbers::Read(text).status()), "E131") << text.substr(0, 40);
  }
}

}  // namespace
}  // namespace shardcall
