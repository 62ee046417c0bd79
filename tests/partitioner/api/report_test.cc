// SPDX-License-Identifier: Apache-2.0
// The report's keys, the texts of explain, contracts over totals.
#include "shardcall/partitioner/api/report.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

// One all-reduce (a contraction), one all-gather in a loop of 5, one sort that
// falls back.
constexpr char kProgram[] = R"(HloModule m, num_partitions=4
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
body {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[8] get-tuple-element(p), index=1
  k = s32[] constant(1)
  n = s32[] add(i, k)
  s = f32[8] custom-call(v), custom_call_target="Sharding", sharding={replicated}
  t = f32[8] sort(s), dimensions={0}, to_apply=less
  u = f32[8] custom-call(t), custom_call_target="Sharding", sharding={devices=[4]<=[4]}
  ROOT r = (s32[], f32[8]) tuple(n, u)
}
cond {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  k = s32[] constant(5)
  ROOT r = pred[] compare(i, k), direction=LT
}
ENTRY main {
  v = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  z = s32[] constant(0)
  t = (s32[], f32[8]) tuple(z, v)
  w = (s32[], f32[8]) while(t), condition=cond, body=body
  y = f32[8] get-tuple-element(w), index=1
  d = f32[] dot(y, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot" source_file="f.py" source_line=12}
  x = f32[8,8] parameter(1), sharding={devices=[1,4]<=[4]}
  o = f32[8,8] sort(x), dimensions={1}, to_apply=less
  ROOT r = (f32[], f32[8,8]) tuple(d, o)
}
)";

const PartitionedProgram& Partitioned() {
  static const PartitionedProgram* const kDone = [] {
    auto p = PartitionText(kProgram, {});
    if (!p.ok()) std::fprintf(stderr, "%s\n", std::string(p.status().message()).c_str());
    return p.ok() ? p->release() : nullptr;
  }();
  return *kDone;
}

TEST(Report, HasTheDocumentedKeys) {
  const Json j = Json::parse(ReportJson(Partitioned(), {}));
  for (const char* key :
       {"format_version", "num_partitions", "instructions_in", "instructions_out", "time_us",
        "peak_bytes", "collectives", "totals", "fallbacks", "gathers", "warnings", "cost_model"}) {
    EXPECT_TRUE(j.contains(key)) << key;
  }
  for (const char* key : {"parse", "import", "propagate", "partition", "cleanup", "print"}) {
    EXPECT_TRUE(j["time_us"].contains(key)) << key;
  }
  ASSERT_FALSE(j["collectives"].empty());
  for (const Json& c : j["collectives"]) {
    for (const char* key : {"name", "opcode", "group_size", "groups", "bytes_in", "bytes_moved",
                            "bytes_needed", "bytes_between_hosts", "trip_count", "cause"}) {
      EXPECT_TRUE(c.contains(key)) << key;
    }
    EXPECT_FALSE(c["cause"].get<std::string>().empty());
  }
  EXPECT_EQ(j["num_partitions"], 4);
  ASSERT_EQ(j["fallbacks"].size(), 1);
  EXPECT_EQ(j["fallbacks"][0]["opcode"], "sort");
  EXPECT_EQ(j["fallbacks"][0]["name"], "o");
}

TEST(Report, SaysHowParametersAndResultsAreHeld) {
  const Json j = Json::parse(ReportJson(Partitioned(), {}));
  ASSERT_EQ(j["parameters"].size(), 2);
  EXPECT_EQ(j["parameters"][0]["shape"], "f32[8]");
  EXPECT_EQ(j["parameters"][0]["sharding"], "{devices=[4]<=[4]}");
  EXPECT_EQ(j["parameters"][1]["sharding"], "{devices=[1,4]<=[4]}");
  ASSERT_EQ(j["results"].size(), 2);
  EXPECT_EQ(j["results"][0]["shape"], "f32[]");
  EXPECT_EQ(j["results"][0]["sharding"], "{replicated}");
  EXPECT_EQ(j["results"][1]["shape"], "f32[8,8]");
}

