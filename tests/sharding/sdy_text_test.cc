// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/rule/sdy_text.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"
#include "tests/sharding/corpus.h"

namespace shardcall {
namespace {

TEST(SdyTextTest, ShardingsPrintAsTheyWereRead) {
  for (
      const char* text : {
          R"(#sdy.sharding<@mesh, [{"data"}, {?}, {"a", "b":(1)2, ?}p1], replicated={"c"}, unreduced={"d"}>)",
          R"(#sdy.sharding<@mesh, [{}, {}], unreduced=max{"d"}>)",
          R"(#sdy.sharding<mesh<["data"=4, "model"=2]>, [{"data"}p2]>)",
          R"(#sdy.sharding<mesh<["data"=4, "model"=2], device_ids=[1, 0, 2, 3, 4, 5, 6, 7]>, [{}]>)",
          R"(#sdy.sharding<@mesh, []>)",
          R"(#sdy.sharding<@mesh, [{?}p0, {"a"}p0]>)",
      }) {
    auto s = ParseSdySharding(text);
    ASSERT_TRUE(s.ok()) << s.status();
    EXPECT_EQ(SdyShardingText(*s), text);
  }
  for (const char* text : {R"(#sdy.sharding_per_value<[<@mesh, [{}]>, <@m2, [{"x", ?}]>]>)",
                           R"(#sdy.sharding_per_value<[]>)"}) {
    auto s = ParseSdyShardings(text);
    ASSERT_TRUE(s.ok()) << s.status();
    EXPECT_EQ(SdyShardingPerValueText(*s), text);
  }
  EXPECT_EQ(SdyShardingText(*ParseSdySharding(
                R"(#sdy.sharding< @mesh,[{ "a" ,?}],unreduced={"d"},replicated={"c"} >)")),
            R"(#sdy.sharding<@mesh, [{"a", ?}], replicated={"c"}, unreduced={"d"}>)");
}

TEST(SdyTextTest, MeshesPrintAsTheyWereRead) {
  for (const char* text :
       {R"({mesh = #sdy.mesh<["a"=2, "b"=4]>, maximal_mesh_0 = #sdy.mesh<[], device_ids=[0]>})",
        R"({})", R"({m = #sdy.mesh<["a"=2], device_ids=[1, 0]>})", R"({empty = #sdy.mesh<[]>})"}) {
    auto m = ParseSdyMeshes(text);
    ASSERT_TRUE(m.ok()) << m.status();
    EXPECT_EQ(SdyMeshesText(*m), text);
  }
  EXPECT_EQ(SdyMeshesText(*ParseSdyMeshes(R"({m = #sdy.mesh<["a"=2], device_ids=[0, 1]>})")),
            R"({m = #sdy.mesh<["a"=2]>})");
}

TEST(SdyTextTest, ManualAxesPrintAsTheyWereRead) {
  for (const char* text : {R"(#sdy<manual_axes{"a", "b"}>)", "#sdy<manual_axes{}>"}) {
    auto a = ParseSdyManualAxes(text);
    ASSERT_TRUE(a.ok()) << a.status();
    EXPECT_EQ(SdyManualAxesText(*a), text);
  }
}

TEST(SdyTextTest, BadTextsAreErrorsWithACaret) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "E161"},
      {"#sdy.sharding<@mesh, [{\"a\"]>", "E161"},
      {"#sdy.sharding<@, [{\"a\"}]>", "E161"},
      {"#sdy.sharding<@mesh [{\"a\"}]>", "E161"},
      {"#sdy.sharding<@mesh, [{?, \"a\"}]>", "E161"},
      {"#sdy.sharding<@mesh, [{\"a\":(0)2}]>", "E161"},
      {"#sdy.sharding<@mesh, [{\"a\":2}]>", "E161"},
      {"#sdy.sharding<@mesh, [{}]p99999999999>", "E161"},
      {"#sdy.sharding<@mesh, [{}p99999999]>", "E161"},
      {"#sdy.sharding<@mesh, [{}], replicated={}, replicated={}>", "E161"},
      {"#sdy.sharding<@mesh, [{}]> x", "E161"},
      {"#sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{}]>]>", "E161"},
      {"#sdy.sharding<mesh<[\"a\"=0]>, [{}]>", "E160"},
      {"#sdy.sharding<mesh<[\"a\"=2], device_ids=[0, 1, 2]>, [{}]>", "E161"},
      {"#sdy.sharding<mesh<[\"a\"=2], device_ids=[0, 2]>, [{}]>", "E160"},
  };
  for (const auto& [text, code] : cases) {
    auto s = ParseSdySharding(text);
    ASSERT_FALSE(s.ok()) << text;
    EXPECT_EQ(DiagnosticCode(s.status()), code) << s.status();
  }
  EXPECT_EQ(DiagnosticCode(ParseSdyMeshes("{m = #sdy.mesh<[]>, m = #sdy.mesh<[]>}").status()),
            "E160");
  EXPECT_EQ(ParseSdySharding("#sdy.sharding<@mesh, [{\"a\"]>").status().message(),
            "E161 malformed sharding at column 27: expected '}', found ']'\n"
            "  #sdy.sharding<@mesh, [{\"a\"]>\n"
            "                            ^");
}

TEST(SdyTextTest, EveryAttributeOfTheCorpusPrintsAsItWasRead) {
  int count = 0;
  for (const char* key : {"xla.sdy.sharding=", "xla.sdy.in_shardings=", "xla.sdy.out_shardings="}) {
    for (const std::string& text : CorpusTexts(key)) {
      auto s = ParseSdyShardings(text);
      ASSERT_TRUE(s.ok()) << s.status();
      const bool per_value = text.find("per_value") != std::string::npos;
      EXPECT_EQ(per_value ? SdyShardingPerValueText(*s) : SdyShardingText((*s)[0]), text);
      ++count;
    }
  }
  for (const std::string& text : CorpusTexts("xla.sdy.meshes=")) {
    auto m = ParseSdyMeshes(text);
    ASSERT_TRUE(m.ok()) << m.status();
    EXPECT_EQ(SdyMeshesText(*m), text);
    ++count;
  }
  for (const std::string& text : CorpusTexts("xla.sdy.manual_axes=")) {
    auto a = ParseSdyManualAxes(text);
    ASSERT_TRUE(a.ok()) << a.status();
    EXPECT_EQ(SdyManualAxesText(*a), text);
    ++count;
  }
  EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace shardcall
