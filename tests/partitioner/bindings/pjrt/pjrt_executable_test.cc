// SPDX-License-Identifier: Apache-2.0
// Global arrays that stay on a plugin's devices: on a backend made up here, whose programs
// give their arguments back, and on XLA's own where SHARDCALL_PJRT_CPU_PLUGIN names it.
#include "shardcall/partitioner/bindings/pjrt/pjrt_executable.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_engine.h"
#include "shardcall/partitioner/runtime/execute/watched_threads.h"
#include "shardcall/sharding/base/status.h"
#include "tests/partitioner/bindings/pjrt/fake_backend.h"
#include "tests/support/program_family.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

using abi::Function;

// The made-up backend gives back what it gets: a program of as many results as parameters.
constexpr char kRows[] = R"(
HloModule rows, num_partitions=2

ENTRY main {
  x = f32[4,3]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT y = f32[4,3]{1,0} copy(x), sharding={devices=[2,1]<=[2]}
}
)";
constexpr char kUneven[] = R"(
HloModule uneven, num_partitions=2

ENTRY main {
  x = f32[5]{0} parameter(0), sharding={devices=[2]<=[2]}
  ROOT y = f32[5]{0} copy(x), sharding={devices=[2]<=[2]}
}
)";

std::shared_ptr<const PartitionedProgram> Partitioned(const std::string& text) {
  auto program = PartitionText(text, {});
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

Tensor Counting(absl::Span<const int64_t> dims, float first = 0) {
  Tensor tensor(ElementType::kF32, dims);
  float* const values = tensor.MutableData<float>();
  std::iota(values, values + tensor.num_elements(), first);
  return tensor;
}

PjrtEngine EngineOf(const FakeBackend& backend) {
  return PjrtEngine(*Plugin::FromApi(backend.api(), "made up"), {});
}

TEST(PjrtExecutableTest, ArraysStayOnTheDevicesFromOneExecutionToTheNext) {
  FakeBackend backend;
  for (const auto& [text, dims] :
       std::vector<std::pair<const char*, Dims>>{{kRows, {4, 3}}, {kUneven, {5}}}) {
    backend.puts = backend.copies = 0;
    PjrtEngine engine = EngineOf(backend);
    const auto step = engine.Compile(Partitioned(text), {});
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(step->num_inputs(), 1u);
    EXPECT_EQ(step->num_outputs(), 1u);
    auto array = step->Put(0, Counting(dims));
    ASSERT_TRUE(array.ok()) << array.status();
    for (int k = 0; k < 3; ++k) {
      auto results = step->Execute(*std::move(array));
      ASSERT_TRUE(results.ok()) << results.status();
      array = std::move((*results)[0]);
    }
    EXPECT_EQ(backend.puts, 2);
    EXPECT_EQ(backend.copies, 0);
    EXPECT_EQ(array->type(), ElementType::kF32);
    EXPECT_EQ(array->dims(), dims);
    const auto whole = array->ToHost();
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_TRUE(BitwiseEqual(*whole, Counting(dims)));
    EXPECT_EQ(backend.copies, 2);
  }
  EXPECT_EQ(backend.alive(), 0);
}

TEST(PjrtExecutableTest, AnInputComesBackAsItWasPut) {
  FakeBackend backend;
  PjrtEngine engine = EngineOf(backend);
  const auto step = engine.Compile(Partitioned(kUneven), {});
  const auto array = step->Put(0, Counting({5}));
  ASSERT_TRUE(array.ok()) << array.status();
  const auto whole = array->ToHost();
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(BitwiseEqual(*whole, Counting({5})));
}

TEST(PjrtExecutableTest, OnlyWhatNobodyElseHoldsMayBeDonated) {
  FakeBackend backend;
  PjrtEngine engine = EngineOf(backend);
  const auto step = engine.Compile(Partitioned(kRows), {});
  auto array = step->Put(0, Counting({4, 3}));
  ASSERT_TRUE(step->Execute(*array).ok());
  EXPECT_EQ(backend.lent, std::vector<int64_t>{0});
  ASSERT_TRUE(step->Execute(*std::move(array)).ok());
  EXPECT_EQ(backend.lent, std::vector<int64_t>{});
  EXPECT_EQ(array->type(), ElementType::kInvalid);
  EXPECT_EQ(DiagnosticCode(array->ToHost().status()), "E313");
}

TEST(PjrtExecutableTest, WhatOneProgramGivesAnotherTakesIfItLiesAsThatSays) {
  FakeBackend backend;
  PjrtEngine engine = EngineOf(backend);
  const auto rows = engine.Compile(Partitioned(kRows), {});
  const auto also_rows = engine.Compile(Partitioned(kRows), {});
  const auto columns = engine.Compile(Partitioned(R"(
HloModule columns, num_partitions=2

ENTRY main {
  x = f32[4,3]{1,0} parameter(0), sharding={devices=[1,2]<=[2]}
  ROOT y = f32[4,3]{1,0} copy(x), sharding={devices=[1,2]<=[2]}
}
)"),
                                      {});
  const auto array = rows->Put(0, Counting({4, 3}));
  ASSERT_TRUE(array.ok()) << array.status();
  const auto results = also_rows->Execute(*array);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE(rows->Execute((*results)[0]).ok());
  for (const PjrtArray& rowwise : {*array, (*results)[0]}) {
    const absl::Status status = columns->Execute(rowwise).status();
    EXPECT_EQ(DiagnosticCode(status), "E313") << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "shards of f32[4,2]")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "shards of f32[2,3]")) << status;
  }
  PjrtEngine another = EngineOf(backend);
  const absl::Status status = another.Compile(Partitioned(kRows), {})->Execute(*array).status();
  EXPECT_EQ(DiagnosticCode(status), "E313") << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "other devices")) << status;
}

