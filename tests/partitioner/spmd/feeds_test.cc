// SPDX-License-Identifier: Apache-2.0
// Feeds and transfers: what one device does, what every device does on its
// shard, and the forms in which XLA writes their shardings.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The local text, which must parse and verify; the error if there is none.
std::string Local(const std::string& text, std::vector<Opcode>* collectives = nullptr) {
  const auto p = PartitionText(text, {});
  if (!p.ok()) return std::string(p.status().message());
  const std::string local = LocalText(**p);
  const auto again = ParseText(local);
  EXPECT_TRUE(again.ok()) << again.status() << "\n" << local;
  if (collectives != nullptr) {
    for (const CollectiveRecord& r : (*p)->local.collectives) collectives->push_back(r.opcode);
  }
  return local;
}

// The text of the entry computation.
std::string Entry(const std::string& local) { return local.substr(local.find("\nENTRY")); }

std::string Infeed(const std::string& sharding, const std::string& type = "f32[8,4]") {
  return absl::StrReplaceAll(
      R"(HloModule m, num_partitions=4

ENTRY e {
  t = token[] after-all()
  i = (TYPE, token[]) infeed(t), infeed_config="c"SHARDING
  d = TYPE get-tuple-element(i), index=0
  ROOT r = TYPE negate(d), sharding={devices=[4,1]<=[4]}
}
)",
      {{"TYPE", type}, {"SHARDING", sharding.empty() ? "" : ", sharding=" + sharding}});
}

std::string Outfeed(const std::string& sharding, const std::string& type = "f32[8,4]") {
  return absl::StrReplaceAll(
      R"(HloModule m, num_partitions=4

ENTRY e {
  x = TYPE parameter(0), sharding={devices=[4,1]<=[4]}
  t = token[] after-all()
  o = token[] outfeed(x, t), outfeed_shape=TYPE, outfeed_config="c"SHARDING
  ROOT r = TYPE negate(x), sharding={devices=[4,1]<=[4]}
}
)",
      {{"TYPE", type}, {"SHARDING", sharding.empty() ? "" : ", sharding=" + sharding}});
}

TEST(Infeed, TiledEveryDeviceReadsItsShard) {
  std::vector<Opcode> collectives;
  const std::string local =
      Local(Infeed("{{devices=[4,1]<=[4]}, {maximal device=0}}"), &collectives);
  EXPECT_THAT(Entry(local), AllOf(HasSubstr("(f32[2,4]{1,0}, token[]) infeed("),
                                  HasSubstr("infeed_config=\"c\""), Not(HasSubstr("conditional"))));
  EXPECT_TRUE(collectives.empty());
}

TEST(Infeed, UnevenShardsAreReadWithoutTheirPadding) {
  std::vector<Opcode> collectives;
  const std::string local =
      Local(Infeed("{{devices=[4,1]<=[4]}, {replicated}}", "f32[7,4]"), &collectives);
  EXPECT_THAT(local, AllOf(HasSubstr("(f32[2,4]{1,0}, token[]) infeed("),
                           HasSubstr("(f32[1,4]{1,0}, token[]) infeed("),
                           HasSubstr("constant({0, 0, 0, 1})"), HasSubstr("branch_computations=")));
  EXPECT_THAT(Entry(local), Not(HasSubstr(" infeed(")));
  EXPECT_TRUE(collectives.empty());
}

TEST(Infeed, OneDeviceReadsAndAllGetTheResult) {
  for (const char* sharding :
       {"{maximal device=2}", "{{maximal device=2}, {maximal device=2}}",
        "{{maximal device=2}, {replicated}}", "{{maximal device=2}, {maximal device=0}}"}) {
    SCOPED_TRACE(sharding);
    std::vector<Opcode> collectives;
    const std::string local = Local(Infeed(sharding), &collectives);
    EXPECT_THAT(local,
                AllOf(HasSubstr("(f32[8,4]{1,0}, token[]) infeed("), HasSubstr("constant(2)")));
    EXPECT_THAT(Entry(local), AllOf(HasSubstr("conditional("), Not(HasSubstr(" infeed("))));
    EXPECT_EQ(collectives.size(), 1);
  }
}

TEST(Infeed, ReplicatedEveryDeviceReadsAll) {
  for (const char* sharding : {"{replicated}", "{{replicated}, {replicated}}"}) {
    SCOPED_TRACE(sharding);
    EXPECT_THAT(Entry(Local(Infeed(sharding))), AllOf(HasSubstr("(f32[8,4]{1,0}, token[]) infeed("),
                                                      Not(HasSubstr("conditional"))));
  }
}

