// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/hlo_sharding.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"
#include "tests/sharding/corpus.h"

namespace shardcall {
namespace {

std::string RoundTrip(const std::string& text) {
  auto s = ParseHloSharding(text);
  return s.ok() ? s->Print() : s.status().ToString();
}

// Both tables are what XLA's parser and printer gave.
TEST(HloShardingTest, CanonicalTextsPrintAsTheyWereRead) {
  for (
      const char* text : {
          R"({devices=[2,4]0,1,2,3,4,5,6,7})",
          R"({devices=[4,2]0,2,4,6,1,3,5,7})",
          R"({devices=[4,2]3,1,2,0,7,6,4,5})",
          R"({devices=[2,4]<=[2,2,2]T(0,2,1)})",
          R"({devices=[1,1]<=[1]})",
          R"({devices=[2,2,2]<=[8] last_tile_dims={manual}})",
          R"({devices=[1,2,4]<=[8] last_tile_dims={unreduced}})",
          R"({devices=[2,4]<=[8] metadata={op_name="foo"}})",
          R"({devices=[2,4]<=[8] shard_as 3})",
          R"({devices=[2,4]<=[8] shard_like 3})",
          R"({devices=[2,4]<=[8] shard_like 3 metadata={op_name="foo"}})",
          R"({replicated metadata={op_type="a" op_name="foo" source_file="x.py" source_line=3}})",
          R"({replicated shard_as 1})",
          R"({manual shard_as 1})",
          R"({unreduced})",
          R"({unknown})",
          R"({unknown shard_like 7})",
          R"({maximal device=3})",
          R"({maximal device=3 shard_as 1})",
          R"({{replicated}})",
          R"({})",
          R"({devices=[8]<=[8]})",
          R"({devices=[3,3]<=[9]})",
          R"({devices=[2,4]0,1,2,3,4,5,6,6})",
          R"({devices=[2,2]0,1,2,7})",
          R"({devices=[1,2,4]0,1,2,3,4,5,6,7 last_tile_dim_replicate})",
          R"({mesh['a'=2,'b'=4], [{'a'}, {'b'}]})",
          R"({mesh['a'=2,'b'=4], [{'b':(2)2, ?}, {'a'}]})",
          R"({mesh['a'=2,'b'=4], [{}, {'a'}], replicated={'b'}})",
          R"({mesh['a'=2,'b'=4], [{}, {'a'}], unreduced={'b'}})",
          R"({mesh['a'=2,'b'=4], [{}, {'a'}], manual={'b'}})",
          R"({mesh['a'=2,'b'=4,'c'=2], [{}, {}], replicated={'a'}, unreduced={'c'}, manual={'b'}})",
          R"({mesh['a'=2,'b'=4], device_ids=(1,0,2,3,4,5,6,7), [{'a'}, {'b'}]})",
          R"({mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)), [{'a'}, {'b'}]})",
          R"({mesh['a'=2,'b'=4], device_ids=(0,2,4,6,1,3,5,7), [{'a'}, {'b'}]})",
          R"({mesh['a'=2,'b'=4], replicated})",
          R"({mesh['a'=2,'b'=4], manual})",
          R"({mesh['a'=2,'b'=4], unreduced})",
          R"({mesh['a'=2,'b'=4], [{}, {}]})",
          R"({mesh['a'=2,'b'=4], [{?}, {?}]})",
          R"({mesh['a'=8,'b'=1], [{'a'}, {'b'}]})",
          R"({maximal_mesh[device_id=0]})",
          R"({maximal_mesh[device_id=5]})",
          R"({mesh[], replicated})",
          R"({mesh['a'=2,'b'=4], [{'a'}]})",
          R"({mesh['b'=4,'a'=2], [{'b':(1)2}, {'a'}], replicated={'b':(2)2}})",
          R"({{replicated}, {mesh['a'=8], [{'a'}, {}]}})",
          R"({{replicated metadata={op_name="x"}}, {devices=[2,4]<=[8]}})",
          R"({devices=[1]<=[1]})",
          R"({mesh['a'=2,'b'=4], [{'b', 'a'}, {}]})",
          R"({mesh['a'=2,'b'=4,'c'=2], [{'b':(1)2, 'a', 'b':(2)2}, {}]})",
          R"({replicated metadata={}})",
          R"({devices=[2,1,4]<=[8] last_tile_dim_replicate shard_as 1 metadata={op_name="a"}})",
          R"({replicated metadata={op_name="a" stack_frame_id=1}})",
          R"({mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)), replicated})",
          R"({mesh['a'=2,'b'=2], device_ids=(3,1,2,0), replicated})",
          R"({mesh['a'=2,'b'=4], [], manual={'a'}})",
          R"({mesh['a'=2,'b'=4], [], replicated={'a'}})",
          R"({devices=[1,2,4]<=[8] last_tile_dims={manual}})",
          R"({devices=[2,4]<=[8] last_tile_dims={manual, replicated}})",
          R"({mesh['x'=2], [{}], unreduced=max{'x'}})",
      }) {
    EXPECT_EQ(RoundTrip(text), text);
  }
}

TEST(HloShardingTest, OtherTextsPrintInXlasCanonicalForm) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({devices=[2,4]<=[2,4]T(0,1)})", R"({devices=[2,4]<=[8]})"},
      {R"({devices=[2,4]<=[4,1,2]T(2,1,0)})", R"({devices=[2,4]<=[4,2]T(1,0)})"},
      {R"({devices=[2,2,1,2]<=[8] last_tile_dims={replicated, manual}})",
       R"({devices=[2,2,2]<=[8] last_tile_dims={manual}})"},
      {R"({devices=[1,2,2,2]<=[8] last_tile_dims={replicated, manual}})",
       R"({devices=[1,2,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={manual, replicated}})"},
      {R"({devices=[1,2,2,2]<=[8] last_tile_dims={manual, manual}})",
       R"({devices=[1,2,4]<=[8] last_tile_dims={manual}})"},
      {R"({devices=[2,2,1,2]<=[8] last_tile_dims={manual, replicated}})",
       R"({devices=[2,2,2]<=[8] last_tile_dim_replicate})"},
      {R"({devices=[2,2,1,2]<=[8] last_tile_dims={manual,replicated}})",
       R"({devices=[2,2,2]<=[8] last_tile_dim_replicate})"},
      {R"({devices=[2,2,2]<=[8] last_tile_dims={replicated}})",
       R"({devices=[2,2,2]<=[8] last_tile_dim_replicate})"},
      {R"({devices=[4,2,1]<=[8] last_tile_dim_replicate})", R"({devices=[4,2]<=[8]})"},
      {R"({devices=[1,1,8]<=[8] last_tile_dim_replicate})", R"({replicated})"},
      {R"({devices=[1,1,8]<=[8] last_tile_dims={manual}})", R"({manual})"},
      {R"({devices=[1,1,8]<=[8] last_tile_dims={unreduced}})", R"({unreduced})"},
      {R"({devices=[1,2,2,2]<=[8] last_tile_dims={replicated,unreduced}})",
       R"({devices=[1,2,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={unreduced, replicated}})"},
      {R"({devices=[1,2,2,2]<=[8] last_tile_dims={unreduced,manual}})",
       R"({devices=[1,2,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={manual, unreduced}})"},
      {R"({devices=[1,2,1,2,2]<=[8] last_tile_dims={unreduced,manual,replicated}})",
       R"({devices=[1,2,2,2]<=[8] last_tile_dims={manual, replicated}})"},
      {R"({devices=[1,1,2,4]<=[8] last_tile_dims={manual,replicated}})",
       R"({devices=[1,1,2,4]<=[8] last_tile_dims={manual, replicated}})"},
      {R"({devices=[1,1,1,8]<=[8] last_tile_dims={manual,replicated}})", R"({replicated})"},
      {R"({replicated metadata={{op_name="foo"},{op_name="b"}}})",
       R"({replicated metadata={{op_name="foo"}, {op_name="b"}}})"},
      {R"({ devices=[ 2 , 4 ] <=[ 8 ] })", R"({devices=[2,4]<=[8]})"},
      {R"({devices=[2,4] <=[8]})", R"({devices=[2,4]<=[8]})"},
      {R"({devices=[2,4,1]0,1,2,3,4,5,6,7 last_tile_dim_replicate})",
       R"({devices=[2,4]0,1,2,3,4,5,6,7})"},
      {R"({devices=[1,2,4]3,1,2,0,4,5,6,7 last_tile_dim_replicate})",
       R"({devices=[1,2,4]0,1,2,3,4,5,6,7 last_tile_dim_replicate})"},
      {R"({devices=[1,2,4]3,1,2,0,6,7,4,5 last_tile_dim_replicate})",
       R"({devices=[1,2,4]0,1,2,3,4,5,6,7 last_tile_dim_replicate})"},
      {R"({devices=[1,1,2,4]3,1,2,0,6,7,4,5 last_tile_dims={manual, replicated}})",
       R"({devices=[1,1,2,4]0,1,2,3,4,5,6,7 last_tile_dims={manual, replicated}})"},
      {R"({devices=[1,1,2,4]3,1,2,0,6,7,4,5 last_tile_dims={replicated, manual}})",
       R"({devices=[1,1,4,2]3,6,1,7,2,4,0,5 last_tile_dims={manual, replicated}})"},
      {R"({mesh['a'=2,'b'=4], [{'a','b'}, {?}]})", R"({mesh['a'=2,'b'=4], [{'a', 'b'}, {?}]})"},
      {R"({mesh['a'=2,'b'=4], [{}, {}], manual={'b'}, replicated={'a'}})",
       R"({mesh['a'=2,'b'=4], [{}, {}], replicated={'a'}, manual={'b'}})"},
      {R"({mesh['a'=2,'b'=4,'c'=2], [{}, {}], unreduced={'c'}, manual={'b'}, replicated={'a'}})",
       R"({mesh['a'=2,'b'=4,'c'=2], [{}, {}], replicated={'a'}, unreduced={'c'}, manual={'b'}})"},
      {R"({mesh['a'=2,'b'=4], device_ids=([8]), [{'a'}, {'b'}]})",
       R"({mesh['a'=2,'b'=4], [{'a'}, {'b'}]})"},
      {R"({mesh['a'=8], [{'a'}, {}], metadata={op_name="foo"}})",
       R"({mesh['a'=8], [{'a'}, {}], metadata={{op_name="foo"}}})"},
      {R"({mesh['a'=8], [{'a'}, {}], metadata={{op_name="foo"},{op_name="g"}}})",
       R"({mesh['a'=8], [{'a'}, {}], metadata={{op_name="foo"}, {op_name="g"}}})"},
      {R"({single_device[device_id=5]})", R"({maximal_mesh[device_id=5]})"},
      {R"({maximal_mesh[device_id=5], metadata={op_name="x"}})",
       R"({maximal_mesh[device_id=5], metadata={{op_name="x"}}})"},
      {R"({mesh[], []})", R"({mesh[], replicated})"},
      {R"({mesh["a"=8], [{"a"}, {}]})", R"({mesh['a'=8], [{'a'}, {}]})"},
      {R"({mesh['a'=2,'b'=4], [{'a'}, {'b'}], replicated={}})",
       R"({mesh['a'=2,'b'=4], [{'a'}, {'b'}]})"},
      {R"({{replicated},{replicated},{replicated},{replicated},{replicated},{manual},{unknown}})",
       R"({{replicated}, {replicated}, {replicated}, {replicated}, {replicated}, /*index=5*/{manual}, {unknown}})"},
      {R"({mesh['a'=2,'b'=4], [{},{}], manual={'a','b'}})",
       R"({mesh['a'=2,'b'=4], [{}, {}], manual={'a', 'b'}})"},
      {R"({mesh['a'=2,'b'=4], [{},{}], unreduced={'a','b'}})",
       R"({mesh['a'=2,'b'=4], [{}, {}], unreduced={'a', 'b'}})"},
      {R"({mesh['a'=2,'b'=4], [{},{}], replicated={'a','b'}})",
       R"({mesh['a'=2,'b'=4], [{}, {}], replicated={'a', 'b'}})"},
      {R"({mesh['a'=2,'b'=4], [{'0'}, {'1'}]})", R"({mesh['a'=2,'b'=4], [{'a'}, {'b'}]})"},
      {R"({devices=[2,4]<=[2,2,2]T(0,2,1) last_tile_dim_replicate})",
       R"({devices=[2,4]<=[8] last_tile_dim_replicate})"},
      {R"({devices=[2,2,2]<=[2,2,2]T(2,1,0) last_tile_dims={replicated,manual}})",
       R"({devices=[2,2,2]<=[4,2]T(1,0) last_tile_dims={manual, replicated}})"},
      {R"({devices=[2,1,2,2]0,1,2,3,4,5,6,7 last_tile_dims={manual, manual}})",
       R"({devices=[2,1,4]0,1,2,3,4,5,6,7 last_tile_dims={manual}})"},
      {R"({devices=[2,1,2,2]0,3,2,1,7,6,4,5 last_tile_dims={manual, manual}})",
       R"({devices=[2,1,4]0,3,2,1,7,6,4,5 last_tile_dims={manual}})"},
      {R"({devices=[1,1,2,2,2]<=[8] last_tile_dims={manual,replicated,manual}})",
       R"({devices=[1,1,4,2]<=[2,2,2]T(0,2,1) last_tile_dims={manual, replicated}})"},
      {R"({devices=[2,1,2,2]<=[8] last_tile_dims={manual,unreduced}})",
       R"({devices=[2,1,2,2]<=[8] last_tile_dims={manual, unreduced}})"},
      {R"({devices=[2,1,2,2]<=[8] last_tile_dims={unreduced,replicated}})",
       R"({devices=[2,1,2,2]<=[8] last_tile_dims={unreduced, replicated}})"},
      {R"({devices=[2,1,2,2]<=[2,4]T(1,0) last_tile_dims={replicated,unreduced}})",
       R"({devices=[2,1,2,2]<=[2,2,2]T(1,0,2) last_tile_dims={unreduced, replicated}})"},
      {R"({devices=[2,1,2,2]<=[8] last_tile_dims={replicated,replicated}})",
       R"({devices=[2,1,4]<=[8] last_tile_dim_replicate})"},
      {R"({devices=[1,1,2,2,2]0,1,2,3,4,5,6,7 last_tile_dims={manual,replicated,unreduced}})",
       R"({devices=[1,1,2,2,2]0,2,1,3,4,6,5,7 last_tile_dims={manual, unreduced, replicated}})"},
      {R"({devices=[2,1,4]<=[8] shard_as 1 last_tile_dim_replicate})",
       R"({devices=[2,1,4]<=[8] last_tile_dim_replicate shard_as 1})"},
      {R"({metadata={op_name="a"} replicated})", R"({replicated metadata={op_name="a"}})"},
      {R"({devices=[2,1,4]<=[8] last_tile_dims={}})", R"({devices=[2,1,4]<=[8]})"},
      {R"({devices=[8]<=[8] last_tile_dim_replicate})", R"({replicated})"},
      {R"({shard_as 1 replicated})", R"({replicated shard_as 1})"},
      {R"({mesh['a'=2] replicated})", R"({mesh['a'=2], replicated})"},
      {R"({mesh['a'=2,'b'=2], device_ids=([2,1,2]T(2,1,0)), [{'a'}, {}]})",
       R"({mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)), [{'a'}, {}]})"},
      {R"({mesh['a'=2,'b'=2], [{'a'}, {}], unreduced={}})", R"({mesh['a'=2,'b'=2], [{'a'}, {}]})"},
      {R"({mesh['a'=2,'b'=2], [{'a',?}, {}]})", R"({mesh['a'=2,'b'=2], [{'a', ?}, {}]})"},
      {R"({mesh['a'=2,'b'=4], []})", R"({mesh['a'=2,'b'=4], replicated})"},
      {R"({mesh['a'=2,'b'=4], [], manual={'a','b'}})", R"({mesh['a'=2,'b'=4], manual})"},
      {R"({devices=[8]<=[8] last_tile_dims={manual}})", R"({manual})"},
      {R"({mesh['a'=2,'b'=4], [{'b':(1)2, 'b':(2)2}, {'a'}]})",
       R"({mesh['a'=2,'b'=4], [{'b'}, {'a'}]})"},
      {R"({mesh['a'=2,'b'=4], device_ids=(0,1,2,3,4,5,6,7), [{'a'}]})",
       R"({mesh['a'=2,'b'=4], [{'a'}]})"},
      {R"({mesh['a'=2,'b'=4], [{},{}], manual={'b','a'}})",
       R"({mesh['a'=2,'b'=4], [{}, {}], manual={'a', 'b'}})"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(RoundTrip(text), expected) << text;
}

TEST(HloShardingTest, BadTextsAreErrorsWithACode) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "E161"},
      {"{", "E161"},
      {"{replicated", "E161"},
      {"{replicated}}", "E161"},
      {"{replicated manual}", "E161"},
      {"{maximal}", "E161"},
      {"{device=3}", "E161"},
      {"{shard_as 3}", "E161"},
      {"{{}}", "E161"},
      {"{{replicated}, {{manual}}}", "E161"},
      {"{devices=[2,4]<=[2,4]}", "E161"},
      {"{devices=[2,4]<=[4]}", "E161"},
      {"{devices=[2,4]<=[8]T(1)}", "E160"},
      {"{devices=[2,0]<=[8]}", "E161"},
      {"{devices=[2,4]0,1,2}", "E161"},
      {"{devices=[99999999999999999999]<=[8]}", "E161"},
      {"{devices=[4294967296,4294967296]<=[8]}", "E161"},
      {"{devices=[2,4]<=[8] last_tile_dims={maximal}}", "E161"},
      {"{devices=[8]<=[8] last_tile_dims={manual, replicated}}", "E161"},
      {"{replicated last_tile_dim_replicate}", "E161"},
      {"{replicated metadata={op_name=\"x}}", "E161"},
      {"{mesh['a'=2,'a'=4], [{'a'}]}", "E160"},
      {"{mesh['a'=0], [{'a'}]}", "E160"},
      {"{mesh['a'=8], [{'b'}]}", "E162"},
      {"{mesh['a'=8], [{'a'}, {'a'}]}", "E162"},
      {"{mesh['a'=8], [{'a':(2)2}], replicated={'a':(1)4}}", "E162"},
      {"{mesh['a'=8], [{'a':(3)2}]}", "E162"},
      {"{mesh['a'=8], [{'a':(2)0}]}", "E161"},
      {"{mesh['a'=8], [{?, 'a'}]}", "E161"},
      {"{mesh['a'=8], unknown}", "E161"},
      {"{mesh['a'=8, [{'a'}]}", "E161"},
      {"{mesh['a'=4], device_ids=(0,1), [{'a'}]}", "E161"},
      {"{mesh['a'=4], device_ids=(0,1,2,2), [{'a'}]}", "E160"},
      {"{maximal_mesh[device_id=1], replicated}", "E161"},
  };
  for (const auto& [text, code] : cases) {
    auto s = ParseHloSharding(text);
    ASSERT_FALSE(s.ok()) << text;
    EXPECT_EQ(DiagnosticCode(s.status()), code) << text << ": " << s.status();
  }
}