// x goes from rows to columns by an all-to-all, of which each byte is lacking.
TEST(Report, SaysWhatOfTheBytesWasNeeded) {
  const auto needed = [](const std::string& from, const std::string& to) {
    const auto p = PartitionText("ENTRY e {\n  x = f32[16,16] parameter(0), sharding=" + from +
                                     "\n  ROOT y = f32[16,16] custom-call(x), "
                                     "custom_call_target=\"Sharding\", sharding=" +
                                     to + "\n}\n",
                                 {.num_partitions = 4});
    EXPECT_TRUE(p.ok()) << p.status();
    double moved = 0, lacking = 0;
    const Json report = Json::parse(ReportJson(**p, {}));
    for (const Json& c : report["collectives"]) {
      moved += c["bytes_moved"].get<double>();
      lacking += c["bytes_needed"].get<double>();
    }
    return std::pair(moved, lacking);
  };
  const std::string rows = "{devices=[4,1]<=[4]}";
  EXPECT_EQ(needed(rows, "{devices=[1,4]<=[4]}"), std::pair(192.0, 192.0));
  EXPECT_EQ(needed(rows, "{replicated}"), std::pair(768.0, 768.0));
  const auto [moved, lacking] =
      needed(rows, "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(lacking, 512 - 128);  // 8 columns of 16 rows, of which it has 8 of 4
  EXPECT_GE(moved, lacking);
}

// A roll by one row: of the row that is sent, all is needed.
TEST(Report, SaysWhatOfAHaloExchangeWasNeeded) {
  const auto p = PartitionText(R"(
ENTRY e {
  x = f32[16,4] parameter(0), sharding={devices=[4,1]<=[4]}
  z = f32[] constant(0)
  ROOT y = f32[16,4] pad(x, z), padding=1_-1x0_0, sharding={devices=[4,1]<=[4]}
}
)",
                               {.num_partitions = 4});
  ASSERT_TRUE(p.ok()) << p.status();
  const Json report = Json::parse(ReportJson(**p, {}));
  ASSERT_EQ(report["collectives"].size(), 1);
  EXPECT_EQ(report["collectives"][0]["bytes_moved"], 16 * 3.0 / 4);
  EXPECT_EQ(report["collectives"][0]["bytes_needed"], 16 * 3.0 / 4);
}

// A gather over groups of 4, of which 2 are on each host: of 3 parts each host gets one from the
// other, which its two devices share.
TEST(Report, SaysWhatGoesBetweenHosts) {
  TextOptions options{.num_partitions = 4};
  options.spmd.cost = *ParseCostModel("host_devices=2,network=1e9");
  const auto p = PartitionText(R"(
ENTRY e {
  x = f32[1024,4] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT y = f32[1024,4] negate(x), sharding={replicated}
}
)",
                               options);
  ASSERT_TRUE(p.ok()) << p.status();
  const Json report = Json::parse(ReportJson(**p, options.spmd));
  ASSERT_EQ(report["collectives"].size(), 1);
  EXPECT_EQ(report["collectives"][0]["bytes_moved"], 3 * 4096);
  EXPECT_EQ(report["collectives"][0]["bytes_between_hosts"], 4096);
  EXPECT_EQ(report["cost_model"]["host_devices"], 2);
  EXPECT_EQ(report["cost_model"]["network_bytes_per_s"], 1e9);
  EXPECT_THAT(
      Explain(**p, {}, ExplainFormat::kText),
      HasSubstr("12.00 KiB sent per device, 4.00 KiB of it over slower links, 1 group of 4"));
}