TEST(Infeed, EveryLeafHasItsOwnSharding) {
  const std::string local = Local(R"(HloModule m, num_partitions=4

ENTRY e {
  t = token[] after-all()
  i = ((f32[8], s32[3], f32[]), token[]) infeed(t), sharding={{devices=[4]<=[4]}, {maximal device=1}, {replicated}, {maximal device=0}}
  d = (f32[8], s32[3], f32[]) get-tuple-element(i), index=0
  a = f32[8] get-tuple-element(d), index=0
  b = s32[3] get-tuple-element(d), index=1
  c = f32[] get-tuple-element(d), index=2
  ROOT r = (f32[8], s32[3], f32[]) tuple(a, b, c), sharding={{devices=[4]<=[4]}, {replicated}, {replicated}}
}
)");
  EXPECT_THAT(local, AllOf(HasSubstr("((f32[2]{0}, s32[3]{0}, f32[]), token[]) infeed("),
                           HasSubstr("((f32[2]{0}, (), f32[]), token[]) infeed("),
                           HasSubstr("constant({0, 1, 0, 0})")));
}

TEST(Infeed, InALoop) {
  const std::string local = Local(R"(HloModule m, num_partitions=4

body {
  s = (s32[], f32[8], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  t = token[] get-tuple-element(s), index=2
  f = (f32[8], token[]) infeed(t), sharding={{maximal device=1}, {maximal device=1}}
  d = f32[8] get-tuple-element(f), index=0
  u = token[] get-tuple-element(f), index=1
  y = f32[8] add(x, d)
  ROOT r = (s32[], f32[8], token[]) tuple(n, y, u)
}

condition {
  s = (s32[], f32[8], token[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(i, three), direction=LT
}

ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  zero = s32[] constant(0)
  t = token[] after-all()
  init = (s32[], f32[8], token[]) tuple(zero, x, t)
  w = (s32[], f32[8], token[]) while(init), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
)");
  EXPECT_THAT(local, AllOf(HasSubstr("conditional("), HasSubstr("(f32[8]{0}, token[]) infeed(")));
}

TEST(Outfeed, TiledEveryDeviceWritesItsShard) {
  for (const char* sharding :
       {"{{devices=[4,1]<=[4]}, {maximal device=0}}", "{{devices=[4,1]<=[4]}, {replicated}}",
        "{{devices=[4,1]<=[4]}}", "{devices=[4,1]<=[4]}", "{{devices=[4,1]0,1,2,3}}"}) {
    SCOPED_TRACE(sharding);
    std::vector<Opcode> collectives;
    const std::string local = Local(Outfeed(sharding), &collectives);
    EXPECT_THAT(Entry(local),
                AllOf(HasSubstr("outfeed("), HasSubstr("outfeed_shape=f32[2,4]{1,0}"),
                      HasSubstr("outfeed_config=\"c\""), Not(HasSubstr("conditional"))));
    EXPECT_TRUE(collectives.empty());
  }
}

TEST(Outfeed, UnevenShardsAreWrittenWithoutTheirPadding) {
  std::vector<Opcode> collectives;
  const std::string local =
      Local(Outfeed("{{devices=[4,1]<=[4]}, {maximal device=0}}", "f32[7,4]"), &collectives);
  EXPECT_THAT(local,
              AllOf(HasSubstr("outfeed_shape=f32[2,4]{1,0}"),
                    HasSubstr("outfeed_shape=f32[1,4]{1,0}"), HasSubstr("constant({0, 0, 0, 1})")));
  EXPECT_TRUE(collectives.empty());
}

TEST(Outfeed, OneDeviceWritesAndTheOthersDoNothing) {
  for (const char* sharding : {"{maximal device=2}", "{{maximal device=2}, {maximal device=2}}",
                               "{{maximal device=2}, {replicated}}", "{{maximal device=2}}"}) {
    SCOPED_TRACE(sharding);
    std::vector<Opcode> collectives;
    const std::string local = Local(Outfeed(sharding), &collectives);
    EXPECT_THAT(local, AllOf(HasSubstr("outfeed_shape=f32[8,4]{1,0}"), HasSubstr("constant(2)")));
    EXPECT_THAT(Entry(local), AllOf(HasSubstr("conditional("), Not(HasSubstr(" outfeed("))));
    EXPECT_EQ(collectives, std::vector<Opcode>{Opcode::kAllGather});
  }
}

TEST(Outfeed, ReplicatedEveryDeviceWritesAll) {
  EXPECT_THAT(Entry(Local(Outfeed("{replicated}"))),
              AllOf(HasSubstr("all-gather("), HasSubstr("outfeed_shape=f32[8,4]{1,0}"),
                    Not(HasSubstr("conditional"))));
}

TEST(Outfeed, EveryLeafOfATupleHasItsOwnSharding) {
  for (const char* token : {"", ", {maximal device=0}"}) {
    SCOPED_TRACE(token);
    std::vector<Opcode> collectives;
    const std::string local = Local(absl::StrReplaceAll(R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  y = f32[4] parameter(1), sharding={devices=[4]<=[4]}
  p = (f32[8], f32[4]) tuple(x, y)
  t = token[] after-all()
  o = token[] outfeed(p, t), outfeed_shape=(f32[8], f32[4]), sharding={{devices=[4]<=[4]}, {replicated}TOKEN}
  ROOT r = f32[8] negate(x), sharding={devices=[4]<=[4]}
}
)",
                                                        {{"TOKEN", token}}),
                                    &collectives);
    EXPECT_THAT(local, HasSubstr("outfeed_shape=(f32[2]{0}, f32[4]{0})"));
    EXPECT_EQ(collectives, std::vector<Opcode>{Opcode::kAllGather});
  }
}

TEST(Outfeed, ShardingsThatDoNotFitAreRefused) {
  EXPECT_THAT(PartitionText(Outfeed("{{devices=[4]<=[4]}, {replicated}}"), {}),
              Fails("E025", "wrong number of dimensions"));
  EXPECT_THAT(PartitionText(Outfeed("{{replicated}, {replicated}, {replicated}}"), {}),
              Fails("E025", "wrong number of parts"));
  EXPECT_THAT(PartitionText(Outfeed("{maximal device=4}"), {}), Fails("E025", "does not exist"));
}

constexpr char kTransfer[] = R"(HloModule m, num_partitions=4

ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  t = token[] after-all()
  s = (f32[8], u32[], token[]) send(x, t), channel_id=2, is_host_transfer=trueTRIPLE
  sd = token[] send-done(s), channel_id=2, is_host_transfer=trueSINGLE
  v = (f32[8], u32[], token[]) recv(sd), channel_id=3, is_host_transfer=trueTRIPLE
  vd = (f32[8], token[]) recv-done(v), channel_id=3, is_host_transfer=truePAIR
  d = f32[8] get-tuple-element(vd), index=0
  ROOT r = f32[8] add(d, x), sharding={devices=[4]<=[4]}
}
)";

