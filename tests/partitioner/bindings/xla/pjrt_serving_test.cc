// SPDX-License-Identifier: Apache-2.0
// Targets of ours as partitioners of a plugin: what a fake plugin was given is asked
// as XLA asks it.
#include "shardcall/partitioner/bindings/xla/pjrt_serving.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/c/shardcall_c.h"
#include "shardcall/partitioner/bindings/xla/registration.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/stablehlo/reader.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "tests/support/fake_pjrt.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A serialised ShapeProto: element_type is field 2, dimensions 3, tuple_shapes 4. All
// numbers are below 128.
std::string ShapeBytes(std::vector<int64_t> dims) {
  std::string out = {0x10, 11};
  for (int64_t d : dims) out += {0x18, static_cast<char>(d)};
  return out;
}
std::string TupleBytes(const std::vector<std::string>& parts) {
  std::string out = {0x10, 13};
  for (const std::string& part : parts) {
    out += {0x22, static_cast<char>(part.size())};
    out += part;
  }
  return out;
}
std::string ShardingBytes(const std::string& text) {
  if (text.empty()) return "";
  absl::StatusOr<HloSharding> s = ParseHloSharding(text);
  EXPECT_TRUE(s.ok()) << s.status();
  return *WriteShardingProto(*s);
}
std::string ShardingText(const Shardcall_PjrtString& s) {
  absl::StatusOr<HloSharding> read = ReadShardingProto({s.data, s.size}, "answer");
  return read.ok() ? read->Print() : std::string(read.status().message());
}
Shardcall_PjrtString Str(const std::string& s) { return {s.data(), s.size()}; }

// The StableHLO that a partitioner answers, as HLO.
std::string HloOf(absl::string_view bytecode) {
  const absl::StatusOr<Module> module =
      ReadStablehloBytecode(bytecode, std::make_shared<Context>());
  return module.ok() ? PrintModule(*module) : std::string(module.status().message());
}

// One question, with what its answer was.
struct Asked {
  std::vector<std::string> operands;
  std::string result, module, error;
  int code = 0;
};
struct Value {
  std::vector<int64_t> dims;
  std::string sharding;
};

class Question {
 public:
  Question(std::vector<Value> operands, Value result, std::string config)
      : config_(std::move(config)) {
    shapes_.reserve(32);
    for (const Value& v : operands) avals_.push_back(Aval(v));
    result_ = Aval(result);
  }
  Asked Partition(Shardcall_PjrtCallbacks* c) {
    Shardcall_PjrtPartitionArgs args = {};
    args.num_args = avals_.size();
    args.op_args = avals_.data();
    args.op_result = result_;
    args.backend_config = Str(config_);
    args.header.has_error = true;  // whatever was there
    c->partition(c, &args);
    Asked a;
    a.code = args.header.code;
    if (args.header.has_error) {
      a.error.assign(args.header.error.data, args.header.error.size);
    } else {
      for (size_t k = 0; k < args.num_args; ++k) {
        a.operands.push_back(ShardingText(args.args_sharding[k]));
      }
      a.result = ShardingText(args.result_sharding);
      a.module = HloOf({args.mlir_module.data, args.mlir_module.size});
    }
    args.header.cleanup_fn(args.header.data);
    return a;
  }
  std::string Infer(Shardcall_PjrtCallbacks* c) {
    Shardcall_PjrtInferArgs args = {};
    args.num_args = avals_.size();
    args.op_args = avals_.data();
    args.result_shape = result_.shape;
    args.backend_config = Str(config_);
    c->infer_sharding(c, &args);
    EXPECT_FALSE(args.header.has_error);
    const std::string out = args.has_result_sharding ? ShardingText(args.result_sharding) : "none";
    args.header.cleanup_fn(args.header.data);
    return out;
  }
  std::string Propagate(Shardcall_PjrtCallbacks* c) {
    Shardcall_PjrtPropagateArgs args = {};
    args.result_shape = result_.shape;
    args.backend_config = Str(config_);
    args.result_sharding = result_.sharding;
    c->propagate_user_sharding(c, &args);
    EXPECT_FALSE(args.header.has_error);
    const std::string out = ShardingText(args.result_sharding);
    args.header.cleanup_fn(args.header.data);
    return out;
  }

 private:
  Shardcall_PjrtAval Aval(const Value& v) {
    shapes_.push_back(ShapeBytes(v.dims));
    Shardcall_PjrtAval a = {};
    a.shape = Str(shapes_.back());
    shapes_.push_back(ShardingBytes(v.sharding));
    a.has_sharding = !v.sharding.empty();
    a.sharding = Str(shapes_.back());
    return a;
  }
  std::string config_;
  std::vector<std::string> shapes_;
  std::vector<Shardcall_PjrtAval> avals_;
  Shardcall_PjrtAval result_ = {};
};