TEST(Report, SaysWhatIsHeldAtThePeak) {
  const auto p = PartitionText(kProgram, {});
  ASSERT_TRUE(p.ok()) << p.status();
  const Json memory = Json::parse(ReportJson(**p, {}))["memory"];
  EXPECT_EQ(memory["peak_at"].get<std::string>()[0], '%');
  ASSERT_FALSE(memory["held_at_peak"].empty());
  int64_t bytes = 0;
  for (const Json& held : memory["held_at_peak"]) bytes += held["bytes"].get<int64_t>();
  // Each begins at a multiple of 256 bytes.
  EXPECT_LE(bytes, memory["temporaries"]);
  EXPECT_LT(memory["temporaries"], bytes + 256 * memory["held_at_peak"].size());
  EXPECT_GT(memory["xla_cpu"]["temporaries"], 0);
}

TEST(Report, TotalsCountExecutions) {
  const auto totals = TotalsByOpcode(Partitioned().local);
  const CollectiveTotal& gather = totals.at("all-gather");
  // f32[2] to f32[8] five times, and x once or by other means.
  EXPECT_GE(gather.count_weighted, 5);
  EXPECT_GE(gather.bytes_weighted, 5 * 24);
  EXPECT_EQ(totals.at("all-reduce").count, 1);
  EXPECT_EQ(totals.at("all-reduce").bytes, 2 * 4 * 0.75);
  double sum = 0;
  for (const auto& [opcode, t] : totals) sum += t.bytes_weighted;
  EXPECT_DOUBLE_EQ(sum, TotalBytesMoved(Partitioned().local));
}

TEST(Explain, NamesACauseForEveryCollective) {
  const PartitionedProgram& p = Partitioned();
  const std::string text = Explain(p, {}, ExplainFormat::kText);
  ASSERT_FALSE(p.local.collectives.empty());
  for (const CollectiveRecord& r : p.local.collectives) {
    EXPECT_THAT(text, HasSubstr("%" + std::string(p.local.module.instr(r.local).name)));
    EXPECT_THAT(text, HasSubstr("for  " + CauseText(p, r)));
    EXPECT_TRUE(r.cause.consumer.valid());
  }
  EXPECT_THAT(text, HasSubstr("f.py:12"));
  EXPECT_THAT(text, HasSubstr("5 times"));
  EXPECT_THAT(text, HasSubstr("W202 %o: sort takes longer on shards"));
  EXPECT_THAT(text, HasSubstr("total sent per device and run"));
}

// Shards over one order of the devices and over another one have nothing in common.
constexpr char kClash[] = R"(HloModule m, num_partitions=8
ENTRY main {
  a = f32[10,8] parameter(0), sharding={devices=[4,2]<=[8]}
  b = f32[10,8] parameter(1), sharding={devices=[2,2,2]0,3,1,2,4,7,5,6 last_tile_dim_replicate}
  ROOT d = f32[10,8] add(a, b), sharding={devices=[2,2,2]0,3,1,2,4,7,5,6 last_tile_dim_replicate}, metadata={op_name="jit/d" source_file="f.py" source_line=42}
}
)";

TEST(Explain, WhatIsGatheredWholeAndCutAgainIsW201WithTheOriginsOfBothShardings) {
  const auto p = PartitionText(kClash, {});
  ASSERT_TRUE(p.ok()) << p.status();
  const std::string w201 =
      "W201 %d (f.py:42): operand 0: [{\"x0\"}, {\"x1\"}] -> [{\"x0\"}, {\"x1\"}] in another order "
      "of the devices moves 304 B; "
      "the left came from: argument 0; the right from: constraint at %d";
  EXPECT_THAT(Explain(**p, {}, ExplainFormat::kText), HasSubstr(w201));
  const Json j = Json::parse(ReportJson(**p, {}));
  ASSERT_FALSE(j["warnings"].empty());
  EXPECT_EQ(j["warnings"][0]["code"], "W201");
  EXPECT_EQ(j["warnings"][0]["text"], w201);
  EXPECT_THAT(j["warnings"][0]["fix"].get<std::string>(), HasSubstr("same order of devices"));

  // In one order of devices no value need be whole, even where shards do not divide it.
  const auto one_order =
      PartitionText(absl::StrReplaceAll(kClash, {{"0,3,1,2,4,7,5,6 ", "<=[2,2,2]T(0,2,1) "}}), {});
  ASSERT_TRUE(one_order.ok()) << one_order.status();
  EXPECT_THAT(Explain(**one_order, {}, ExplainFormat::kText), testing::Not(HasSubstr("W201")));
}

