// SPDX-License-Identifier: Apache-2.0
// Programs on several devices, and custom calls.
#include <atomic>
#include <cstring>

#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Runs on `n` threads; arguments[d] is device d's only argument. Gives each
// device's first result.
absl::StatusOr<std::vector<std::vector<double>>> RunDevices(
    absl::string_view text, const std::vector<Tensor>& arguments,
    const HandlerRegistry* handlers = nullptr, absl::Duration deadline = absl::Seconds(20)) {
  const int n = static_cast<int>(arguments.size());
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceProgram> program,
                             LowerText(text, absl::StrCat("num_partitions=", n)));
  std::vector<std::vector<Tensor>> lists;
  for (const Tensor& t : arguments) lists.push_back({t});
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<std::vector<Tensor>> results,
                             RunOnThreads(*program, lists, n, handlers, deadline));
  std::vector<std::vector<double>> out;
  for (const auto& r : results) out.push_back(Numbers(r[0]));
  return out;
}

constexpr char kAdd[] =
    "add {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = s32[] add(a, b)\n}\n";

std::vector<Tensor> Pairs(int n) {  // device d holds {d, 10 d}
  std::vector<Tensor> t;
  for (int d = 0; d < n; ++d) t.push_back(S32({2}, {d, 10 * d}));
  return t;
}

TEST(Devices, AllReduceByListsAndByIotaGroups) {
  for (const char* groups : {"{{0,2},{1,3}}", "[2,2]<=[2,2]T(1,0)"}) {
    const auto r = RunDevices(
        absl::StrCat(kAdd,
                     "ENTRY e {\n p = s32[2] parameter(0)\n ROOT r = s32[2] all-reduce(p), "
                     "channel_id=1, replica_groups=",
                     groups, ", use_global_device_ids=true, to_apply=add\n}\n"),
        Pairs(4));
    ASSERT_TRUE(r.ok()) << r.status();
    EXPECT_THAT(*r, ElementsAre(ElementsAre(2, 20), ElementsAre(4, 40), ElementsAre(2, 20),
                                ElementsAre(4, 40)));
  }
}

TEST(Devices, WithoutAChannelGroupsNameReplicasSoEachDeviceIsAlone) {
  const auto r = RunDevices(
      absl::StrCat(kAdd,
                   "ENTRY e {\n p = s32[2] parameter(0)\n ROOT r = s32[2] all-reduce(p), "
                   "replica_groups={}, to_apply=add\n}\n"),
      Pairs(2));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(*r, ElementsAre(ElementsAre(0, 0), ElementsAre(1, 10)));
}

TEST(Devices, WithAChannelButReplicaGroupsAllPartitionsTakePart) {
  const auto r = RunDevices(
      absl::StrCat(kAdd,
                   "ENTRY e {\n p = s32[2] parameter(0)\n ROOT r = s32[2] all-reduce(p), "
                   "channel_id=3, replica_groups={{0}}, to_apply=add\n}\n"),
      Pairs(3));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT((*r)[1], ElementsAre(3, 30));
}

TEST(Devices, AComputationThatIsNoKnownReductionIsFoldedInGroupOrder) {
  const auto r = RunDevices(
      "sub {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = s32[] subtract(a, b)\n}\n"
      "ENTRY e {\n p = s32[2] parameter(0)\n ROOT r = s32[2] all-reduce(p), channel_id=1, "
      "replica_groups={{2,1,0}}, use_global_device_ids=true, to_apply=sub\n}\n",
      Pairs(3));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT((*r)[0], ElementsAre(2 - 1 - 0, 20 - 10 - 0));
}

TEST(Devices, AllGatherAndReduceScatterOfAnInnerDimension) {
  const char* kGather =
      "p = s32[2] parameter(0)\nq = s32[2,1] reshape(p)\n"
      "ROOT r = s32[2,2] all-gather(q), channel_id=1, replica_groups={{1,0}}, "
      "dimensions={1}, use_global_device_ids=true";
  auto r = RunDevices(kGather, Pairs(2));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT((*r)[0], ElementsAre(1, 0, 10, 0));  // group order: device 1 first
  r = RunDevices(absl::StrCat(kAdd,
                              "ENTRY e {\n p = s32[2] parameter(0)\n"
                              " q = s32[2,2] broadcast(p), dimensions={1}\n"
                              " ROOT r = s32[2,1] reduce-scatter(q), channel_id=1, "
                              "replica_groups={{0,1}}, dimensions={1}, use_global_device_ids=true, "
                              "to_apply=add\n}\n"),
                 Pairs(2));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(*r, ElementsAre(ElementsAre(1, 1), ElementsAre(10, 10)));
}