TEST(Transfers, OneDeviceSendsAndReceives) {
  for (const bool tuples : {false, true}) {
    const std::string one = "{maximal device=1}";
    const std::string text = absl::StrReplaceAll(
        kTransfer,
        {{"TRIPLE", absl::StrCat(", sharding=",
                                 tuples ? absl::StrCat("{", one, ", ", one, ", ", one, "}") : one)},
         {"PAIR",
          absl::StrCat(", sharding=", tuples ? absl::StrCat("{", one, ", ", one, "}") : one)},
         {"SINGLE", absl::StrCat(", sharding=", one)}});
    std::vector<Opcode> collectives;
    const std::string local = Local(text, &collectives);
    EXPECT_THAT(local, AllOf(HasSubstr(" send("), HasSubstr(" send-done("), HasSubstr(" recv("),
                             HasSubstr(" recv-done("), HasSubstr("constant(1)")));
    EXPECT_THAT(Entry(local),
                AllOf(HasSubstr("conditional("), Not(HasSubstr(" send")), Not(HasSubstr(" recv"))));
    // x is gathered for the device that sends, what comes in is given to all.
    EXPECT_EQ(collectives.size(), 2) << local;
  }
}

TEST(SideEffects, WithoutAShardingAreRefused) {
  const std::string transfer =
      absl::StrReplaceAll(kTransfer, {{"TRIPLE", ""}, {"PAIR", ""}, {"SINGLE", ""}});
  for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
           {Infeed(""), "infeed (%i) has side effects"},
           {Outfeed(""), "outfeed (%o) has side effects"},
           {transfer, "send (%s) has side effects"}}) {
    const absl::Status s = PartitionText(text, {}).status();
    EXPECT_THAT(s, Fails("E104", what));
    EXPECT_THAT(s, Fails("E104", "sharding={maximal device=0}"));
  }
  // What every device did of a transfer, the other side would meet four times.
  EXPECT_THAT(PartitionText(absl::StrReplaceAll(kTransfer, {{"TRIPLE", ", sharding={replicated}"},
                                                            {"PAIR", ", sharding={replicated}"},
                                                            {"SINGLE", ", sharding={replicated}"}}),
                            {}),
              Fails("E104", "send (%s) has side effects"));
}

TEST(SideEffects, OnOneDeviceNeedNoSharding) {
  for (const std::string& text : {Infeed(""), Outfeed("")}) {
    const auto p =
        PartitionText(absl::StrReplaceAll(text, {{"num_partitions=4", "num_partitions=1"},
                                                 {", sharding={devices=[4,1]<=[4]}", ""}}),
                      {});
    EXPECT_TRUE(p.ok()) << p.status();
  }
}

}  // namespace
}  // namespace shardcall