TEST(PjrtExecutableTest, WhatDoesNotFitIsRefused) {
  FakeBackend backend;
  PjrtEngine engine = EngineOf(backend);
  const auto step = engine.Compile(Partitioned(kRows), {});
  const auto array = step->Put(0, Counting({4, 3}));
  const auto uneven = engine.Compile(Partitioned(kUneven), {})->Put(0, Counting({5}));
  const auto code = [](const absl::Status& status) { return std::string(DiagnosticCode(status)); };
  EXPECT_EQ(code(step->Put(1, Counting({4, 3})).status()), "E313");
  EXPECT_EQ(code(step->Put(0, Counting({3, 4})).status()), "E313");
  EXPECT_EQ(code(step->Put(0, Tensor()).status()), "E313");
  EXPECT_EQ(code(step->Put(0, Tensor::Zeros(ElementType::kS32, {4, 3})).status()), "E313");
  EXPECT_EQ(code(step->Execute().status()), "E313");
  EXPECT_EQ(code(step->Execute(*array, *array).status()), "E313");
  EXPECT_EQ(code(step->Execute(PjrtArray()).status()), "E313");
  EXPECT_EQ(code(step->Execute(*uneven).status()), "E313");
  EXPECT_EQ(code(PjrtArray().ToHost().status()), "E313");
  EXPECT_EQ(code(engine.Compile(nullptr, {}).status()), "E313");
}

TEST(PjrtExecutableTest, AFailureOfAnyFunctionLeavesNothingBehind) {
  for (Function f : {Function::kEventAwait, Function::kClientCompile,
                     Function::kClientBufferFromHostBuffer, Function::kLoadedExecutableExecute,
                     Function::kBufferDimensions, Function::kBufferToHostBuffer}) {
    SCOPED_TRACE(abi::FunctionName(f));
    FakeBackend backend;
    backend.fails = f;
    const auto failure = [&]() -> absl::Status {
      PjrtEngine engine = EngineOf(backend);
      SHARDCALL_ASSIGN_OR_RETURN(const PjrtExecutable step, engine.Compile(Partitioned(kRows), {}));
      SHARDCALL_ASSIGN_OR_RETURN(PjrtArray array, step.Put(0, Counting({4, 3})));
      SHARDCALL_ASSIGN_OR_RETURN(const std::vector<PjrtArray> results,
                                 step.Execute(std::move(array)));
      return results[0].ToHost().status();
    };
    const absl::Status status = failure();
    EXPECT_EQ(DiagnosticCode(status), "E334") << status;
    EXPECT_TRUE(absl::StrContains(status.message(), abi::FunctionName(f))) << status;
    EXPECT_EQ(backend.alive(), 0);
    backend.fails.reset();
    EXPECT_TRUE(failure().ok());
  }
}