class PjrtServing : public testing::Test {
 protected:
  // What the plugin has for the target; null if nothing.
  Shardcall_PjrtCallbacks* Given(const std::string& name) { return plugin_.Partitioner(name); }
  Registry registry_;
  FakePjrt plugin_;
};

constexpr char kRows[] = "{devices=[4,2]<=[8]}";
constexpr char kRowsOnly[] = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}";

TEST_F(PjrtServing, ARuleStringAnswersAllThreeQuestions) {
  ASSERT_TRUE(
      registry_.rules.RegisterRule("normalize", {.rule = "i j -> i j", .need_replication = {"j"}})
          .ok());
  ASSERT_TRUE(registry_.PassToPjrt("normalize", plugin_.api()).ok());
  Shardcall_PjrtCallbacks* c = Given("normalize");
  ASSERT_NE(c, nullptr);
  Question q({{{8, 6}, kRows}}, {{8, 6}, kRows}, "{}");
  const Asked a = q.Partition(c);
  EXPECT_EQ(a.error, "");
  EXPECT_THAT(a.operands, ElementsAre(kRowsOnly));
  EXPECT_THAT(a.module, AllOf(HasSubstr("{(f32[2,6]{1,0})->"), HasSubstr("custom-call(%arg0)"),
                              HasSubstr("custom_call_target=\"normalize\""),
                              HasSubstr("api_version=API_VERSION_TYPED_FFI"),
                              HasSubstr("operand_layout_constraints={f32[2,6]{1,0}}"),
                              Not(HasSubstr("all-gather"))));
  EXPECT_EQ(q.Infer(c), kRowsOnly);
  EXPECT_EQ(q.Propagate(c), kRowsOnly);
}

TEST_F(PjrtServing, ACallInAManualComputationStaysAsItIs) {
  ASSERT_TRUE(registry_.rules
                  .RegisterRule("weigh", {.rule = "i k, k -> i",
                                          .reduction = {{"k", PartialOp::kSum}},
                                          .pad = {{"k", 0}}})
                  .ok());
  ASSERT_TRUE(registry_.PassToPjrt("weigh", plugin_.api()).ok());
  Question q({{{8, 6}, "{manual}"}, {{6}, "{manual}"}}, {{8}, "{manual}"}, "{}");
  const Asked a = q.Partition(Given("weigh"));
  EXPECT_EQ(a.error, "");
  EXPECT_THAT(a.operands, ElementsAre("{manual}", "{manual}"));
  EXPECT_EQ(a.result, "{manual}");
  EXPECT_THAT(a.module,
              AllOf(HasSubstr("{(f32[8,6]{1,0}, f32[6]{0})->"), Not(HasSubstr("all-reduce"))));
  EXPECT_EQ(q.Infer(Given("weigh")), "{manual}");
  EXPECT_EQ(q.Propagate(Given("weigh")), "{manual}");
}

TEST_F(PjrtServing, ASumIsReducedBehindTheCall) {
  ASSERT_TRUE(registry_.rules
                  .RegisterRule("weigh", {.rule = "i k, k -> i",
                                          .reduction = {{"k", PartialOp::kSum}},
                                          .pad = {{"k", 0}}})
                  .ok());
  ASSERT_TRUE(registry_.PassToPjrt("weigh", plugin_.api()).ok());
  const std::string config = "{scale = 2.000000e+00 : f32}";
  Question even({{{8, 6}, kRows}, {{6}, ""}}, {{8}, "{devices=[4,2]<=[8] last_tile_dim_replicate}"},
                config);
  const Asked a = even.Partition(Given("weigh"));
  EXPECT_EQ(a.error, "");
  EXPECT_THAT(a.operands,
              ElementsAre(kRows, "{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"));
  EXPECT_THAT(a.module, AllOf(HasSubstr("{(f32[2,3]{1,0}, f32[3]{0})->"),
                              HasSubstr("backend_config=" + config), HasSubstr("all-reduce("),
                              HasSubstr("{{0,1},{2,3},{4,5},{6,7}}"),
                              HasSubstr("use_global_device_ids=true")));
  // What lies past the end of an uneven dimension is masked before the call.
  Question uneven({{{8, 5}, kRows}, {{5}, ""}}, {{8}, "{replicated}"}, config);
  const Asked b = uneven.Partition(Given("weigh"));
  EXPECT_EQ(b.error, "");
  EXPECT_THAT(b.module, AllOf(HasSubstr("select("), HasSubstr("partition-id(")));
}