TEST(HloShardingTest, ErrorsPointAtThePlace) {
  EXPECT_EQ(ParseHloSharding("{devices=[2,4]<=(8]}").status().message(),
            "E161 malformed sharding at column 17: expected '[', found '('\n"
            "  {devices=[2,4]<=(8]}\n"
            "                  ^");
}

TEST(HloShardingTest, EveryPrefixOfATextIsRefusedOrReadWithoutHarm) {
  for (const std::string text :
       {"{devices=[2,1,2,2]<=[2,4]T(1,0) last_tile_dims={replicated,unreduced} shard_as 1}",
        "{mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)), [{'b':(2)2, ?}, {'a'}], metadata={{x=1}}}",
        "{{replicated}, /*index=5*/{maximal device=3}}"}) {
    for (size_t n = 0; n < text.size(); ++n) {
      EXPECT_FALSE(ParseHloSharding(text.substr(0, n)).ok());
      std::string broken = text;
      broken[n] = '{';
      (void)ParseHloSharding(broken);
    }
  }
}

TEST(HloShardingTest, EveryShardingOfTheCorpusPrintsAsItWasRead) {
  const auto texts = CorpusTexts(" sharding=");
  EXPECT_GT(texts.size(), 50);
  for (const std::string& text : texts) EXPECT_EQ(RoundTrip(text), text);
}

}  // namespace
}  // namespace shardcall