TEST(PjrtExecutableTest, AnExecutionThatDoesNotEndIsLeftBehindAtTheDeadline) {
  FakeBackend backend;
  {
    PjrtEngine engine = EngineOf(backend);
    RunOptions options;
    options.deadline = absl::Milliseconds(100);
    const auto step = engine.Compile(Partitioned(kRows), options);
    const auto array = step->Put(0, Counting({4, 3}));
    ASSERT_TRUE(array.ok()) << array.status();
    backend.hangs = true;
    const absl::Status status = step->Execute(*array).status();
    EXPECT_EQ(DiagnosticCode(status), "E337") << status;
    EXPECT_EQ(ThreadsLeftBehind(), 1);
  }
  EXPECT_GT(backend.alive(), 0);
  backend.hangs = false;
  for (int k = 0; k < 1000 && (ThreadsLeftBehind() > 0 || backend.alive() > 0); ++k) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(backend.alive(), 0);
}

// XLA's own backend.
class OnXla : public testing::Test {
 protected:
  void SetUp() override {
    const char* plugin = std::getenv("SHARDCALL_PJRT_CPU_PLUGIN");
    if (plugin == nullptr || *plugin == '\0')
      GTEST_SKIP() << "SHARDCALL_PJRT_CPU_PLUGIN is not set";
    auto engine = MakePjrtEngine(plugin, {{"cpu_device_count", int64_t{4}}});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  std::unique_ptr<PjrtEngine> engine_;
};

// sums += x y^T, over rows and columns; the sums are donated, and large enough that XLA
// writes them where they lie.
constexpr char kSums[] = R"(
HloModule sums, num_partitions=4, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY main {
  s = f32[130,257]{1,0} parameter(0), sharding={devices=[2,2]<=[4]}
  x = f32[130,3]{1,0} parameter(1), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  y = f32[3,257]{1,0} parameter(2), sharding={replicated}
  p = f32[130,257]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[130,257]{1,0} add(s, p), sharding={devices=[2,2]<=[4]}
}
)";

TEST_F(OnXla, StepsGiveWhatThreadsGive) {
  for (const bool must : {false, true}) {
    std::string text = kSums;
    if (must) text.replace(text.find("may-alias"), 9, "must-alias");
    const auto program = Partitioned(text);
    const auto step = engine_->Compile(program, {});
    ASSERT_TRUE(step.ok()) << step.status();
    const Tensor x = Counting({130, 3}, -200), y = Counting({3, 257}, -300);
    Tensor expected = Tensor::Zeros(ElementType::kF32, {130, 257});
    const Tensor start = expected;  // shares its memory
    auto sums = step->Put(0, start);
    const auto on_device_x = step->Put(1, x), on_device_y = step->Put(2, y);
    ASSERT_TRUE(sums.ok() && on_device_x.ok() && on_device_y.ok());
    for (int k = 0; k < 3; ++k) {
      auto results = step->Execute(*std::move(sums), *on_device_x, *on_device_y);
      ASSERT_TRUE(results.ok()) << results.status();
      sums = std::move((*results)[0]);
      auto ours = RunPartitioned(*program, {expected, x, y}, {}, nullptr);
      ASSERT_TRUE(ours.ok()) << ours.status();
      expected = std::move((*ours)[0]);
      const auto whole = sums->ToHost();
      ASSERT_TRUE(whole.ok()) << whole.status();
      EXPECT_TRUE(BitwiseEqual(*whole, expected)) << "step " << k;
    }
    // What was given from the host is as it was.
    EXPECT_TRUE(BitwiseEqual(start, Tensor::Zeros(ElementType::kF32, {130, 257})));
    EXPECT_TRUE(BitwiseEqual(*on_device_x->ToHost(), x));
  }
}

TEST_F(OnXla, AnArrayThatIsHeldElsewhereIsNotOverwritten) {
  const auto step = engine_->Compile(Partitioned(kSums), {});
  ASSERT_TRUE(step.ok()) << step.status();
  const Tensor ones = Counting({3, 257}, 1);
  auto sums = step->Put(0, Tensor::Zeros(ElementType::kF32, {130, 257}));
  const auto x = step->Put(1, Counting({130, 3})), y = step->Put(2, ones);
  ASSERT_TRUE(sums.ok() && x.ok() && y.ok());
  auto first = step->Execute(*std::move(sums), *x, *y);
  ASSERT_TRUE(first.ok()) << first.status();
  const Tensor before = *(*first)[0].ToHost();
  const auto second = step->Execute((*first)[0], *x, *y);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(BitwiseEqual(*(*first)[0].ToHost(), before));
  EXPECT_FALSE(BitwiseEqual(*(*second)[0].ToHost(), before));
}

}  // namespace
}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
