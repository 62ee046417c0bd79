// SPDX-License-Identifier: Apache-2.0
// The attributes of a backend_config, in each of its forms.
#include "shardcall/kernels/ffi/config_attributes.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

AttributeMapView Read(const std::string& text) {
  auto attributes = AttributesOfConfig(text);
  EXPECT_TRUE(attributes.ok()) << attributes.status();
  return attributes.ok() ? *std::move(attributes) : AttributeMapView();
}

std::vector<std::string> Described(const AttributeMapView& attributes) {
  std::vector<std::string> out;
  for (const auto& [name, a] : attributes.entries())
    out.push_back(name + ": " + DescribeAttribute(a));
  return out;
}

TEST(ConfigAttributes, OfADictionaryAreItsOwnAlsoWithinJson) {
  EXPECT_THAT(Described(Read("{n = 3 : i32, s = \"x\"}")), ElementsAre("n: an s32", "s: a string"));
  EXPECT_THAT(Described(Read("{\"operation_queue_id\":\"0\",\"custom_call_backend_config\":"
                             "{\"attributes\":\"{n = 3 : i32}\"}}")),
              ElementsAre("n: an s32"));
  EXPECT_THAT(Read("").entries(), IsEmpty());
  EXPECT_THAT(Read("{}").entries(), IsEmpty());
}

TEST(ConfigAttributes, OfJsonAreItsMembers) {
  const AttributeMapView a = Read(
      " {\"mode\": -1, \"b\": 0.5, \"flag\": true, \"s\": \"gelu\", \"none\": null, \"list\": [1, "
      "2], "
      "\"more\": {\"n\": 7}, \"large\": 18446744073709551615}");
  EXPECT_THAT(Described(a),
              ElementsAre("b: an f64", "flag: a pred", "large: a u64", "list: an array of invalid",
                          "mode: an s64", "more: a dictionary", "s: a string"));
  EXPECT_EQ(a.GetInt("mode", 0).value(), -1);
  EXPECT_EQ(a.GetFloat("b", 0).value(), 0.5);
  EXPECT_EQ(a.GetBool("flag", false).value(), true);
  EXPECT_EQ(a.GetString("s", "").value(), "gelu");
  EXPECT_EQ(a.Find("none"), nullptr);
}

TEST(ConfigAttributes, OfOtherTextsAreE131) {
  for (const char* text : {"gelu", "[1, 2]", "{\"a\": 1", "{\"a\": 1} 2", "{a = }"}) {
    EXPECT_EQ(DiagnosticCode(AttributesOfConfig(text).status()), "E131") << text;
  }
}

}  // namespace
}  // namespace shardcall