TEST_F(PjrtServing, TupleResultsHaveTupleShardings) {
  ASSERT_TRUE(
      registry_.rules.RegisterRule("two", {.rule = "i j -> i j, i", .need_replication = {"j"}})
          .ok());
  absl::StatusOr<Shardcall_PjrtCallbacks*> c = registry_.MakePjrtCallbacks("two");
  ASSERT_TRUE(c.ok());
  const std::string result = TupleBytes({ShapeBytes({8, 6}), ShapeBytes({8})});
  const std::string x = ShapeBytes({8, 6});
  const std::string sharding = ShardingBytes("{devices=[8,1]<=[8]}");
  Shardcall_PjrtAval operand = {Str(x), true, Str(sharding)};
  Shardcall_PjrtPartitionArgs args = {};
  args.num_args = 1;
  args.op_args = &operand;
  args.op_result.shape = Str(result);
  args.backend_config = {"{}", 2};
  (*c)->partition(*c, &args);
  ASSERT_FALSE(args.header.has_error);
  EXPECT_EQ(ShardingText(args.result_sharding), "{{replicated}, {replicated}}");
  EXPECT_THAT(HloOf(absl::string_view(args.mlir_module.data, args.mlir_module.size)),
              HasSubstr("= (f32[8,6]{1,0}, f32[8]{0}) custom-call("));
  args.header.cleanup_fn(args.header.data);
  (*c)->dtor(*c);
}

// A call of `t`, as a module.
std::shared_ptr<const Module> Like(absl::string_view call) {
  const auto text = std::make_shared<const std::string>(absl::StrCat(
      "HloModule m\nENTRY e {\np = f32[8,6]{0,1} parameter(0)\nROOT c = ", call, "\n}\n"));
  absl::StatusOr<Module> module = ParseModule(text, std::make_shared<Context>(), "like");
  EXPECT_TRUE(module.ok()) << module.status();
  return std::make_shared<const Module>(*std::move(module));
}

TEST_F(PjrtServing, CallsHaveWhatTheirLikeHas) {
  auto rules = std::make_shared<TargetRegistry>();
  ASSERT_TRUE(rules->RegisterRule("t", {.rule = "i j -> i j"}).ok());
  const auto served = [&](absl::string_view like) {
    return NewPjrtCallbacks({.name = "t", .rules = rules, .like = Like(like)});
  };
  absl::StatusOr<Shardcall_PjrtCallbacks*> c = served(
      "f32[8,6]{0,1} custom-call(p), custom_call_target=\"t\", "
      "operand_layout_constraints={f32[8,6]{0,1}}, output_to_operand_aliasing={{}: (0, {})}, "
      "custom_call_has_side_effect=true, api_version=API_VERSION_STATUS_RETURNING");
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_TRUE((*c)->can_side_effecting_have_replicated_sharding);
  Question q({{{8, 6}, kRows}}, {{8, 6}, kRows}, "untyped");
  const Asked a = q.Partition(*c);
  EXPECT_EQ(a.error, "");
  EXPECT_THAT(a.module, AllOf(HasSubstr("f32[2,3]{0,1} custom-call("),
                              HasSubstr("operand_layout_constraints={f32[2,3]{0,1}}"),
                              HasSubstr("output_to_operand_aliasing={{}: (0, {})}"),
                              HasSubstr("custom_call_has_side_effect=true"),
                              HasSubstr("API_VERSION_STATUS_RETURNING")));
  Question cube({{{8, 6, 2}, ""}}, {{8, 6, 2}, ""}, "untyped");
  EXPECT_THAT(cube.Partition(*c).error, AllOf(HasSubstr("E147"), HasSubstr("f32[8,6]")));
  (*c)->dtor(*c);
  EXPECT_THAT(served("f32[8,6] custom-call(p), custom_call_target=\"u\"").status(),
              Fails("E147", "none of its calls"));
}

