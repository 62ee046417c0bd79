// SPDX-License-Identifier: Apache-2.0
// The calls by which JAX 0.12 starts and ends collectives are HLO's ops, and are written again.
#include "shardcall/partitioner/ir/build/started_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A product stands between the start of OP and its done. BETWEEN is what the done takes.
std::string Text(const std::string& op, const std::string& config, const std::string& result,
                 const std::string& between = "s", const std::string& more = "",
                 const std::string& calls = "") {
  return absl::StrReplaceAll(
      R"(HloModule test, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[4,8] parameter(0)
  s = RESULT custom-call(x), custom_call_target="OP-start", CALLSfrontend_attributes={async_collective_config=CONFIG,kept="1"}
  y = f32[4,8] multiply(x, x)
MORE  d = RESULT custom-call(BETWEEN), custom_call_target="OP-done"
  ROOT t = (RESULT, f32[4,8]) tuple(d, y)
}
)",
      {{"OP", op},
       {"RESULT", result},
       {"CONFIG", config},
       {"BETWEEN", between},
       {"MORE", more},
       {"CALLS", calls}});
}
constexpr char kReducer[] = "called_computations={add}, ";
std::string Gather(const std::string& config =
                       R"({"all_gather_dimension": 1, "replica_groups": [[0, 1], [2, 3]], )"
                       R"("use_global_device_ids": true, "channel_id": 1})") {
  return Text("all-gather", config, "f32[4,16]");
}

// Per collective: its text, and what the start is.
struct Case {
  std::string text, start;
};
std::vector<Case> Cases() {
  const std::string groups = R"("replica_groups": [[0, 2], [1, 3]], )";
  const std::string tail = R"("use_global_device_ids": true, "channel_id": 7})";
  return {
      {Gather(),
       "(f32[4,8]{1,0}, f32[4,16]{1,0}) all-gather-start(%x), channel_id=1, "
       "replica_groups={{0,1},{2,3}}, dimensions={1}, use_global_device_ids=true"},
      {Text("all-reduce", absl::StrCat("{", groups, tail), "f32[4,8]", "s", "", kReducer),
       "f32[4,8]{1,0} all-reduce-start(%x), channel_id=7, replica_groups={{0,2},{1,3}}, "
       "use_global_device_ids=true, to_apply=%add"},
      {Text("reduce-scatter",
            absl::StrCat(R"({"scatter_dimension": 0, )", groups, R"("tiled": true, )", tail),
            "f32[2,8]", "s", "", kReducer),
       "((f32[4,8]{1,0}), f32[2,8]{1,0}) reduce-scatter-start(%x), channel_id=7, "
       "replica_groups={{0,2},{1,3}}, use_global_device_ids=true, dimensions={0}, to_apply=%add"},
      {Text("all-to-all",
            absl::StrCat(R"({"split_dimension": 1, "concat_dimension": 1, "split_count": 2, )",
                         groups, R"("channel_id": 7})"),
            "f32[4,8]"),
       "((f32[4,8]{1,0}), f32[4,8]{1,0}) all-to-all-start(%x), channel_id=7, "
       "replica_groups={{0,2},{1,3}}, dimensions={1}"},
      {Text("collective-permute", R"({"permutation": [[0, 1], [3, 2]], "channel_id": 7})",
            "f32[4,8]"),
       "(f32[4,8]{1,0}, f32[4,8]{1,0}) collective-permute-start(%x), channel_id=7, "
       "source_target_pairs={{0,1},{3,2}}"},
  };
}

Module Read(const std::string& text) {
  auto module = Parse(text);
  EXPECT_TRUE(module.ok()) << module.status();
  const absl::Status valid = VerifyModule(*module, "test.hlo");
  EXPECT_TRUE(valid.ok()) << valid << PrintModule(*module);
  return *std::move(module);
}

TEST(StartedCalls, AreTheOpsOfTheCollective) {
  for (const Case& c : Cases()) {
    const std::string text = PrintModule(Read(c.text));
    EXPECT_THAT(text, HasSubstr(absl::StrCat("%s = ", c.start)));
    EXPECT_THAT(text, HasSubstr("-done(%s)"));
    EXPECT_THAT(text, AllOf(Not(HasSubstr("custom-call")), Not(HasSubstr("async_collective")),
                            HasSubstr("kept=\"1\"")));
  }
}

