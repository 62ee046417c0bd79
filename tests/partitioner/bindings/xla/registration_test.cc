// SPDX-License-Identifier: Apache-2.0
// Registration under the names that jaxlib has: what is taken, what is refused,
// and that what was registered runs.
#include "shardcall/partitioner/bindings/xla/registration.h"

#include <stdexcept>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/bindings/c/shardcall_c.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// test_subtract_f32 of the tutorial: two scalars in, one out.
void SubtractF32(void* out, const void** in) {
  *static_cast<float*>(out) = *static_cast<const float*>(in[0]) - *static_cast<const float*>(in[1]);
}
void Nothing(void*, const void**) {}
void OtherNothing(void*, const void**) {
  static int calls = 0;
  ++calls;
}

std::string Text(const absl::Status& s) { return std::string(s.message()); }

absl::StatusOr<std::vector<Tensor>> RunText(const std::string& text, std::vector<Tensor> inputs,
                                            const Registry& registry) {
  SHARDCALL_ASSIGN_OR_RETURN(Module m, ParseModule(std::make_shared<const std::string>(text),
                                                   std::make_shared<Context>(), "test"));
  return Evaluate(m, std::move(inputs), &registry.handlers);
}

constexpr char kSubtract[] = R"(HloModule m

ENTRY e {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] custom-call(a, b), custom_call_target="test_subtract_f32"
}
)";

Tensor Scalar(float value) { return Tensor::From<float>(ElementType::kF32, {}, {value}); }

TEST(Registration, AnUntypedFunctionRuns) {
  Registry r;
  ASSERT_TRUE(r.RegisterCustomCallTarget("test_subtract_f32", SubtractF32).ok());
  const auto out = RunText(kSubtract, {Scalar(1.25), Scalar(0.5)}, r);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].data<float>()[0], 0.75f);
}

TEST(Registration, AnUnregisteredTargetSaysWhatIsRegistered) {
  Registry r;
  ASSERT_TRUE(r.RegisterCustomCallTarget("test_subtract_f64", SubtractF32).ok());
  const auto out = RunText(kSubtract, {Scalar(1.25), Scalar(0.5)}, r);
  EXPECT_EQ(DiagnosticCode(out.status()), "E140");
  EXPECT_THAT(Text(out.status()), HasSubstr("test_subtract_f32"));
  EXPECT_THAT(Text(out.status()), HasSubstr("Requested: Host"));
  EXPECT_THAT(Text(out.status()), HasSubstr("test_subtract_f64"));
}

TEST(Registration, ApiVersionsOtherThan0And1AreUnimplemented) {
  Registry r;
  for (int version : {2, 3, 4, 9, -1}) {
    const absl::Status s = r.RegisterCustomCallTarget("t", Nothing, "cpu", version);
    EXPECT_EQ(s.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(DiagnosticCode(s), "E147");
    EXPECT_THAT(Text(s), HasSubstr(absl::StrCat("API version ", version,
                                                " is not supported by RegisterCustomCallTarget")));
  }
  EXPECT_TRUE(r.CustomCallTargets("cpu")->empty());
}

TEST(Registration, UntypedFunctionsHaveNoTraits) {
  Registry r;
  const absl::Status s = r.RegisterCustomCallTarget("t", Nothing, "cpu", kUntypedFfi,
                                                    CustomCallTraits::kCommandBufferCompatible);
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DiagnosticCode(s), "E147");
  EXPECT_THAT(Text(s), HasSubstr("COMMAND_BUFFER_COMPATIBLE"));
}

TEST(Registration, NullFunctionsAndEmptyNamesAreErrors) {
  Registry r;
  EXPECT_EQ(DiagnosticCode(r.RegisterCustomCallTarget("t", nullptr)), "E144");
  EXPECT_EQ(DiagnosticCode(r.RegisterCustomCallTarget("t", nullptr, "cpu", kTypedFfi)), "E144");
  EXPECT_EQ(DiagnosticCode(r.RegisterCustomCallTarget("t", Nothing, "")), "E141");
  EXPECT_EQ(DiagnosticCode(r.RegisterCustomCallTarget("", Nothing)), "E141");
  EXPECT_EQ(DiagnosticCode(r.RegisterCustomCallHandler("", [](auto&) { return absl::OkStatus(); })),
            "E141");
  EXPECT_EQ(Text(r.RegisterCustomCallHandler("gpu", nullptr)),
            "E147 the handler of targets for CUDA is null: expected a function. Fix: give a "
            "function");
  EXPECT_EQ(Text(r.RegisterCustomTypeIdHandler("cpu", nullptr)),
            "E147 the handler of type ids for Host is null: expected a function. Fix: give a "
            "function");
  int64_t id = 0;
  const absl::Status unnamed = r.RegisterCustomTypeId("", &id);
  EXPECT_EQ(unnamed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(unnamed), HasSubstr("E141 an FFI type without a name cannot be registered"));
  EXPECT_EQ(DiagnosticCode(r.CustomCallTargets("").status()), "E141");
  EXPECT_EQ(DiagnosticCode(r.RegisterCustomTypeId("s", nullptr)), "E147");
}