TEST_F(PjrtServing, CallbacksAreServedWithTheirCollectives) {
  PartitionerCallbacks callbacks;
  callbacks.partition = [](PartitionContext& c) -> absl::Status {
    const Sharding* s = c.operand_sharding(0);
    ShardingBuilder rows(*s);
    rows.dims[1].clear();
    const Sharding* whole = rows.Intern(*c.call().context);
    SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, c.Operand(0, whole));
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* local, c.ShapeOf(x));
    SHARDCALL_ASSIGN_OR_RETURN(const auto y, c.CallTarget({x}, {local}));
    return c.SetResult(0, y[0], whole);
  };
  callbacks.infer_sharding_from_operands = [](const CustomCallView& call,
                                              absl::Span<const Sharding* const> operands)
      -> absl::StatusOr<std::vector<const Sharding*>> {
    ShardingBuilder rows(*operands[0]);
    rows.dims[1].clear();
    return std::vector<const Sharding*>{rows.Intern(*call.context)};
  };
  callbacks.propagate_user_sharding = [](const CustomCallView& call, int,
                                         const Sharding* user) -> absl::StatusOr<const Sharding*> {
    EXPECT_TRUE(call.operands.empty());
    return call.Replicated(user->rank());
  };
  callbacks.propagate_reads_result_alone = true;
  ASSERT_TRUE(
      registry_.RegisterCustomCallPartitioner("rows", callbacks, false, plugin_.api()).ok());
  EXPECT_NE(registry_.rules.Find("rows", ""), nullptr);
  Question q({{{8, 6}, kRows}}, {{8, 6}, kRows}, "{}");
  const Asked a = q.Partition(Given("rows"));
  EXPECT_EQ(a.error, "");
  EXPECT_THAT(a.operands, ElementsAre(kRows));
  EXPECT_THAT(a.module, AllOf(HasSubstr("all-gather("), HasSubstr("dynamic-slice(")));
  EXPECT_EQ(q.Infer(Given("rows")), kRowsOnly);
  EXPECT_EQ(q.Propagate(Given("rows")), "{replicated}");
}

TEST_F(PjrtServing, NamedMeshesAreRead) {
  ASSERT_TRUE(registry_.rules.RegisterBatchPartitionable("rows", 1).ok());
  ASSERT_TRUE(registry_.PassToPjrt("rows", plugin_.api()).ok());
  Question q({{{8, 6}, "{mesh['data'=4,'model'=2], [{'data'}, {'model'}]}"}}, {{8, 6}, ""}, "{}");
  EXPECT_EQ(q.Infer(Given("rows")), kRowsOnly);
  EXPECT_THAT(q.Partition(Given("rows")).module, HasSubstr("f32[2,6]"));
}

TEST_F(PjrtServing, ErrorsAreReportedByPartitionAlone) {
  PartitionerCallbacks throws;
  throws.partition = [](PartitionContext&) -> absl::Status { throw std::runtime_error("no"); };
  throws.infer_sharding_from_operands = [](const CustomCallView&, absl::Span<const Sharding* const>)
      -> absl::StatusOr<std::vector<const Sharding*>> { throw std::runtime_error("no"); };
  throws.propagate_user_sharding = [](const CustomCallView&, int,
                                      const Sharding*) -> absl::StatusOr<const Sharding*> {
    throw std::runtime_error("no");
  };
  throws.propagate_reads_result_alone = true;
  ASSERT_TRUE(registry_.RegisterCustomCallPartitioner("t", throws, false, plugin_.api()).ok());
  Question q({{{8, 6}, kRows}}, {{8, 6}, kRows}, "{}");
  const Asked a = q.Partition(Given("t"));
  EXPECT_THAT(a.error, AllOf(HasSubstr("E121"), HasSubstr("threw: no")));
  EXPECT_EQ(a.code, static_cast<int>(absl::StatusCode::kInternal));
  EXPECT_EQ(q.Infer(Given("t")), "none");
  EXPECT_EQ(q.Propagate(Given("t")), kRows);
  // Bytes that are no messages, and a call whose ABI nobody told.
  Shardcall_PjrtPartitionArgs args = {};
  args.op_result.shape = {"\xff\xff", 2};
  args.backend_config = {"{}", 2};
  Given("t")->partition(Given("t"), &args);
  EXPECT_TRUE(args.header.has_error);
  EXPECT_THAT(std::string(args.header.error.data, args.header.error.size), HasSubstr("E030"));
  args.header.cleanup_fn(args.header.data);
  Question opaque({{{8, 6}, kRows}}, {{8, 6}, kRows}, "opaque");
  EXPECT_THAT(opaque.Partition(Given("t")).error, HasSubstr("E147"));
}