TEST(Explain, HasTheOriginsOfBothShardingsOfAnOperandThatIsMoved) {
  const auto p = PartitionText(R"(HloModule m, num_partitions=4
ENTRY main {
  x = f32[16,32] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[16,32] parameter(1), sharding={devices=[1,4]<=[4]}
  ROOT s = f32[16,32] add(x, y), sharding={devices=[4,1]<=[4]}
}
)",
                               {});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(Explain(**p, {}, ExplainFormat::kText),
              HasSubstr("  for  operand 1 of %s: [{}, {\"x0\"}] -> [{\"x0\"}, {}]\n"
                        "  why  argument 1\n  and  constraint at %s\n"));
}

// A sum over devices is due to what is added up, not to the sharding of its result.
TEST(Explain, HasTheOriginOfWhatASumAddsUpAndWhyItIsReducedIntoShards) {
  const auto explained = [](const std::string& results) {
    const auto p = PartitionText(absl::StrCat(R"(HloModule m, num_partitions=8
ENTRY main {
  x = f32[64,512] parameter(0)
  w = f32[512,64] parameter(1), sharding={devices=[8,1]<=[8]}
  y = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}
  z = f32[64,64] sine(y)
  ROOT t = (f32[64,64], f32[64,64]) tuple(y, z), sharding={)",
                                              results, "}\n}\n"),
                                 {});
    EXPECT_TRUE(p.ok()) << p.status();
    return p.ok() ? Explain(**p, {}, ExplainFormat::kText) : "";
  };
  EXPECT_THAT(explained("{replicated}, {replicated}"),
              HasSubstr("  for  result 0 of %y: [{}, {}] partial=add{\"x0\"} -> [{}, {}]\n"
                        "  why  argument 1\n\n"));
  EXPECT_THAT(explained("{devices=[8,1]<=[8]}, {devices=[8,1]<=[8]}"),
              HasSubstr("  for  result 0 of %y: [{}, {}] partial=add{\"x0\"} -> [{\"x0\"}, {}]\n"
                        "  why  argument 1\n"
                        "  and  all that read it take no more than their shards\n"));
}