TEST(Devices, AllToAllAsArrayAndAsTuple) {
  auto r = RunDevices(
      "p = s32[2] parameter(0)\nROOT r = s32[2] all-to-all(p), channel_id=1, "
      "replica_groups={{0,1}}, dimensions={0}",
      Pairs(2));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(*r, ElementsAre(ElementsAre(0, 1), ElementsAre(0, 10)));
  r = RunDevices(
      "p = s32[2] parameter(0)\nn = s32[2] negate(p)\n"
      "t = (s32[2], s32[2]) all-to-all(p, n), channel_id=1, replica_groups={{0,1}}\n"
      "ROOT r = s32[2] get-tuple-element(t), index=1",
      Pairs(2));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(*r, ElementsAre(ElementsAre(1, 10), ElementsAre(-1, -10)));
}

TEST(Devices, PermuteGivesZerosToThoseThatReceiveNothing) {
  const auto r = RunDevices(
      "p = s32[2] parameter(0)\nROOT r = s32[2] collective-permute(p), "
      "channel_id=1, source_target_pairs={{1,0},{2,1}}",
      Pairs(3));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(*r, ElementsAre(ElementsAre(1, 10), ElementsAre(2, 20), ElementsAre(0, 0)));
}

TEST(Devices, BroadcastTakesTheFirstOfTheGroup) {
  const auto r = RunDevices(
      "p = s32[2] parameter(0)\nROOT r = s32[2] collective-broadcast(p), "
      "channel_id=1, replica_groups={{2,0}}",
      Pairs(3));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(*r, ElementsAre(ElementsAre(2, 20), ElementsAre(0, 0), ElementsAre(2, 20)));
}

TEST(Devices, RaggedAllToAllPutsRowsWhereTheSenderSays) {
  // Each device sends its first row to device 0 and its second to device 1, at
  // row `sender`.
  const auto r = RunDevices(
      "p = s32[2] parameter(0)\no = s32[3] constant({-1, -1, -1})\n"
      "io = s32[2] constant({0, 1})\nss = s32[2] constant({1, 1})\n"
      "id = u32[] partition-id()\ni = s32[] convert(id)\noo = s32[2] broadcast(i), dimensions={}\n"
      "ROOT r = s32[3] ragged-all-to-all(p, o, io, ss, oo, ss), channel_id=1, "
      "replica_groups={{0,1}}",
      Pairs(2));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(*r, ElementsAre(ElementsAre(0, 1, -1), ElementsAre(0, 10, -1)));
}

TEST(Devices, RaggedOffsetsOutsideTheArrayAreAnError) {
  const auto r = RunDevices(
      "p = s32[2] parameter(0)\no = s32[3] constant({-1, -1, -1})\n"
      "io = s32[2] constant({0, 5})\nss = s32[2] constant({1, 1})\n"
      "ROOT r = s32[3] ragged-all-to-all(p, o, io, ss, io, ss), channel_id=1, "
      "replica_groups={{0,1}}",
      Pairs(2));
  EXPECT_EQ(DiagnosticCode(r.status()), "E316") << r.status();
}

TEST(Devices, GroupsThatNameAbsentDevicesAreAnError) {
  const auto r = RunDevices(
      absl::StrCat(kAdd,
                   "ENTRY e {\n p = s32[2] parameter(0)\n ROOT r = s32[2] all-reduce(p), "
                   "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, "
                   "to_apply=add\n}\n"),
      Pairs(2));
  EXPECT_EQ(DiagnosticCode(r.status()), "E312") << r.status();
}

HandlerEntry Entry(absl::string_view target, HostHandler handler) {
  HandlerEntry entry;
  entry.target = std::string(target);
  entry.host = std::move(handler);
  return entry;
}

TEST(Devices, TheErrorOfTheDeviceThatFailedIsReportedAndTheOthersStop) {
  HandlerRegistry handlers;
  ASSERT_TRUE(handlers
                  .Register(Entry("fail_on_2",
                                  [](const HandlerContext& c, absl::Span<const BufferView>,
                                     absl::Span<const BufferView>) {
                                    return c.device_ordinal == 2 ? absl::InternalError("no luck")
                                                                 : absl::OkStatus();
                                  }))
                  .ok());
  const auto r =
      RunDevices(absl::StrCat(kAdd,
                              "ENTRY e {\n p = s32[2] parameter(0)\n"
                              " c = s32[2] custom-call(p), custom_call_target=\"fail_on_2\"\n"
                              " ROOT r = s32[2] all-reduce(c), channel_id=1, replica_groups={}, "
                              "use_global_device_ids=true, to_apply=add\n}\n"),
                 Pairs(4), &handlers);
  EXPECT_EQ(DiagnosticCode(r.status()), "E317");
  EXPECT_THAT(std::string(r.status().message()), HasSubstr("no luck"));
}