TEST(StartedCalls, AreWrittenAgain) {
  for (const Case& c : Cases()) {
    const std::string ops = PrintModule(Read(c.text));
    const std::string calls = PrintModule(WithStartedCalls(Read(c.text)));
    EXPECT_THAT(calls, AllOf(HasSubstr("-start\""), HasSubstr("-done\""), HasSubstr("kept=\"1\""),
                             Not(HasSubstr("-start(%x)"))));
    EXPECT_EQ(PrintModule(Read(calls)), ops);
  }
}

TEST(StartedCalls, BlocksOfAnAllToAllAreMovedAfterItsDone) {
  const std::string text =
      PrintModule(Read(Text("all-to-all",
                            R"({"split_dimension": 0, "concat_dimension": 1, "split_count": 2, )"
                            R"("replica_groups": [[0, 1], [2, 3]]})",
                            "f32[2,16]")));
  EXPECT_THAT(text, HasSubstr("f32[4,8]{1,0} all-to-all-done(%s)"));
  EXPECT_THAT(text, HasSubstr("f32[2,2,8]{2,1,0} reshape(%d)"));
  EXPECT_THAT(text, HasSubstr("dimensions={1,0,2}"));
}

TEST(StartedCalls, AStartThatGoesThroughABarrierIsTheCollectiveAtOnce) {
  const std::string barrier =
      "  p = (RESULT, f32[4,8]) tuple(s, y)\n  o = (RESULT, f32[4,8]) opt-barrier(p)\n"
      "  g = RESULT get-tuple-element(o), index=0\n";
  for (const Case& c : Cases()) {
    // The done takes what is behind the barrier.
    const size_t at = c.text.find("  d = ");
    const std::string result = c.text.substr(at + 6, c.text.find(' ', at + 6) - at - 6);
    std::string text = c.text;
    text.insert(at, absl::StrReplaceAll(barrier, {{"RESULT", result}}));
    text = absl::StrReplaceAll(text, {{"custom-call(s)", "custom-call(g)"}});
    const std::string read = PrintModule(Read(text));
    EXPECT_THAT(read, AllOf(Not(HasSubstr("-start(")), Not(HasSubstr("custom-call")),
                            HasSubstr("tuple(%g, %y)")));
  }
}

TEST(StartedCalls, AStartOfTwoDonesIsTheCollectiveAtOnce) {
  const std::string read = PrintModule(Read(absl::StrReplaceAll(
      Gather(), {{"  ROOT t = (f32[4,16], f32[4,8]) tuple(d, y)",
                  "  e = f32[4,16] custom-call(s), custom_call_target=\"all-gather-done\"\n"
                  "  ROOT t = (f32[4,16], f32[4,16]) tuple(d, e)"}})));
  EXPECT_THAT(read,
              AllOf(HasSubstr("%s = f32[4,16]{1,0} all-gather(%x)"), HasSubstr("tuple(%s, %s)")));
}

TEST(StartedCalls, ACallWithoutAConfigurationStays) {
  const std::string text = absl::StrReplaceAll(Gather(), {{"async_collective_config", "other"}});
  EXPECT_THAT(PrintModule(Read(text)), AllOf(HasSubstr("custom_call_target=\"all-gather-start\""),
                                             HasSubstr("custom_call_target=\"all-gather-done\"")));
}