TEST(Explain, HasTheOriginsOfWhatALoopBeginsAndEndsAnIterationWith) {
  const auto explained = [](const std::string& of_loop, StateSearch search) {
    const auto p = PartitionText(absl::StrCat(R"(HloModule m, num_partitions=8
cond {
  p = (s32[], f32[64,32]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  k = s32[] constant(5)
  ROOT l = pred[] compare(i, k), direction=LT
}
body {
  p = (s32[], f32[64,32]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[64,32] get-tuple-element(p), index=1
  y = f32[64,32] sine(x)
  c = f32[64,32] custom-call(y), custom_call_target="Sharding", sharding={devices=[1,8]<=[8]}
  s = f32[64,32] cosine(c)
  ROOT r = (s32[], f32[64,32]) tuple(j, s)
}
ENTRY main {
  x = f32[64,32] parameter(0), sharding={devices=[8,1]<=[8]}
  z = s32[] constant(0)
  t = (s32[], f32[64,32]) tuple(z, x)
  w = (s32[], f32[64,32]) while(t), condition=cond, body=body)",
                                              of_loop, R"(
  v = f32[64,32] get-tuple-element(w), index=1
  ROOT u = f32[64,32] tanh(v), sharding={devices=[1,8]<=[8]}
}
)"),
                                 {.search = search});
    EXPECT_TRUE(p.ok()) << p.status();
    return p.ok() ? Explain(**p, {}, ExplainFormat::kText) : "";
  };
  EXPECT_THAT(explained("", StateSearch::kSmall),
              HasSubstr("  for  value 1 carried by %w: [{\"x0\"}, {}] -> [{}, {\"x0\"}]\n"
                        "  why  argument 0\n  and  chosen: the program takes less time so"));
  EXPECT_THAT(explained(", sharding={{replicated}, {devices=[8,1]<=[8]}}", StateSearch::kNone),
              HasSubstr("  for  value 1 carried by %r: [{}, {\"x0\"}] -> [{\"x0\"}, {}]\n"
                        "  why  constraint at %c -> %s operand 0 -> result\n"
                        "  and  constraint at %w\n"));
}

// As a rule for attention that has a batch for each operand.
TEST(Explain, AGatherForARuleThatKeepsABatchApartIsW203) {
  const auto told = [](const std::string& rule) {
    const auto p = PartitionText(
        absl::StrCat(R"(HloModule m, num_partitions=8
ENTRY main {
  q = f32[64,16,4] parameter(0), sharding={devices=[8,1,1]<=[8]}
  k = f32[64,32,4] parameter(1), sharding={devices=[8,1,1]<=[8]}
  ROOT r = f32[64,16,4] custom-call(q, k), custom_call_target="attend", frontend_attributes={xla.sdy.sharding_rule="#sdy.op_sharding_rule<)",
                     rule, R"( need_replication={l}, custom>"}, sharding={devices=[8,1,1]<=[8]}
}
)"),
        {});
    EXPECT_TRUE(p.ok()) << p.status();
    return p.ok() ? Explain(**p, {}, ExplainFormat::kText) : "";
  };
  EXPECT_THAT(told("([i, j, k], [m, l, k])->([i, j, k]) {i=64, j=16, k=4, l=32, m=64}"),
              HasSubstr("W203 %r: operand 1 is gathered: [{\"x0\"}, {}, {}] -> [{}, {}, {}], "
                        "28.00 KiB sent per device, as the call's rule keeps dimension 0 apart "
                        "from dimension 0 of operand 0, which is sharded alike; if they are one, a "
                        "factor for both keeps it sharded"));
  const std::string joined = told("([i, j, k], [i, l, k])->([i, j, k]) {i=64, j=16, k=4, l=32}");
  EXPECT_THAT(joined, testing::Not(HasSubstr("W203")));
  EXPECT_THAT(joined, testing::Not(HasSubstr("all-gather")));
}

TEST(Explain, WhatAStrategySendsIsToldWithItsName) {
  const auto p = PartitionText(R"(HloModule m, num_partitions=4
ENTRY main {
  x = f32[16] parameter(0), sharding={devices=[4]<=[4]}
  ROOT s = f32[12] slice(x), slice={[2:14]}, sharding={devices=[4]<=[4]}
})",
                               {.spmd = {.cost = {.latency = 1e-15}}});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(Explain(**p, {}, ExplainFormat::kText),
              HasSubstr("operand 0 of %s, by the strategy \"halo exchange of a slice\""));
  EXPECT_THAT((*p)->plan.ToString((*p)->global->program),
              HasSubstr("%s = slice rule by \"halo exchange of a slice\""));
}