TEST_F(PjrtServing, WhereThePluginRefusesNothingIsRegistered) {
  FakePjrt without(/*with_extension=*/false);
  PartitionerCallbacks callbacks;
  callbacks.partition = [](PartitionContext&) { return absl::OkStatus(); };
  EXPECT_THAT(registry_.RegisterCustomCallPartitioner("t", callbacks, false, without.api()),
              Fails("E148", "without it"));
  EXPECT_EQ(registry_.rules.Find("t", ""), nullptr);
  EXPECT_THAT(registry_.RegisterCustomCallAsBatchPartitionable("b", without.api()),
              Fails("E148", "without it"));
  EXPECT_EQ(registry_.rules.Find("b", ""), nullptr);
  EXPECT_THAT(registry_.PassToPjrt("t", plugin_.api()), Fails("E101", "no rule"));
  EXPECT_TRUE(registry_.RegisterCustomCallAsBatchPartitionable("b", plugin_.api()).ok());
  EXPECT_THAT(plugin_.batch_names(), ElementsAre("b"));
  EXPECT_THAT(registry_.MakePjrtCallbacks("b").status(), Fails("E101", "batch"));
}

// A typed handler of the execute stage, as far as its registration asks.
abi::Error* Answers(abi::CallFrame* frame) {
  auto* extension = reinterpret_cast<abi::MetadataExtension*>(frame->extension_start);
  if (extension != nullptr) {
    extension->metadata->api_version.major = 0;
    extension->metadata->api_version.minor = 3;
  }
  return nullptr;
}
void Untyped(void*, const void**) {}

TEST_F(PjrtServing, HandlersArePassedOnToo) {
  ASSERT_TRUE(registry_
                  .RegisterCustomCallTarget("k", reinterpret_cast<const void*>(&Answers), "cuda",
                                            kTypedFfi, CustomCallTraits::kCommandBufferCompatible)
                  .ok());
  ASSERT_TRUE(registry_.PassHandlerToPjrt("k", "cuda", plugin_.api()).ok());
  ASSERT_EQ(plugin_.handlers().size(), 1);
  EXPECT_EQ(plugin_.handlers().begin()->first, "k CUDA 1");
  EXPECT_EQ(plugin_.handlers().begin()->second, reinterpret_cast<const void*>(&Answers));
  EXPECT_THAT(registry_.PassHandlerToPjrt("none", "cuda", plugin_.api()), Fails("E140", "none"));
  ASSERT_TRUE(registry_.RegisterCustomCallTarget("u", &Untyped, "cpu").ok());
  EXPECT_THAT(registry_.PassHandlerToPjrt("u", "cpu", plugin_.api()), Fails("E148", "typed FFI"));
  FakePjrt without(/*with_extension=*/false);
  EXPECT_THAT(registry_.PassHandlerToPjrt("k", "cuda", without.api()), Fails("E148", "type 5"));
}

TEST_F(PjrtServing, FromC) {
  Shardcall_Registry* registry = nullptr;
  ASSERT_EQ(Shardcall_Registry_Create(&registry), nullptr);
  Shardcall_Partitioner partitioner = SHARDCALL_INIT(Shardcall_Partitioner);
  partitioner.partition = [](const Shardcall_PartitionContext* c, void*) {
    Shardcall_Value x, y;
    const Shardcall_Sharding* s = c->operand_sharding(c, 0);
    int code = c->operand(c, 0, s, &x);
    if (code == 0) code = c->call_target(c, &x, &s, &y);
    return code != 0 ? code : c->set_result(c, 0, y, s);
  };
  ASSERT_EQ(
      Shardcall_RegisterCustomCallPartitionerWithApi(registry, "same", &partitioner, plugin_.api()),
      nullptr);
  Question q({{{8, 6}, kRows}}, {{8, 6}, kRows}, "{}");
  EXPECT_THAT(q.Partition(Given("same")).module, HasSubstr("f32[2,3]"));
  ASSERT_EQ(Shardcall_RegisterCustomCallAsBatchPartitionableWithApi(registry, "b", plugin_.api()),
            nullptr);
  EXPECT_THAT(plugin_.batch_names(), ElementsAre("b"));
  ASSERT_EQ(Shardcall_PassToPjrt(registry, "rms_norm", plugin_.api()), nullptr);
  EXPECT_NE(Given("rms_norm"), nullptr);
  Shardcall_PjrtCallbacks* c = nullptr;
  ASSERT_EQ(Shardcall_PjrtCallbacksOf(registry, "rms_norm", &c), nullptr);
  c->dtor(c);
  Shardcall_Error* error = Shardcall_PassToPjrt(registry, "rms_norm", nullptr);
  EXPECT_STREQ(Shardcall_Error_Code(error), "E148");
  Shardcall_Error_Destroy(error);
  Shardcall_Registry_Destroy(registry);
  // The plugin's callbacks live on.
  EXPECT_THAT(q.Partition(Given("same")).module, HasSubstr("f32[2,3]"));
}

}  // namespace
}  // namespace shardcall
