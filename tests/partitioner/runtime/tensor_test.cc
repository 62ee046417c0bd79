// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/tensor.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/runtime/execute/executor.h"
#include "shardcall/partitioner/runtime/lower/lower.h"
#include "shardcall/sharding/base/status.h"
#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename T>
std::string Why(ElementType type, std::vector<int64_t> dims, std::vector<T> values) {
  const absl::StatusOr<Tensor> made = Tensor::Create(type, dims, values);
  EXPECT_EQ(Tensor::From(type, dims, values).type(), made.ok() ? type : ElementType::kInvalid);
  return made.ok() ? "" : std::string(made.status().message());
}

TEST(Tensor, IsMadeOfAsManyValuesAsItHasElements) {
  EXPECT_EQ(Why<float>(ElementType::kF32, {2, 2}, {1, 2, 3, 4}), "");
  EXPECT_EQ(Why<float>(ElementType::kF32, {}, {1}), "");
  EXPECT_EQ(Why<float>(ElementType::kF32, {0, 5}, {}), "");
  EXPECT_THAT(Why<float>(ElementType::kF32, {2, 2}, {1, 2, 3}),
              AllOf(HasSubstr("E313"), HasSubstr("expected 4, found 3 for f32[2,2]")));
  EXPECT_THAT(Why<float>(ElementType::kF32, {}, {}), HasSubstr("expected 1, found 0"));
  EXPECT_THAT(Why<float>(ElementType::kF32, {-1, -4}, {1, 2, 3, 4}), HasSubstr("0 or more"));
  EXPECT_THAT(Why<float>(ElementType::kF32, {int64_t{1} << 62, 4}, {}), HasSubstr("E313"));
}

TEST(Tensor, IsMadeOfValuesOfItsTypeOrOfItsBits) {
  EXPECT_EQ(Why<uint16_t>(ElementType::kBF16, {1}, {0x3f80}), "");
  EXPECT_EQ(Why<uint8_t>(ElementType::kPred, {1}, {1}), "");
  EXPECT_EQ(Why<int32_t>(ElementType::kS32, {1}, {1}), "");
  EXPECT_THAT(Why<double>(ElementType::kF32, {2}, {1, 2}),
              HasSubstr("expected f32, 4 bytes each, found floating-point numbers of 8 bytes"));
  EXPECT_THAT(Why<int32_t>(ElementType::kF32, {1}, {1}), HasSubstr("signed integers of 4 bytes"));
  EXPECT_THAT(Why<float>(ElementType::kS32, {1}, {1}), HasSubstr("E313"));
  EXPECT_THAT(Why<float>(ElementType::kToken, {}, {1}), HasSubstr("the type of an array"));
}

TEST(Tensor, AProgramTakesNoneThatIsNoArray) {
  const absl::StatusOr<Module> module =
      ParseModule(std::make_shared<const std::string>(
                      "HloModule m\nENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }"),
                  std::make_shared<Context>(), "t");
  ASSERT_TRUE(module.ok()) << module.status();
  const auto program = Lower(*module);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto code = [&](Tensor t) {
    std::vector<Tensor> arguments(1, std::move(t));
    return std::string(DiagnosticCode(Execute(**program, std::move(arguments), {}).status()));
  };
  EXPECT_EQ(code(Tensor::From<float>(ElementType::kF32, {2}, {1, 2})), "");
  EXPECT_EQ(code(Tensor::From<float>(ElementType::kF32, {2}, {1})), "E313");
  EXPECT_EQ(code(Tensor()), "E313");
  Tensor gone = Tensor::From<float>(ElementType::kF32, {2}, {1, 2});
  const Tensor taken = std::move(gone);
  EXPECT_EQ(code(gone), "E313");  // NOLINT: what was moved from
}

}  // namespace
}  // namespace shardcall