TEST(Devices, ALoopStopsWhenAnotherDeviceFails) {
  HandlerRegistry handlers;
  ASSERT_TRUE(handlers
                  .Register(Entry("fail_on_1",
                                  [](const HandlerContext& c, absl::Span<const BufferView>,
                                     absl::Span<const BufferView>) {
                                    return c.device_ordinal == 1 ? absl::InternalError("no luck")
                                                                 : absl::OkStatus();
                                  }))
                  .ok());
  const auto r = RunDevices(
      "forever {\n p = s32[2] parameter(0)\n ROOT t = pred[] constant(true)\n}\n"
      "same {\n p = s32[2] parameter(0)\n ROOT c = s32[2] custom-call(p), "
      "custom_call_target=\"fail_on_1\"\n}\n"
      "ENTRY e {\n p = s32[2] parameter(0)\n ROOT r = s32[2] while(p), condition=forever, "
      "body=same\n}\n",
      Pairs(2), &handlers);
  EXPECT_EQ(DiagnosticCode(r.status()), "E317") << r.status();
}

TEST(CustomCalls, OperandsAndResultsHaveTheStatedLayouts) {
  HandlerRegistry handlers;
  std::vector<int32_t> seen;
  ASSERT_TRUE(handlers
                  .Register(Entry("echo",
                                  [&](const HandlerContext&, absl::Span<const BufferView> in,
                                      absl::Span<const BufferView> out) {
                                    const int32_t* x = static_cast<const int32_t*>(in[0].data);
                                    seen.assign(x, x + 6);
                                    EXPECT_THAT(in[0].dims, ElementsAre(2, 3));
                                    std::memcpy(out[0].data, in[0].data, 24);
                                    return absl::OkStatus();
                                  }))
                  .ok());
  DeviceContext device;
  device.handlers = &handlers;
  const auto r = RunText(
      "p = s32[2,3]{1,0} parameter(0)\n"
      "ROOT r = s32[2,3]{1,0} custom-call(p), custom_call_target=\"echo\", "
      "operand_layout_constraints={s32[2,3]{0,1}}",
      {S32({2, 3}, {1, 2, 3, 4, 5, 6})}, device);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(seen, ElementsAre(1, 4, 2, 5, 3, 6));              // columns first
  EXPECT_THAT(Numbers((*r)[0]), ElementsAre(1, 4, 2, 5, 3, 6));  // read row by row
}

TEST(CustomCalls, AliasedResultsStartAsTheirOperand) {
  HandlerRegistry handlers;
  ASSERT_TRUE(handlers
                  .Register(Entry("bump",
                                  [](const HandlerContext&, absl::Span<const BufferView> in,
                                     absl::Span<const BufferView> out) {
                                    EXPECT_EQ(in[1].data, out[0].data);
                                    static_cast<int32_t*>(out[0].data)[0] +=
                                        static_cast<const int32_t*>(in[0].data)[0];
                                    return absl::OkStatus();
                                  }))
                  .ok());
  DeviceContext device;
  device.handlers = &handlers;
  const auto r = RunText(
      "p = s32[1] parameter(0)\nq = s32[2] parameter(1)\n"
      "c = s32[2] custom-call(p, q), custom_call_target=\"bump\", "
      "output_to_operand_aliasing={{}: (1, {})}\n"
      "ROOT r = s32[2] add(c, q)",
      {S32({1}, {100}), S32({2}, {1, 2})}, device);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Numbers((*r)[0]), ElementsAre(102, 4));
}

TEST(CustomCalls, AttributesAreParsedOnceAndHandedOver) {
  HandlerRegistry handlers;
  ASSERT_TRUE(handlers
                  .Register(Entry("scale",
                                  [](const HandlerContext& c, absl::Span<const BufferView> in,
                                     absl::Span<const BufferView> out) {
                                    SHARDCALL_ASSIGN_OR_RETURN(const int64_t by,
                                                               c.attribute_map().GetInt("by", 1));
                                    *static_cast<int32_t*>(out[0].data) =
                                        static_cast<int32_t>(by) *
                                        *static_cast<const int32_t*>(in[0].data);
                                    return absl::OkStatus();
                                  }))
                  .ok());
  DeviceContext device;
  device.handlers = &handlers;
  const auto r = RunText(
      "p = s32[] parameter(0)\nROOT r = s32[] custom-call(p), "
      "custom_call_target=\"scale\", api_version=API_VERSION_TYPED_FFI, "
      "backend_config={by = 7 : i64}",
      {S32({}, {6})}, device);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Numbers((*r)[0]), ElementsAre(42));
}

