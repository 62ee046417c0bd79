// SPDX-License-Identifier: Apache-2.0
// Counterparts of the cases of XLA's own custom-call tests for the CPU,
// with handlers written against XLA's headers (plugins/xla_suite.cc). Which case is
// whose stands in tests/status/xla_custom_calls.json.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/partitioner/bindings/xla/xla_suite_util.h"

namespace shardcall {
namespace {

using testing::ElementsAre;

TEST(XlaCpuSuite, AddsToAScalar) {
  EXPECT_THAT(
      Floats(Results("c = f32[] constant(42)\nROOT r = f32[] custom-call(c), " + Typed("add_two"))),
      ElementsAre(44));
}

TEST(XlaCpuSuite, AnAliasedResultIsItsOperand) {
  EXPECT_THAT(
      Floats(Results("c = f32[] constant(42)\nROOT r = f32[] custom-call(c), " +
                     Typed("add_two_in_place") + ", output_to_operand_aliasing={{}: (0, {})}")),
      ElementsAre(44));
}

TEST(XlaCpuSuite, ReducesAMatrix) {
  EXPECT_THAT(
      Floats(Results("c = f32[2,2] constant({{1,2},{3,4}})\nROOT r = f32[] custom-call(c), " +
                     Typed("sum"))),
      ElementsAre(10));
}

TEST(XlaCpuSuite, AStatusThatIsNotSetIsSuccess) {
  EXPECT_THAT(Floats(Results("c = f32[] constant(42)\nROOT r = f32[] custom-call(c), "
                             "custom_call_target=\"untyped.add_two\", "
                             "api_version=API_VERSION_STATUS_RETURNING")),
              ElementsAre(44));
}

TEST(XlaCpuSuite, AFailureThatIsSetIsReported) {
  const auto r = Results(
      "c = f32[] constant(42)\nROOT r = f32[] custom-call(c), "
      "custom_call_target=\"untyped.fail\", "
      "api_version=API_VERSION_STATUS_RETURNING");
  EXPECT_EQ(r.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(r, Fails("E317", "Failed: 42"));
}

TEST(XlaCpuSuite, TheFirstFailureIsReported) {
  const std::string fail =
      "custom_call_target=\"untyped.fail\", "
      "api_version=API_VERSION_STATUS_RETURNING\n";
  EXPECT_THAT(Results("c = f32[] constant(1)\na = f32[] custom-call(c), " + fail +
                      "b = f32[] custom-call(a), " + fail + "ROOT r = f32[] add(a, b)"),
              Fails("E317", "Failed: 1"));
}

TEST(XlaCpuSuite, TheFirstFailureOfCalledComputationsIsReported) {
  EXPECT_THAT(Results("sub {\n p = f32[] parameter(0)\n ROOT c = f32[] custom-call(p), "
                      "custom_call_target=\"untyped.fail\", "
                      "api_version=API_VERSION_STATUS_RETURNING\n}\n"
                      "ENTRY e {\n c = f32[] constant(1)\n a = f32[] call(c), to_apply=sub\n"
                      " b = f32[] call(a), to_apply=sub\n ROOT r = f32[] add(a, b)\n}\n"),
              Fails("E317", "Failed: 1"));
}

TEST(XlaCpuSuite, TheBackendConfigReachesTheHandlerAsItStands) {
  EXPECT_THAT(Results("c = f32[] constant(1)\nROOT r = f32[] custom-call(c), "
                      "custom_call_target=\"untyped.fail_with_opaque\", backend_config=\"foo\", "
                      "api_version=API_VERSION_STATUS_RETURNING_UNIFIED"),
              Fails("E317", "opaque is foo"));
}

TEST(XlaCpuSuite, NamesThatBeginWithADollarSignAreReserved) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  EXPECT_THAT(LoadManifest(absl::StrCat("{\"library\": \"", SHARDCALL_XLA_SUITE,
                                        "\", \"targets\": [{\"name\": \"$illegal\", "
                                        "\"symbol\": \"AddTwoHandler\"}]}"),
                           "m.json", &targets, &handlers),
              Fails("E141", "$illegal"));
  EXPECT_THAT(Results("ROOT r = f32[1] custom-call(), " + Typed("$illegal")),
              Fails("E140", "$illegal"));
}

TEST(XlaCpuSuite, ATypedCallSucceeds) {
  EXPECT_TRUE(Results("ROOT r = f32[] custom-call(), " + Typed("succeed")).ok());
}

TEST(XlaCpuSuite, TokensGoInAndOut) {
  EXPECT_TRUE(Results("t = token[] after-all()\nROOT r = (f32[], token[]) custom-call(t), " +
                      Typed("tokens", "{pattern = \"TAT\"}"))
                  .ok());
}

TEST(XlaCpuSuite, AnUnknownTargetIsNamed) {
  const auto r = Results("ROOT r = f32[] custom-call(), " + Typed("ad_two"));
  EXPECT_THAT(r, Fails("E140", "\"ad_two\" at %r has no handler. Requested: Host"));
  EXPECT_THAT(r, Fails("E140", "Near names: add_two"));
}

TEST(XlaCpuSuite, AnApiVersionThatIsNoneIsRefused) {
  const std::string call = "ROOT r = f32[] custom-call(), custom_call_target=\"succeed\", ";
  EXPECT_THAT(Results(call + "api_version=API_VERSION_UNSPECIFIED"),
              Fails("E140", "API version 0 (unspecified)"));
  EXPECT_THAT(Results(call + "api_version=API_VERSION_NINE"), Fails("E019", "API_VERSION_NINE"));
  EXPECT_FALSE(Results(call + "api_version=9").ok());
}

TEST(XlaCpuSuite, ATypedFailureKeepsItsCodeAndMessage) {
  const auto r = Results("ROOT r = f32[] custom-call(), " + Typed("fail", "{value = 42 : i32}"));
  EXPECT_EQ(r.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(r, Fails("E317", "Failed with 42"));
}

TEST(XlaCpuSuite, OneOfTwoTypedFailuresIsReported) {
  EXPECT_THAT(Results("a = f32[] custom-call(), " + Typed("fail", "{value = 1 : i32}") +
                      "\nb = f32[] custom-call(), " + Typed("fail", "{value = 2 : i32}") +
                      "\nROOT r = f32[] add(a, b)"),
              Fails("E317", "Failed with"));
}

TEST(XlaCpuSuite, OneOfTwoTypedFailuresOfCalledComputationsIsReported) {
  EXPECT_THAT(
      Results("two {\n ROOT c = f32[] custom-call(), " + Typed("fail", "{value = 2 : i32}") +
              "\n}\nthree {\n ROOT c = f32[] custom-call(), " + Typed("fail", "{value = 3 : i32}") +
              "\n}\nENTRY e {\n a = f32[] call(), to_apply=two\n b = f32[] call(), "
              "to_apply=three\n ROOT r = f32[] add(a, b)\n}\n"),
      Fails("E317", "Failed with"));
}

TEST(XlaCpuSuite, AWrongNumberOfOperandsIsAnError) {
  const auto r = Results("ROOT r = f32[] custom-call(), " + Typed("add_two"));
  EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(r, Fails("E317", "Wrong number of arguments"));
}

TEST(XlaCpuSuite, AWrongRankIsAnError) {
  EXPECT_THAT(Results("c = f32[2,2] constant({{1,2},{3,4}})\nROOT r = f32[2,2] custom-call(c), " +
                      Typed("add_two")),
              Fails("E317", "Wrong buffer rank"));
}

TEST(XlaCpuSuite, AWrongElementTypeIsAnError) {
  EXPECT_THAT(Results("c = s32[] constant(42)\nROOT r = f32[] custom-call(c), " + Typed("add_two")),
              Fails("E317", "Wrong buffer dtype"));
}

TEST(XlaCpuSuite, TypedBuffersFromConstantsAndParameters) {
  EXPECT_THAT(
      Floats(Results("p = f32[] parameter(0)\nROOT r = f32[] custom-call(p), " + Typed("add_two"),
                     {F32({}, {42})})),
      ElementsAre(44));
}

TEST(XlaCpuSuite, BuffersOfAnyType) {
  EXPECT_THAT(Floats(Results("c = f32[] constant(42)\nROOT r = f32[] custom-call(c), " +
                             Typed("add_two_to_any"))),
              ElementsAre(44));
  const auto r =
      Results("c = f64[] constant(42)\nROOT r = f64[] custom-call(c), " + Typed("add_two_to_any"));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Elements<double>((*r)[0]), ElementsAre(44));
}

TEST(XlaCpuSuite, AnAttributeIsHandedOver) {
  EXPECT_THAT(Floats(Results("c = f32[] constant(42)\nROOT r = f32[] custom-call(c), " +
                             Typed("add_n", "{n = 3.0 : f32}"))),
              ElementsAre(45));
}

TEST(XlaCpuSuite, AnAttributeMayBeAPointer) {
  const float n = 4;
  EXPECT_THAT(
      Floats(Results("c = f32[] constant(42)\nROOT r = f32[] custom-call(c), " +
                     Typed("add_at_pointer",
                           absl::StrCat("{n = ", reinterpret_cast<uintptr_t>(&n), " : i64}")))),
      ElementsAre(46));
}

TEST(XlaCpuSuite, AnEnumOfAnotherWidthIsAnError) {
  EXPECT_THAT(Results("c = f32[2,2] constant({{1,2},{3,4}})\nROOT r = f32[] custom-call(c), " +
                      Typed("accumulate", "{operation = 0 : i16, start = 0 : i16}")),
              Fails("E317", "Wrong scalar data type"));
}

TEST(XlaCpuSuite, EnumsOfDifferentWidths) {
  const float expected[2][2] = {{10, 11}, {0, 24}};  // by operation, then start
  for (int operation : {0, 1}) {
    for (int start : {0, 1}) {
      EXPECT_THAT(
          Floats(Results("c = f32[2,2] constant({{1,2},{3,4}})\nROOT r = f32[] custom-call(c), " +
                         Typed("accumulate", absl::StrCat("{operation = ", operation,
                                                          " : i8, start = ", start, " : i32}")))),
          ElementsAre(expected[operation][start]));
    }
  }
}

TEST(XlaCpuSuite, ResultsAreUsedByOtherComputations) {
  EXPECT_THAT(
      Floats(Results("c = f32[2,2] constant({{1,2},{3,4}})\na = f32[1,2,2] custom-call(c), " +
                     Typed("add_one") + "\nb = f32[1,2,2] custom-call(a), " + Typed("add_one") +
                     "\nROOT r = f32[2,2,2] concatenate(a, b), dimensions={0}")),
      ElementsAre(2, 3, 4, 5, 3, 4, 5, 6));
}

TEST(XlaCpuSuite, StatedLayoutsThatDifferTranspose) {
  // Element by element of row-major memory into column-major memory.
  EXPECT_THAT(
      Floats(Results("p = f32[2,2]{1,0} parameter(0)\nROOT r = f32[2,2]{0,1} custom-call(p), " +
                         Typed("add_one") + ", operand_layout_constraints={f32[2,2]{1,0}}",
                     {F32({2, 2}, {1, 2, 3, 4})})),
      ElementsAre(2, 4, 3, 5));
  // The entry's layouts alone change no number.
  EXPECT_THAT(Floats(Results("ENTRY e {\np = f32[2,2]{1,0} parameter(0)\nROOT r = f32[2,2] "
                             "custom-call(p), " +
                                 Typed("add_one") + "\n}\n",
                             {F32({2, 2}, {1, 2, 3, 4})})),
              ElementsAre(2, 3, 4, 5));
}

TEST(XlaCpuSuite, ConstrainedLayoutsHoldWhateverTheEntrySays) {
  const std::string call = Typed("add_one") + ", operand_layout_constraints={f32[2,2]{1,0}}\n";
  const auto module = ParseText(
      "HloModule m, entry_computation_layout={(f32[2,2]{1,0})->f32[2,2]{0,1}}\nENTRY e {\n"
      "p = f32[2,2]{1,0} parameter(0)\na = f32[2,2]{1,0} custom-call(p), " +
      call + "ROOT r = f32[2,2]{1,0} custom-call(a), " + call + "}\n");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(Floats(Evaluate(*module, {F32({2, 2}, {1, 2, 3, 4})}, &Suite().handlers)),
              ElementsAre(3, 4, 5, 6));
}

std::vector<float> Scalars(const absl::StatusOr<std::vector<Tensor>>& results) {
  EXPECT_TRUE(results.ok()) << results.status();
  std::vector<float> out;
  if (results.ok()) {
    for (const Tensor& t : *results) out.push_back(t.data<float>()[0]);
  }
  return out;
}

TEST(XlaCpuSuite, TuplesComeOut) {
  EXPECT_THAT(Scalars(Results("a = f32[] parameter(0)\nb = f32[] parameter(1)\n"
                              "ROOT r = (f32[], f32[]) custom-call(a, b), " +
                                  Typed("rotate"),
                              {F32({}, {7}), F32({}, {42})})),
              ElementsAre(42, 7));
}

TEST(XlaCpuSuite, NestedTuplesComeOut) {
  EXPECT_THAT(
      Scalars(Results("a = f32[] constant(7)\nb = f32[] constant(42)\nc = f32[] constant(8)\n"
                      "d = f32[] constant(43)\nROOT r = ((f32[], f32[]), (f32[], f32[])) "
                      "custom-call(a, b, c, d), " +
                      Typed("rotate"))),
      ElementsAre(42, 8, 43, 7));
}

TEST(XlaCpuSuite, TuplesGoIn) {
  EXPECT_THAT(Scalars(Results("c = (f32[], f32[]) constant((7.0, 42.0))\n"
                              "ROOT r = (f32[], f32[]) custom-call(c), " +
                              Typed("rotate"))),
              ElementsAre(42, 7));
}

TEST(XlaCpuSuite, NestedTuplesGoIn) {
  EXPECT_THAT(Scalars(Results("c = ((f32[], f32[]), (f32[], f32[])) constant(((7.0, 42.0), (8.0, "
                              "43.0)))\nROOT r = (f32[], f32[], f32[], f32[]) custom-call(c), " +
                              Typed("rotate"))),
              ElementsAre(42, 8, 43, 7));
}

TEST(XlaCpuSuite, NestedTuplesGoInAndOut) {
  EXPECT_THAT(Scalars(Results("c = ((f32[], f32[]), (f32[], f32[])) constant(((7.0, 42.0), (8.0, "
                              "43.0)))\nROOT r = (f32[], (f32[], f32[]), f32[]) custom-call(c), " +
                              Typed("rotate"))),
              ElementsAre(42, 8, 43, 7));
}

void ExpectSwapped(const absl::StatusOr<std::vector<Tensor>>& r) {
  ASSERT_TRUE(r.ok()) << r.status();
  ASSERT_EQ(r->size(), 2u);
  EXPECT_THAT(Elements<int16_t>((*r)[0]), ElementsAre(29));
  EXPECT_THAT(Elements<uint32_t>((*r)[1]), ElementsAre(0xDEADC0DEu));
}
std::vector<Tensor> Pair() {
  return {Tensor::From(ElementType::kU32, {}, std::vector<uint32_t>{0xDEADC0DEu}),
          Tensor::From(ElementType::kS16, {}, std::vector<int16_t>{29})};
}

TEST(XlaCpuSuite, TuplesOfMixedTypesAsAnyBuffers) {
  ExpectSwapped(Results(
      "p = (u32[], s16[]) parameter(0)\nROOT r = (s16[], u32[]) custom-call(p), " + Typed("rotate"),
      Pair()));
}

TEST(XlaCpuSuite, EmptyTuplesAreNoBuffers) {
  ExpectSwapped(
      Results("p = (u32[], s16[], ((), ())) parameter(0)\n"
              "ROOT r = (s16[], u32[]) custom-call(p), " +
                  Typed("swap"),
              Pair()));
}

TEST(XlaCpuSuite, TuplesOfMixedTypesAsTypedBuffers) {
  ExpectSwapped(Results(
      "p = (u32[], s16[]) parameter(0)\nROOT r = (s16[], u32[]) custom-call(p), " + Typed("swap"),
      Pair()));
}

TEST(XlaCpuSuite, TuplesOfMatrices) {
  EXPECT_THAT(Floats(Results("p = (f32[2,1], f32[2,1], f32[2,1]) parameter(0)\n"
                             "ROOT r = f32[2,3] custom-call(p), " +
                                 Typed("columns"),
                             {F32({2, 1}, {1, 2}), F32({2, 1}, {3, 4}), F32({2, 1}, {5, 6})})),
              ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST(XlaCpuSuite, TuplesOfDifferentRanks) {
  std::vector<float> batch(16);
  for (int i = 0; i < 16; ++i) batch[i] = static_cast<float>(i + 1);
  const auto r = Results(
      "p = ((u32[], s16[5]), (f32[2,2], f32[4,2,2])) parameter(0)\n"
      "ROOT r = (s32[5], f32[5,2,2]) custom-call(p), " +
          Typed("ranks"),
      {Tensor::From(ElementType::kU32, {}, std::vector<uint32_t>{100}),
       Tensor::From(ElementType::kS16, {5}, std::vector<int16_t>{29, 30, 31, 32, 33}),
       F32({2, 2}, {17, 18, 19, 20}), F32({4, 2, 2}, batch)});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Elements<int32_t>((*r)[0]), ElementsAre(2900, 3000, 3100, 3200, 3300));
  for (int i = 16; i < 20; ++i) batch.push_back(static_cast<float>(i + 1));
  EXPECT_EQ(Elements<float>((*r)[1]), batch);
}

TEST(XlaCpuSuite, TasksRunOnTheThreadPool) {
  EXPECT_THAT(Floats(Results("ROOT r = f32[] custom-call(), " + Typed("on_the_pool"))),
              ElementsAre(1));
}

std::string Loop(int times, const std::string& call) {
  return absl::StrCat(
      "cond {\n a = (s32[], f32[]) parameter(0)\n i = s32[] get-tuple-element(a), index=0\n"
      " n = s32[] constant(",
      times,
      ")\n ROOT r = pred[] compare(i, n), direction=LT\n}\n"
      "body {\n a = (s32[], f32[]) parameter(0)\n i = s32[] get-tuple-element(a), index=0\n"
      " one = s32[] constant(1)\n j = s32[] add(i, one)\n c = f32[] custom-call(), ",
      call,
      "\n ROOT r = (s32[], f32[]) tuple(j, c)\n}\n"
      "ENTRY e {\n i = s32[] constant(0)\n z = f32[] constant(0)\n"
      " t = (s32[], f32[]) tuple(i, z)\n w = (s32[], f32[]) while(t), condition=cond, body=body\n"
      " ROOT r = f32[] get-tuple-element(w), index=1\n}\n");
}

TEST(XlaCpuSuite, InstantiateIsCalledOnce) {
  *Symbol<int>("instantiated") = 0;
  EXPECT_TRUE(Results("ROOT r = f32[] custom-call(), " + Typed("next")).ok());
  EXPECT_EQ(*Symbol<int>("instantiated"), 1);
}

TEST(XlaCpuSuite, TheStateOutlivesTheCallsOfALoop) {
  *Symbol<int>("instantiated") = 0;
  EXPECT_THAT(Floats(Results(Loop(2, Typed("next")))), ElementsAre(44));
  EXPECT_EQ(*Symbol<int>("instantiated"), 1);
}

TEST(XlaCpuSuite, InstantiateGetsTheAttributes) {
  *Symbol<float>("instantiated_with") = 0;
  EXPECT_TRUE(
      Results("ROOT r = f32[] custom-call(), " + Typed("next_from", "{start = 43.0 : f32}")).ok());
  EXPECT_EQ(*Symbol<float>("instantiated_with"), 43);
}

TEST(XlaCpuSuite, TheStateMadeFromAttributesOutlivesTheCallsOfALoop) {
  EXPECT_THAT(Floats(Results(Loop(3, Typed("next_from", "{start = 43.0 : f32}")))),
              ElementsAre(46));
}

struct Visit {
  int32_t value = 42;
  bool prepared = false, initialized = false, executed = false;
};

TEST(XlaCpuSuite, UserDataReachesEveryStage) {
  Visit visit;
  Suite().handlers.SetUserData(*Symbol<int64_t>("_ZN5Visit2idE"), &visit);
  const auto r = Results("ROOT r = f32[] custom-call(), " + Typed("note"));
  EXPECT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(visit.prepared && visit.initialized && visit.executed);
}

}  // namespace
}  // namespace shardcall
