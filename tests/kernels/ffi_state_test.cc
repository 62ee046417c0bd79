// SPDX-License-Identifier: Apache-2.0
// States of typed-FFI handlers: the four stages, the layouts of each version of
// the ABI, and how long a state lives.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "shardcall/kernels/ffi/xla/ffi_types.h"
#include "tests/kernels/ffi_test_util.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

std::atomic<int> made{0}, deleted{0};
struct State {
  int value = 7;
  State() { ++made; }
  ~State() { ++deleted; }
};
void Delete(void* state) { delete static_cast<State*>(state); }

int64_t StateType() {
  static const int64_t id = *RegisterFfiType("test.state", 0, Delete);
  return id;
}

abi::Error* Set(abi::CallFrame* frame, int minor, abi::Stage stage, int64_t type) {
  abi::TypeId id = {type};
  if (minor >= 3) {
    abi::StateArgs args = {{48, nullptr}, frame->ctx, stage, &id, new State};
    return frame->api->state_set(&args);
  }
  abi::OldStateArgs args = {{minor == 1 ? size_t{48} : size_t{40}, nullptr},
                            frame->ctx,
                            &id,
                            new State,
                            minor == 1 ? Delete : nullptr};
  return frame->api->state_set(&args);
}

abi::Error* Get(abi::CallFrame* frame, int minor, abi::Stage stage, State** state) {
  abi::TypeId id = {StateType()};
  if (minor >= 3) {
    abi::StateArgs args = {{48, nullptr}, frame->ctx, stage, &id, nullptr};
    abi::Error* e = frame->api->state_get(&args);
    *state = static_cast<State*>(args.state);
    return e;
  }
  abi::OldStateArgs args = {{40, nullptr}, frame->ctx, &id, nullptr, nullptr};
  abi::Error* e = frame->api->state_get(&args);
  *state = static_cast<State*>(args.state);
  return e;
}

template <int minor, abi::Stage stage>
abi::Error* Make(abi::CallFrame* frame) {
  if (AnswerMetadata(frame, minor, StateType())) return nullptr;
  if (frame->stage != stage) return MakeError(frame, 3, "stage");
  const bool bare = frame->args.size == 0 && frame->rets.size == 0;
  if (bare != (stage == abi::Stage::kInstantiate)) return MakeError(frame, 3, "operands");
  return Set(frame, minor, stage, StateType());
}

template <int minor, bool all>
abi::Error* Use(abi::CallFrame* frame) {
  if (AnswerMetadata(frame, minor)) return nullptr;
  for (abi::Stage stage :
       {abi::Stage::kInstantiate, abi::Stage::kPrepare, abi::Stage::kInitialize}) {
    if (!all && stage != abi::Stage::kInstantiate) continue;
    State* state = nullptr;
    if (abi::Error* e = Get(frame, minor, stage, &state)) return e;
    ++state->value;
  }
  return nullptr;
}

HandlerEntry Staged(abi::HandlerBundle stages) {
  auto entry = MakeTypedEntry("t", "Host", stages, "test");
  EXPECT_TRUE(entry.ok()) << entry.status();
  return *std::move(entry);
}