TEST(Registration, EqualOnesPassAndOthersShowBoth) {
  Registry r;
  ASSERT_TRUE(r.RegisterCustomCallTarget("t", SubtractF32).ok());
  EXPECT_TRUE(r.RegisterCustomCallTarget("t", SubtractF32).ok());
  EXPECT_TRUE(r.RegisterCustomCallTarget("t", SubtractF32, "Host").ok());
  const absl::Status s = r.RegisterCustomCallTarget("t", Nothing);
  EXPECT_EQ(s.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(DiagnosticCode(s), "E141");
  for (auto* f : {SubtractF32, Nothing}) {
    EXPECT_THAT(Text(s), HasSubstr(absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(f)))));
  }
}

TEST(Registration, AHandlerReceivesWhatCameBeforeAndWhatComesAfter) {
  Registry r;
  std::vector<std::string> seen;
  ASSERT_TRUE(r.RegisterCustomCallTarget("early", SubtractF32).ok());
  ASSERT_TRUE(r.RegisterCustomCallHandler("Host", [&](const CustomCallTarget& t) {
                 seen.push_back(absl::StrCat(t.name, " ", t.platform, " ", t.api_version));
                 return t.name == "bad" ? absl::AbortedError("not here") : absl::OkStatus();
               }).ok());
  EXPECT_THAT(seen, ElementsAre("early Host 0"));
  ASSERT_TRUE(r.RegisterCustomCallTarget("late", Nothing).ok());
  ASSERT_TRUE(r.RegisterCustomCallTarget("late", Nothing).ok());  // known: not again
  EXPECT_EQ(r.RegisterCustomCallTarget("bad", Nothing).code(), absl::StatusCode::kAborted);
  EXPECT_THAT(seen, ElementsAre("early Host 0", "late Host 0", "bad Host 0"));
  // What was refused is not there, and may come again.
  EXPECT_EQ(r.CustomCallTargets("cpu")->count("bad"), 0);
  EXPECT_EQ(DiagnosticCode(r.handlers.Find("bad", "Host").status()), "E140");
  EXPECT_EQ(r.RegisterCustomCallTarget("bad", Nothing).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(
      DiagnosticCode(r.RegisterCustomCallHandler("cpu", [](auto&) { return absl::OkStatus(); })),
      "E141");
  const auto targets = r.CustomCallTargets("cpu");
  ASSERT_TRUE(targets.ok());
  EXPECT_EQ(targets->size(), 2);
  EXPECT_EQ(targets->at("early").function, reinterpret_cast<const void*>(SubtractF32));
}

TEST(Registration, AHandlerThatRefusesWhatIsThereIsNotRegistered) {
  Registry r;
  ASSERT_TRUE(r.RegisterCustomCallTarget("early", SubtractF32).ok());
  const auto refuses = [](const CustomCallTarget&) { return absl::AbortedError("none of it"); };
  EXPECT_EQ(r.RegisterCustomCallHandler("cpu", refuses).code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(r.RegisterCustomCallTarget("late", Nothing).ok());
  EXPECT_TRUE(r.RegisterCustomCallHandler("cpu", [](auto&) { return absl::OkStatus(); }).ok());
}

TEST(Registration, AHandlerSeesEveryWayToRegister) {
  Registry r;
  std::vector<std::string> seen;
  HandlerEntry early;
  early.target = "early";
  early.host = [](const HandlerContext&, absl::Span<const BufferView>,
                  absl::Span<const BufferView>) { return absl::OkStatus(); };
  HandlerEntry late = early;
  late.target = "late";
  ASSERT_TRUE(r.handlers.Register(early).ok());
  ASSERT_TRUE(r.RegisterCustomCallHandler("cpu", [&](const CustomCallTarget& t) {
                 seen.push_back(t.name);
                 return absl::OkStatus();
               }).ok());
  ASSERT_TRUE(r.handlers.Register(late).ok());
  ASSERT_TRUE(r.RegisterCustomCallTarget("function", Nothing).ok());
  EXPECT_THAT(seen, ElementsAre("early", "late", "function"));
  const auto targets = r.CustomCallTargets("cpu");
  ASSERT_TRUE(targets.ok());
  EXPECT_EQ(targets->size(), 3);
  EXPECT_EQ(targets->at("early").api_version, kTypedFfi);
  EXPECT_EQ(targets->at("early").function, nullptr);
  EXPECT_EQ(targets->at("function").function, reinterpret_cast<const void*>(Nothing));
}

TEST(Registration, ShippedTargetsAreListedAndSeen) {
  SharedRegistry shared;
  std::vector<std::string> seen;
  ASSERT_TRUE(shared
                  .Change([&](Registry& r) {
                    return r.RegisterCustomCallHandler("cpu", [&](const CustomCallTarget& t) {
                      seen.push_back(t.name);
                      return absl::OkStatus();
                    });
                  })
                  .ok());
  EXPECT_THAT(seen, testing::Contains("rms_norm"));
  EXPECT_EQ(shared.Snapshot()->CustomCallTargets("cpu")->size(), seen.size());
}

TEST(Registration, WhatAHandlerThrowsStaysInside) {
  Registry r;
  ASSERT_TRUE(r.RegisterCustomCallHandler("cpu", [](const CustomCallTarget&) -> absl::Status {
                 throw std::runtime_error("no!");
               }).ok());
  const absl::Status s = r.RegisterCustomCallTarget("t", Nothing);
  EXPECT_EQ(DiagnosticCode(s), "E121");
  EXPECT_THAT(Text(s), HasSubstr("threw: no!"));
  EXPECT_TRUE(r.CustomCallTargets("cpu")->empty());
  ASSERT_TRUE(r.RegisterCustomTypeIdHandler("cpu", [](absl::string_view, int64_t) -> absl::Status {
                 throw 3;
               }).ok());
  int64_t id = 0;
  EXPECT_EQ(DiagnosticCode(r.RegisterCustomTypeId("registration_test.throws", &id)), "E121");
}

TEST(Registration, AnUntypedFunctionOfAnotherPlatformReachesItsHandlerAlone) {
  Registry r;
  int seen = 0;
  ASSERT_TRUE(r.RegisterCustomCallTarget("t", Nothing, "CUDA").ok());
  ASSERT_TRUE(r.RegisterCustomCallHandler("gpu", [&](const CustomCallTarget& t) {
                 seen += t.platform == "CUDA";
                 return absl::OkStatus();
               }).ok());
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(r.CustomCallTargets("gpu")->size(), 1);
  EXPECT_TRUE(r.CustomCallTargets("cpu")->empty());
  EXPECT_EQ(DiagnosticCode(r.handlers.Find("t", "Host").status()), "E140");
}

TEST(Registration, APlatformOfAnyNameHasTargetsAHandlerAndTypes) {
  Registry r;
  std::vector<std::string> seen;
  ASSERT_TRUE(r.RegisterCustomCallTarget("t", Nothing, "Abacus").ok());
  ASSERT_TRUE(r.RegisterCustomCallHandler("ABACUS", [&](const CustomCallTarget& t) {
                 seen.push_back(absl::StrCat(t.name, " ", t.platform));
                 return absl::OkStatus();
               }).ok());
  ASSERT_TRUE(r.RegisterCustomCallTarget("u", Nothing, "abacus").ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"t Abacus", "u abacus"}));
  EXPECT_EQ(r.CustomCallTargets("aBACUS")->size(), 2);
  EXPECT_TRUE(r.CustomCallTargets("slide rule")->empty());
  EXPECT_EQ(DiagnosticCode(r.RegisterCustomCallTarget("t", OtherNothing, "aBacus")), "E141");
  EXPECT_THAT(Text(r.handlers.FindForRun("t", "").status()), HasSubstr("registered for: Abacus"));
  int64_t id = 0;
  seen.clear();
  ASSERT_TRUE(r.RegisterCustomTypeId("registration_test.bead", &id, "abacus").ok());
  ASSERT_TRUE(r.RegisterCustomTypeIdHandler("Abacus", [&](absl::string_view name, int64_t) {
                 seen.emplace_back(name);
                 return absl::OkStatus();
               }).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"registration_test.bead"}));
}

