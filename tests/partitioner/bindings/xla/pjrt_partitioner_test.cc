// SPDX-License-Identifier: Apache-2.0
// Registrations with a PJRT plugin: one made up here, and a real one where
// SHARDCALL_PJRT_PLUGIN names it (xla_cuda_plugin.so of the jax-cuda13-pjrt wheel).
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

// A plugin that notes what it is given, in PJRT's layout.
struct FakeError {
  std::string message;
  int32_t code;
};
int errors_alive = 0;
std::vector<std::string> names;
Shardcall_PjrtCallbacks* given = nullptr;

struct NameArgs {
  size_t struct_size;
  const char* name;
  size_t name_size;
  Shardcall_PjrtCallbacks* callbacks;
};
void* Note(NameArgs* args, size_t size) {
  const std::string name(args->name, args->name_size);
  if (args->struct_size != size || name == "refused") {
    ++errors_alive;
    return new FakeError{"says the plugin", 6};
  }
  names.push_back(name);
  return nullptr;
}
void* NoteBatch(NameArgs* args) { return Note(args, 24); }
void* NotePartitioner(NameArgs* args) {
  void* error = Note(args, 32);
  if (error == nullptr) given = args->callbacks;
  return error;
}
struct FakeExtension {
  size_t struct_size;
  int32_t type;
  void* next;
  void* (*partitioner)(NameArgs*);
  void* (*batch)(NameArgs*);
};
struct ErrorArgs {
  size_t struct_size;
  void* extension_start;
  FakeError* error;
  const char* message;
  size_t message_size;
};
struct FakeApi {
  size_t struct_size = sizeof(FakeApi);
  void* extension_start = nullptr;
  struct {
    size_t struct_size = 24;
    void* extension_start = nullptr;
    int32_t major = 0, minor = 112;
  } version;
  void (*destroy)(ErrorArgs*) = [](ErrorArgs* args) {
    --errors_alive;
    delete args->error;
  };
  void (*message)(ErrorArgs*) = [](ErrorArgs* args) {
    args->message = args->error->message.data();
    args->message_size = args->error->message.size();
  };
  void* (*code)(ErrorArgs*) = [](ErrorArgs* args) -> void* {
    *reinterpret_cast<int32_t*>(&args->message) = args->error->code;
    return nullptr;
  };
};

int destroyed = 0;
Shardcall_PjrtCallbacks Callbacks() {
  Shardcall_PjrtCallbacks callbacks = {};
  callbacks.dtor = [](Shardcall_PjrtCallbacks*) { ++destroyed; };
  callbacks.partition = [](Shardcall_PjrtCallbacks*, Shardcall_PjrtPartitionArgs*) {};
  callbacks.infer_sharding = [](Shardcall_PjrtCallbacks*, Shardcall_PjrtInferArgs*) {};
  callbacks.propagate_user_sharding = [](Shardcall_PjrtCallbacks*, Shardcall_PjrtPropagateArgs*) {};
  return callbacks;
}

TEST(PjrtPartitioner, RegistrationsReachTheExtension) {
  FakeExtension partitioner = {40, 2, nullptr, NotePartitioner, NoteBatch};
  FakeExtension other = {24, 5, &partitioner, nullptr, nullptr};
  FakeApi api;
  api.extension_start = &other;
  names.clear();
  EXPECT_TRUE(RegisterBatchPartitionableWithPjrt(&api, "rows").ok());
  Shardcall_PjrtCallbacks callbacks = Callbacks();
  EXPECT_TRUE(RegisterPartitionerWithPjrt(&api, "norm", &callbacks).ok());
  EXPECT_THAT(names, testing::ElementsAre("rows", "norm"));
  EXPECT_EQ(given, &callbacks);
  const absl::Status refused = RegisterBatchPartitionableWithPjrt(&api, "refused");
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(refused, Fails("E148", "says the plugin"));
  EXPECT_EQ(errors_alive, 0);
}

TEST(PjrtPartitioner, WhatIsNoPluginIsRefused) {
  EXPECT_THAT(RegisterBatchPartitionableWithPjrt(nullptr, "rows"), Fails("E148", "found null"));
  FakeApi api;
  EXPECT_THAT(RegisterBatchPartitionableWithPjrt(&api, ""), Fails("E148", "a name"));
  const absl::Status without = RegisterBatchPartitionableWithPjrt(&api, "rows");
  EXPECT_EQ(without.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(without, Fails("E148", "PJRT 0.112 without it"));
  api.struct_size = 16;
  EXPECT_THAT(RegisterBatchPartitionableWithPjrt(&api, "rows"), Fails("E148", "struct_size 16"));
  FakeExtension small = {32, 2, nullptr, nullptr, nullptr};
  FakeApi with;
  with.extension_start = &small;
  EXPECT_THAT(RegisterBatchPartitionableWithPjrt(&with, "rows"), Fails("E148", "struct_size 32"));
  FakeExtension round = {24, 7, nullptr, nullptr, nullptr};
  round.next = &round;
  with.extension_start = &round;
  EXPECT_THAT(RegisterBatchPartitionableWithPjrt(&with, "rows"), Fails("E148", "without it"));
  Shardcall_PjrtCallbacks callbacks = Callbacks();
  callbacks.partition = nullptr;
  EXPECT_THAT(RegisterPartitionerWithPjrt(&with, "rows", &callbacks), Fails("E148", "null"));
  EXPECT_THAT(RegisterPartitionerWithPjrt(&with, "rows", nullptr), Fails("E148", "null"));
}

TEST(PjrtPartitioner, XlasGpuPluginTakesThem) {
  const char* path = std::getenv("SHARDCALL_PJRT_PLUGIN");
  if (path == nullptr || *path == '\0') {
    GTEST_SKIP() << "SHARDCALL_PJRT_PLUGIN does not name a plugin";
  }
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto get = reinterpret_cast<const void* (*)()>(dlsym(library, "GetPjrtApi"));
  ASSERT_NE(get, nullptr);
  const void* api = get();
  EXPECT_TRUE(RegisterBatchPartitionableWithPjrt(api, "shardcall_rows").ok());
  // The second partitioner of a name takes the place of the first, which is let go.
  destroyed = 0;
  static Shardcall_PjrtCallbacks first = Callbacks(), second = Callbacks();
  const absl::Status status = RegisterPartitionerWithPjrt(api, "shardcall_norm", &first);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(destroyed, 0);
  ASSERT_TRUE(RegisterPartitionerWithPjrt(api, "shardcall_norm", &second).ok());
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace shardcall