template <int minor>
void InstantiatesOnceForACallSite() {
  made = deleted = 0;
  const HandlerEntry entry =
      Staged({Make<minor, abi::Stage::kInstantiate>, nullptr, nullptr, Use<minor, false>});
  std::vector<float> x(1);
  {
    CallSite site;
    TestCall call;
    call.context.call_site = &site;
    for (int i = 0; i < 3; ++i) {
      const absl::Status status = call.Run(entry, {F32(x)}, {});
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ(made, 1);
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(FfiState, InstantiatesOnceForACallSiteIn01) { InstantiatesOnceForACallSite<1>(); }
TEST(FfiState, InstantiatesOnceForACallSiteIn02) { InstantiatesOnceForACallSite<2>(); }
TEST(FfiState, InstantiatesOnceForACallSiteIn03) { InstantiatesOnceForACallSite<3>(); }
TEST(FfiState, InstantiatesOnceForACallSiteIn04) { InstantiatesOnceForACallSite<4>(); }
TEST(FfiState, InstantiatesOnceForACallSiteIn05) { InstantiatesOnceForACallSite<5>(); }

TEST(FfiState, AllStagesRunAndTheirStatesEndWithTheCall) {
  made = deleted = 0;
  const HandlerEntry entry =
      Staged({Make<3, abi::Stage::kInstantiate>, Make<3, abi::Stage::kPrepare>,
              Make<3, abi::Stage::kInitialize>, Use<3, true>});
  CallSite site;
  TestCall call;
  call.context.call_site = &site;
  std::vector<float> x(1);
  ASSERT_TRUE(call.Run(entry, {F32(x)}, {}).ok());
  EXPECT_EQ(made, 3);
  EXPECT_EQ(deleted, 2);
  ASSERT_TRUE(call.Run(entry, {F32(x)}, {}).ok());
  EXPECT_EQ(made, 5);
  EXPECT_EQ(deleted, 4);
}

TEST(FfiState, DevicesShareTheInstantiatedState) {
  made = deleted = 0;
  const HandlerEntry entry =
      Staged({Make<3, abi::Stage::kInstantiate>, nullptr, nullptr, Use<3, false>});
  CallSite site;
  std::vector<std::thread> devices;
  std::atomic<int> failed{0};
  for (int d = 0; d < 8; ++d) {
    devices.emplace_back([&, d] {
      TestCall call;
      call.context.call_site = &site;
      call.context.device_ordinal = d;
      if (!call.Run(entry, {}, {}).ok()) ++failed;
    });
  }
  for (std::thread& t : devices) t.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(made, 1);
}

TEST(FfiState, AStateOfAnUnknownTypeIsRefusedAndDeletedWhereItIsKnownHow) {
  made = deleted = 0;
  const HandlerEntry entry = Staged({[](abi::CallFrame* frame) -> abi::Error* {
                                       if (AnswerMetadata(frame, 1)) return nullptr;
                                       return Set(frame, 1, abi::Stage::kInstantiate, 0);
                                     },
                                     nullptr, nullptr, Use<1, false>});
  TestCall call;
  const absl::Status status = call.Run(entry, {}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("in stage instantiate"));
  EXPECT_EQ(made, 1);
  EXPECT_EQ(deleted, 1);
}

TEST(FfiState, AStateIsSetOnceAndInItsOwnStage) {
  made = deleted = 0;
  const HandlerEntry twice = Staged({[](abi::CallFrame* frame) -> abi::Error* {
                                       if (AnswerMetadata(frame, 3)) return nullptr;
                                       if (abi::Error* e = Set(frame, 3, frame->stage, StateType()))
                                         return e;
                                       return Set(frame, 3, frame->stage, StateType());
                                     },
                                     nullptr, nullptr, Use<3, false>});
  TestCall call;
  EXPECT_EQ(call.Run(twice, {}, {}).code(), absl::StatusCode::kAlreadyExists);
  const HandlerEntry execute = Entry([](abi::CallFrame* frame) -> abi::Error* {
    if (AnswerMetadata(frame, 3)) return nullptr;
    return Set(frame, 3, abi::Stage::kExecute, StateType());
  });
  EXPECT_EQ(call.Run(execute, {}, {}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(made, deleted);
}

TEST(FfiState, AMissingOrAnotherStateIsAnError) {
  TestCall call;
  absl::Status status = call.Run(Entry(Use<3, false>), {}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  static const int64_t other =
      *RegisterFfiType("test.other_state", 0, [](void* p) { delete static_cast<State*>(p); });
  const HandlerEntry mixed = Staged({[](abi::CallFrame* frame) -> abi::Error* {
                                       if (AnswerMetadata(frame, 3)) return nullptr;
                                       return Set(frame, 3, frame->stage, other);
                                     },
                                     nullptr, nullptr, Use<3, false>});
  status = call.Run(mixed, {}, {});
  EXPECT_THAT(std::string(status.message()), HasSubstr("test.other_state"));
}

TEST(FfiTypes, NamesAndIdsAreUnique) {
  const int64_t a = *RegisterFfiType("test.a", 0, nullptr);
  EXPECT_EQ(*RegisterFfiType("test.a", 0, nullptr), a);
  EXPECT_EQ(*RegisterFfiType("test.a", a, Delete), a);
  EXPECT_EQ(FindFfiType(a)->deleter, Delete);
  EXPECT_EQ(*RegisterFfiType("test.b", 123456, nullptr), 123456);
  for (const auto& status : {RegisterFfiType("test.a", a + 1, nullptr).status(),
                             RegisterFfiType("", 0, nullptr).status(),
                             RegisterFfiType("test.c", 123456, nullptr).status(),
                             RegisterFfiType("test.c", -1, nullptr).status(),
                             RegisterFfiType("test.a", 0, [](void*) {}).status()}) {
    EXPECT_EQ(DiagnosticCode(status), "E141");
  }
  EXPECT_EQ(FindFfiType(-5), nullptr);
}

TEST(FfiTypes, WhatIsWrongByItselfIsNotThereAlready) {
  const absl::Status unnamed = RegisterFfiType("", 0, nullptr).status();
  EXPECT_EQ(unnamed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unnamed.message()),
              HasSubstr("an FFI type without a name cannot be registered"));
  EXPECT_EQ(RegisterFfiType("test.negative", -1, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
  const int64_t id = *RegisterFfiType("test.there", 0, nullptr);
  EXPECT_EQ(RegisterFfiType("test.there", id + 1, nullptr).status().code(),
            absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace shardcall