TEST(Registration, TypeIdsReachTheirPlatformsHandler) {
  Registry r;
  std::vector<std::string> seen;
  int64_t early = 0, late = 0;
  ASSERT_TRUE(r.RegisterCustomTypeId("registration_test.early", &early).ok());
  EXPECT_GT(early, 0);
  ASSERT_TRUE(r.RegisterCustomTypeIdHandler("cpu", [&](absl::string_view name, int64_t id) {
                 seen.push_back(absl::StrCat(name, id));
                 return absl::OkStatus();
               }).ok());
  ASSERT_TRUE(r.RegisterCustomTypeId("registration_test.late", &late).ok());
  EXPECT_NE(early, late);
  EXPECT_THAT(seen, ElementsAre(absl::StrCat("registration_test.early", early),
                                absl::StrCat("registration_test.late", late)));
  int64_t other = late;
  EXPECT_EQ(DiagnosticCode(r.RegisterCustomTypeId("registration_test.early", &other)), "E141");
}

TEST(CRegistration, WhatAVisitorThrowsIsAnErrorWithACode) {
  Shardcall_Registry* r = nullptr;
  ASSERT_EQ(Shardcall_Registry_Create(&r), nullptr);
  Shardcall_Error* e = Shardcall_CustomCallTargets(
      r, "cpu",
      [](const Shardcall_CustomCallTarget*, void*) -> int { throw std::runtime_error("no!"); },
      nullptr);
  ASSERT_NE(e, nullptr);
  EXPECT_STREQ(Shardcall_Error_Code(e), "E121");
  EXPECT_THAT(Shardcall_Error_Message(e), HasSubstr("threw: no!"));
  Shardcall_Error_Destroy(e);
  Shardcall_Registry_Destroy(r);
}

