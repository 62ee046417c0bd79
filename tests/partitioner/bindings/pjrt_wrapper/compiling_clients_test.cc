// SPDX-License-Identifier: Apache-2.0
// Clients that are destroyed while they compile: by themselves, and through the wrapper's
// table over a plugin of the tests.
#include "shardcall/partitioner/bindings/pjrt_wrapper/compiling_clients.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/bindings/pjrt/compile_options.h"
#include "shardcall/partitioner/bindings/pjrt/program_source.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper.h"
#include "shardcall/sharding/base/status.h"
#include "tests/partitioner/bindings/pjrt/fake_backend.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

using abi::Error;
using abi::Function;
using abi::Padded;
using ::testing::HasSubstr;

TEST(CompilingClients, OneThatCompilesNothingGoesAtOnce) {
  CompilingClients clients;
  auto* const client = reinterpret_cast<abi::Client*>(&clients);
  EXPECT_TRUE(clients.Destroy(client));
  clients.Enter(client);
  EXPECT_FALSE(clients.Leave(client));
  EXPECT_TRUE(clients.Destroy(client));
  EXPECT_TRUE(clients.Destroy(nullptr));
}

TEST(CompilingClients, OneThatCompilesGoesWithTheLastOfItsPrograms) {
  CompilingClients clients;
  auto* const client = reinterpret_cast<abi::Client*>(&clients);
  auto* const other = reinterpret_cast<abi::Client*>(&clients + 1);
  clients.Enter(client);
  clients.Enter(client);
  clients.Enter(other);
  EXPECT_FALSE(clients.Destroy(client));
  EXPECT_EQ(DiagnosticCode(clients.Check(client)), "E343");
  EXPECT_TRUE(clients.Check(other).ok());
  EXPECT_FALSE(clients.Leave(client));
  EXPECT_TRUE(clients.Leave(client));
  EXPECT_FALSE(clients.Leave(other));
  EXPECT_TRUE(clients.Check(client).ok());  // another one may have the address
}

class ThroughTheTable : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("SHARDCALL_WRAPPED_PLUGIN", FAKE_PJRT_PLUGIN, 1);
    table_ = static_cast<const abi::Api*>(Wrapper::OfProcess().api());
    void* const library = dlopen(FAKE_PJRT_PLUGIN, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    backend_ = reinterpret_cast<FakeBackend* (*)()>(dlsym(library, "FakePjrtBackend"))();
  }
  void SetUp() override {
    Padded<abi::ClientCreateArgs> args;
    ASSERT_EQ(Call(Function::kClientCreate, &args.value), nullptr);
    client_ = args.value.client;
  }
  void TearDown() override { backend_->compiles = nullptr; }

  template <typename Args>
  static Error* Call(Function function, Args* args) {
    const void* const address = table_->functions[static_cast<int>(function)];
    return reinterpret_cast<Error* (*)(Args*)>(address)(args);
  }
  Error* Destroy() {
    Padded<abi::ClientArgs> args;
    args.value.client = client_;
    return Call(Function::kClientDestroy, &args.value);
  }
  // What compiling says; empty where it gives an executable.
  std::string Compile(absl::string_view format, absl::string_view code, int64_t partitions) {
    const std::string options = PlainOptions(partitions, /*shardy=*/false, /*spmd=*/true);
    const Padded<abi::Program> program = ProgramOf(format, code);
    Padded<abi::CompileArgs> args;
    args.value.client = client_;
    args.value.program = &program.value;
    args.value.options = options.data();
    args.value.options_size = options.size();
    Error* const error = Call(Function::kClientCompile, &args.value);
    if (error == nullptr) {
      Padded<abi::LoadedExecutableArgs> executable;
      executable.value.executable = args.value.executable;
      EXPECT_EQ(Call(Function::kLoadedExecutableDestroy, &executable.value), nullptr);
      return "";
    }
    Padded<abi::ErrorMessageArgs> message;
    message.value.error = error;
    const void* const say = table_->functions[static_cast<int>(Function::kErrorMessage)];
    reinterpret_cast<void (*)(abi::ErrorMessageArgs*)>(say)(&message.value);
    std::string said(message.value.message, message.value.message_size);
    Padded<abi::ErrorArgs> done;
    done.value.error = error;
    const void* const destroy = table_->functions[static_cast<int>(Function::kErrorDestroy)];
    reinterpret_cast<void (*)(abi::ErrorArgs*)>(destroy)(&done.value);
    return said;
  }

  static inline const abi::Api* table_ = nullptr;
  static inline FakeBackend* backend_ = nullptr;
  abi::Client* client_ = nullptr;
};

TEST_F(ThroughTheTable, ItIsThereUntilXlaHasCompiledAndTheProgramIsAnError) {
  backend_->compiles = [&] {
    EXPECT_EQ(Destroy(), nullptr);
    EXPECT_EQ(backend_->clients, 1);
  };
  EXPECT_THAT(Compile(kHloFormat, "of one device", 1), HasSubstr("E343"));
  EXPECT_EQ(backend_->alive(), 0);
}

TEST_F(ThroughTheTable, AProgramThatIsRefusedTakesItWithIt) {
  backend_->compiles = [&] { EXPECT_EQ(Destroy(), nullptr); };
  EXPECT_THAT(Compile(kMlirFormat, "module {}", 4), HasSubstr("E340"));  // while it converts
  EXPECT_EQ(backend_->alive(), 0);
}

TEST_F(ThroughTheTable, AfterwardsItIsDestroyedAtOnce) {
  EXPECT_EQ(Compile(kHloFormat, "of one device", 1), "");
  EXPECT_EQ(backend_->clients, 1);
  EXPECT_EQ(Destroy(), nullptr);
  EXPECT_EQ(backend_->alive(), 0);
}

}  // namespace
}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