TEST(Report, HasTheStrategiesAndWhatWouldHaveBeenDearer) {
  const auto p = PartitionText(R"(HloModule m, num_partitions=4
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY main {
  x = f32[4096,512] parameter(0), sharding={devices=[4,1]<=[4]}
  n = f32[4096,512] negate(x)
  s = f32[4096,512] sort(n), dimensions={0}, to_apply=less, sharding={devices=[4,1]<=[4]}
  ROOT c = f32[4000,512] slice(s), slice={[2:4002], [0:512]}, sharding={devices=[4,1]<=[4]}
})",
                               {});
  ASSERT_TRUE(p.ok()) << p.status();
  const Json j = Json::parse(ReportJson(**p, {}));
  ASSERT_EQ(j["strategies"].size(), 2);  // negate is local
  const Json& sort = j["strategies"][0];
  EXPECT_EQ(sort["name"], "s");
  EXPECT_EQ(sort["opcode"], "sort");
  EXPECT_EQ(sort["strategy"], "moved");
  EXPECT_EQ(sort["bytes_moved"], 2 * 1024 * 512 * 4 * 3 / 4);
  std::set<std::string> rejected;
  for (const Json& c : sort["rejected"]) {
    rejected.insert(c["strategy"]);
    EXPECT_GE(c["seconds"], sort["seconds"]);
  }
  EXPECT_THAT(rejected, testing::UnorderedElementsAre("local", "merge exchange of sorted shards"));
  EXPECT_EQ(j["strategies"][1]["strategy"], "halo exchange of a slice");
  rejected.clear();
  for (const Json& c : j["strategies"][1]["rejected"]) rejected.insert(c["strategy"]);
  EXPECT_THAT(rejected, testing::UnorderedElementsAre("moved", "own rows of a slice"));
}

TEST(Report, EachStrategyHasANameOfItsOwn) {
  std::map<absl::string_view, const Strategy*> named = {{kMovedStrategy.name, &kMovedStrategy}};
  for (int k = 0; k < kNumOpcodes; ++k) {
    const Strategy& s = StrategyOf(static_cast<Opcode>(k));
    EXPECT_EQ(named.try_emplace(s.name, &s).first->second, &s) << s.name;
  }
}

TEST(Explain, EveryCollectiveOfTheModuleIsRecorded) {
  const PartitionedProgram& p = Partitioned();
  const Module& m = p.local.module;
  int collectives = 0;
  for (int i = 0; i < m.num_instructions(); ++i) {
    collectives += HasTrait(m.instr(InstrId(i)).opcode, kCollectiveOp);
  }
  EXPECT_EQ(collectives, p.local.collectives.size());
}

TEST(Explain, OtherFormats) {
  EXPECT_TRUE(Json::accept(Explain(Partitioned(), {}, ExplainFormat::kJson)));
  const std::string html = Explain(Partitioned(), {}, ExplainFormat::kHtml);
  EXPECT_THAT(html, HasSubstr("<table>"));
  EXPECT_THAT(html, HasSubstr("all-gather"));
}

absl::Status Contract(const std::string& text) {
  const auto terms = ParseContract(text);
  return terms.ok() ? CheckContract(*terms, Partitioned()) : terms.status();
}

TEST(Contract, HoldsOrNamesEveryBrokenTerm) {
  EXPECT_TRUE(Contract("all-reduce=1, bytes<=1GiB, fallbacks<2").ok());
  EXPECT_TRUE(Contract("reduce-scatter==0,all-gather>0").ok());
  EXPECT_TRUE(Contract("all-to-all!=3").ok());
  const absl::Status broken = Contract("all-reduce=0, bytes<1, fallbacks=1");
  EXPECT_THAT(broken, Fails("E221", "all-reduce is 1, not = 0"));
  EXPECT_THAT(broken, Fails("E221", "bytes is "));
  EXPECT_THAT(broken, testing::Not(Fails("E221", "fallbacks is")));
  EXPECT_EQ(broken.code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Contract, UnreadableTermsAreShown) {
  for (const char* text :
       {"all-gather", "=3", "add=1", "bytes<=many", "bytes=<3", "bytes<=-1", "all-gather=1KiBs"}) {
    EXPECT_THAT(Contract(text), Fails("E220", text));
  }
}

TEST(Contract, UnitsScale) {
  const auto terms = ParseContract("bytes<=2KiB, bytes<=3MB, bytes<=7B");
  ASSERT_TRUE(terms.ok()) << terms.status();
  EXPECT_EQ((*terms)[0].limit, 2048);
  EXPECT_EQ((*terms)[1].limit, 3e6);
  EXPECT_EQ((*terms)[2].limit, 7);
}

}  // namespace
}  // namespace shardcall