TEST(CRegistration, ATargetThatIsRefusedLeavesNothingBehind) {
  Shardcall_Registry* r = nullptr;
  ASSERT_EQ(Shardcall_Registry_Create(&r), nullptr);
  Shardcall_Target t = SHARDCALL_INIT(Shardcall_Target);
  t.name = "half";
  t.handler = [](const Shardcall_Call*, void*) { return 0; };
  t.rule = "a b -> a b";  // and a VJP that takes nothing
  Shardcall_Vjp vjp = SHARDCALL_INIT(Shardcall_Vjp);
  t.vjp = &vjp;
  Shardcall_Error* e = Shardcall_RegisterTarget(r, &t);
  ASSERT_NE(e, nullptr);
  Shardcall_Error_Destroy(e);
  Shardcall_Text* table = nullptr;
  ASSERT_EQ(Shardcall_DescribeTargets(r, &table), nullptr);
  EXPECT_THAT(Shardcall_Text_Data(table), testing::Not(HasSubstr("half")));
  Shardcall_Text_Destroy(table);
  t.vjp = nullptr;
  EXPECT_EQ(Shardcall_RegisterTarget(r, &t), nullptr);
  Shardcall_Registry_Destroy(r);
}

TEST(DefaultRegistry, HasTheShippedTargetsAndTakesOthersFromEveryThread) {
  const std::shared_ptr<const Registry> before = DefaultRegistry();
  EXPECT_NE(before->rules.Find("rms_norm", ""), nullptr);
  EXPECT_TRUE(before->handlers.Find("rms_norm", "Host").ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(RegisterCustomCallTarget(absl::StrCat("default_", i), SubtractF32).ok());
        EXPECT_TRUE(
            RegisterCustomCallAsBatchPartitionable(absl::StrCat("default_", t, "_", i)).ok());
        EXPECT_TRUE(DefaultRegistry()->handlers.Find(absl::StrCat("default_", i), "Host").ok());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_FALSE(before->handlers.Find("default_0", "Host").ok());
  EXPECT_EQ(CustomCallTargets("cpu")->size(), before->CustomCallTargets("cpu")->size() + 20);
  EXPECT_NE(DefaultRegistry()->rules.Find("default_3_19", ""), nullptr);
}

}  // namespace
}  // namespace shardcall