TEST(StartedCalls, WhatDoesNotSayACollectiveIsRefused) {
  const auto refused = [](const std::string& text, const std::string& what) {
    const auto module = Parse(text);
    ASSERT_FALSE(module.ok()) << text;
    EXPECT_THAT(std::string(module.status().message()),
                AllOf(StartsWith("E165"), HasSubstr(what),
                      AnyOf(HasSubstr(" at s: expected"), EndsWith("\n  in s"))));
  };
  refused(Gather(R"({"all_gather_dimension": 1})"), "replica_groups");
  refused(Gather(R"({"replica_groups": [[0, 1]]})"), "all_gather_dimension");
  refused(Gather(R"({"all_gather_dimension": 1, "replica_groups": [[0, 1]], "ragged": true})"),
          "ragged");
  refused(Gather(R"({"all_gather_dimension": 1, "split_count": 2, "replica_groups": [[0, 1]]})"),
          "split_count");
  refused(Gather(R"({"all_gather_dimension": 1, "all_gather_dimension": 0, "replica_groups": []})"),
          "twice");
  refused(Gather(R"({"all_gather_dimension": -1, "replica_groups": [[0, 1]]})"), "integer");
  refused(Gather(R"({"all_gather_dimension": 1, "replica_groups": [0, 1]})"), "'['");
  refused(Gather(R"({"all_gather_dimension": 1, "replica_groups": [[0, 1], })"), "'['");
  refused(Gather(R"({"all_gather_dimension": 1, "replica_groups": [[0]], "channel_id": "1"})"),
          "integer");
  refused(Gather(R"({"all_gather_dimension": 1, "use_global_device_ids": 1})"), "true or false");
  refused(Gather("\"\""), "'{'");
  refused(absl::StrReplaceAll(Gather(), {{"custom-call(x),", "custom-call(x, x),"}}),
          "one array as operand");
  // Without a reducer, and with one too many.
  refused(Text("all-reduce", R"({"replica_groups": [[0, 1]]})", "f32[4,8]"), "called computations");
  refused(absl::StrReplaceAll(Gather(), {{"-start\", ", "-start\", called_computations={add}, "}}),
          "called computations");
  refused(Text("reduce-scatter",
               R"({"scatter_dimension": 0, "replica_groups": [[0, 1]], "tiled": false})",
               "f32[2,8]", "s", "", kReducer),
          "true");
  for (const char* dims : {R"("split_dimension": 0, "concat_dimension": 2, "split_count": 2)",
                           R"("split_dimension": 0, "concat_dimension": 1, "split_count": 3)",
                           R"("split_dimension": 9, "concat_dimension": 1, "split_count": 2)",
                           R"("split_dimension": 0, "concat_dimension": 1, "split_count": 0)"}) {
    refused(Text("all-to-all", absl::StrCat("{", dims, R"(, "replica_groups": [[0, 1]]})"),
                 "f32[2,16]"),
            "split_count");
  }
  refused(Text("collective-permute", R"({"permutation": [[0, 1, 2]]})", "f32[4,8]"), "two devices");
}

TEST(StartedCalls, ShapesAndGroupsThatTheOpsOfTheProgramCannotHaveAreRefused) {
  const auto refused = [](const std::string& text, const std::string& what) {
    const auto module = Parse(text);
    ASSERT_FALSE(module.ok()) << text;
    EXPECT_THAT(std::string(module.status().message()), AllOf(StartsWith("E165"), HasSubstr(what)));
  };
  const auto exchange = [](const std::string& groups, const std::string& result) {
    return Text("all-to-all",
                absl::StrCat(R"({"split_dimension": 0, "concat_dimension": 1, "split_count": 2, )",
                             R"("replica_groups": )", groups, "}"),
                result);
  };
  ASSERT_TRUE(Parse(exchange("[[0, 1], [2, 3]]", "f32[2,16]")).ok());
  refused(exchange("[[0, 1, 2, 3]]", "f32[2,16]"), "as many devices in each group");
  refused(exchange("[[0, 1], [2, 3]]", "f32[2,8]"), "a result of dimensions 2,16");
  // A done of what nothing started, and of another shape.
  refused(absl::StrReplaceAll(Gather(), {{"custom-call(s)", "custom-call(y)"}}), "f32[4,8]");
}

// What only the op itself can say of its shapes is the verifier's.
TEST(StartedCalls, AShapeThatDoesNotFollowIsFoundByTheVerifier) {
  const auto module = Parse(absl::StrReplaceAll(Gather(), {{"f32[4,16]", "f32[4,24]"}}));
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_FALSE(VerifyModule(*module, "test.hlo").ok());
}

}  // namespace
}  // namespace shardcall