TEST(CustomCalls, AHandlerThatThrowsIsAnErrorThatNamesIt) {
  HandlerRegistry handlers;
  ASSERT_TRUE(handlers
                  .Register(Entry("thrower",
                                  [](const HandlerContext&, absl::Span<const BufferView>,
                                     absl::Span<const BufferView>) -> absl::Status {
                                    throw std::runtime_error("boom");
                                  }))
                  .ok());
  DeviceContext device;
  device.handlers = &handlers;
  const auto r = RunText(
      "p = s32[] parameter(0)\nROOT bad = s32[] custom-call(p), "
      "custom_call_target=\"thrower\"",
      {S32({}, {6})}, device);
  EXPECT_THAT(std::string(r.status().message()),
              testing::AllOf(HasSubstr("thrower"), HasSubstr("boom"), HasSubstr("%bad")));
}

TEST(CustomCalls, AMissingTargetIsFoundBeforeAnythingRuns) {
  HandlerRegistry handlers;
  DeviceContext device;
  device.handlers = &handlers;
  const auto r = RunText(
      "p = s32[] parameter(0)\nROOT r = s32[] custom-call(p), "
      "custom_call_target=\"absent\"",
      {S32({}, {6})}, device);
  EXPECT_EQ(DiagnosticCode(r.status()), "E140") << r.status();
}

TEST(CustomCalls, AnnotationsPassTheirOperandOn) {
  EXPECT_THAT(
      Eval("p = s32[2] parameter(0)\n"
           "a = s32[2] custom-call(p), custom_call_target=\"Sharding\", sharding={replicated}\n"
           "b = s32[2] custom-call(a), custom_call_target=\"annotate_device_placement\", "
           "custom_call_has_side_effect=true\n"
           "g = () custom-call(b), custom_call_target=\"xla.sdy.ShardingGroup\", "
           "custom_call_has_side_effect=true\n"
           "ROOT r = s32[2] custom-call(b), custom_call_target=\"xla.sdy.FuncResultSharding\", "
           "custom_call_has_side_effect=true",
           {S32({2}, {3, 4})}),
      ElementsAre(3, 4));
}

// What says where an array lies, or in which layout, is no kernel.
TEST(CustomCalls, MemoryAndLayoutHintsPassTheirOperandOn) {
  EXPECT_THAT(Eval("p = s32[2] parameter(0)\n"
                   "a = s32[2] custom-call(p), custom_call_target=\"MoveToHost\"\n"
                   "b = s32[2] custom-call(a), custom_call_target=\"MoveToDevice\"\n"
                   "ROOT r = s32[2] custom-call(b), custom_call_target=\"LayoutConstraint\"",
                   {S32({2}, {3, 4})}),
              ElementsAre(3, 4));
}

TEST(Execute, ArgumentsMustFitTheParameters) {
  const char* kText = "p = s32[2] parameter(0)\nROOT r = s32[2] negate(p)";
  EXPECT_EQ(DiagnosticCode(RunText(kText, {}).status()), "E313");
  EXPECT_EQ(DiagnosticCode(RunText(kText, {F32({2}, {1, 2})}).status()), "E313");
  EXPECT_EQ(DiagnosticCode(RunText(kText, {S32({3}, {1, 2, 3})}).status()), "E313");
}

TEST(Execute, ArgumentsOfTheCallerAreNotChanged) {
  const Tensor argument = S32({2}, {1, 2});
  EXPECT_THAT(Eval("p = s32[2] parameter(0)\nROOT r = s32[2] negate(p)", {argument}),
              ElementsAre(-1, -2));
  EXPECT_THAT(Numbers(argument), ElementsAre(1, 2));
}

TEST(Execute, RunningOutOfMemoryIsAnError) {
  // More than an address space holds.
  const auto r = RunText(
      "z = c128[] constant((0, 0))\n"
      "b = c128[4000000,4000000] broadcast(z), dimensions={}\n"
      "ROOT r = c128[4000000,4000000] negate(b)");
  EXPECT_EQ(r.status().code(), absl::StatusCode::kResourceExhausted) << r.status();
}

}  // namespace
}  // namespace shardcall
