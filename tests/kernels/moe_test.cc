// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "tests/kernels/kernel_test_util.h"

namespace shardcall {
namespace {

constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kF64 = ElementType::kF64;
constexpr ElementType kBF16 = ElementType::kBF16;
constexpr ElementType kS32 = ElementType::kS32;

Tensor Ints(std::vector<int64_t> dims, std::vector<double> values) {
  Tensor t(kS32, std::move(dims));
  t.values = std::move(values);
  return t;
}

Tensor Positions(const Tensor& experts, absl::string_view attributes = "") {
  std::vector<Tensor> out = {Tensor(kS32, experts.dims)};
  const absl::Status status = CallKernel("moe_positions", {experts}, &out, attributes);
  EXPECT_TRUE(status.ok()) << status;
  return out[0];
}

// One-hot routes [t * a, e * c] as einsums have them.
std::vector<double> Routes(const Tensor& experts, const Tensor& positions, int64_t e, int64_t c) {
  std::vector<double> routes(experts.size() * e * c);
  for (int64_t i = 0; i < experts.size(); ++i) {
    for (int64_t s = 0; s < e * c; ++s) {
      if (experts.values[i] == static_cast<double>(s / c) &&
          positions.values[i] == static_cast<double>(s % c)) {
        routes[i * e * c + s] = 1;
      }
    }
  }
  return routes;
}

TEST(MoePositions, CountWhoCameBefore) {
  const Tensor experts = Ints({4, 2}, {1, 0, 1, 2, -3, 1, 0, 1});
  EXPECT_EQ(Positions(experts).values, (std::vector<double>{0, 0, 1, 0, -1, 2, 1, 3}));
  EXPECT_EQ(Positions(experts, "{choices_first = true}").values,
            (std::vector<double>{0, 1, 1, 0, -1, 2, 0, 3}));
}

TEST(MoePositions, GroupsCountForThemselves) {
  EXPECT_EQ(Positions(Ints({2, 2, 1}, {5, 5, 5, 5})).values, (std::vector<double>{0, 1, 0, 1}));
  EXPECT_TRUE(Positions(Ints({0, 2, 1}, {})).values.empty());
  EXPECT_TRUE(Positions(Ints({2, 2, 0}, {})).values.empty());
}

struct Case {
  ElementType type, gate_type;
  int64_t t, a, e, c, d;
  double tolerance;
};

class MoeTest : public testing::TestWithParam<Case> {};

TEST_P(MoeTest, DispatchAndCombineAreTheOneHotProducts) {
  const Case& k = GetParam();
  const Tensor experts = RandomIntegers(kS32, {k.t, k.a}, 1, -1, static_cast<int>(k.e));
  const Tensor positions = Positions(experts);
  const std::vector<double> routes = Routes(experts, positions, k.e, k.c);
  const Tensor tokens = RandomTensor(k.type, {k.t, k.d}, 2);
  const int64_t slots = k.e * k.c;

  std::vector<Tensor> inputs = {Tensor(k.type, {k.e, k.c, k.d})};
  absl::Status status = CallKernel("moe_dispatch", {tokens, experts, positions}, &inputs);
  ASSERT_TRUE(status.ok()) << status;
  std::vector<double> want(slots * k.d);
  for (int64_t i = 0; i < k.t * k.a; ++i) {
    for (int64_t s = 0; s < slots; ++s) {
      for (int64_t j = 0; j < k.d; ++j) {
        want[s * k.d + j] += routes[i * slots + s] * tokens.values[i / k.a * k.d + j];
      }
    }
  }
  ExpectNear(inputs[0], want, k.tolerance, "inputs");

  const Tensor outputs = RandomTensor(k.type, {k.e, k.c, k.d}, 3);
  const Tensor gates = RandomTensor(k.gate_type, {k.t, k.a}, 4);
  std::vector<Tensor> y = {Tensor(k.type, {k.t, k.d})};
  status = CallKernel("moe_combine", {outputs, experts, positions, gates}, &y);
  ASSERT_TRUE(status.ok()) << status;
  want.assign(k.t * k.d, 0);
  for (int64_t i = 0; i < k.t * k.a; ++i) {
    for (int64_t s = 0; s < slots; ++s) {
      for (int64_t j = 0; j < k.d; ++j) {
        want[i / k.a * k.d + j] +=
            gates.values[i] * routes[i * slots + s] * outputs.values[s * k.d + j];
      }
    }
  }
  ExpectNear(y[0], want, k.tolerance, "y");
}
INSTANTIATE_TEST_SUITE_P(
    Shapes, MoeTest,
    testing::Values(Case{kF32, kF32, 16, 2, 4, 8, 5, 1e-6}, Case{kF32, kF32, 13, 1, 3, 2, 7, 1e-6},
                    Case{kF32, kF32, 9, 3, 1, 4, 1, 1e-6}, Case{kF64, kF64, 8, 2, 5, 3, 4, 1e-14},
                    Case{kBF16, kBF16, 8, 2, 4, 4, 6, 1e-2}, Case{kBF16, kF32, 8, 2, 4, 4, 6, 1e-2},
                    Case{ElementType::kF16, kF32, 8, 2, 4, 4, 6, 2e-3}));

TEST(Moe, AnExpertThatIsFullTakesNoMoreTokens) {
  Tensor tokens(kF32, {4, 1});
  tokens.values = {1, 2, 3, 4};
  const Tensor experts = Ints({4, 1}, {0, 0, 0, 0});
  std::vector<Tensor> inputs = {Tensor(kF32, {1, 2, 1})};
  ASSERT_TRUE(CallKernel("moe_dispatch", {tokens, experts, Positions(experts)}, &inputs).ok());
  EXPECT_EQ(inputs[0].values, (std::vector<double>{1, 2}));
  Tensor gates(kF32, {4, 1});
  gates.values = {1, 1, 1, 1};
  std::vector<Tensor> y = {Tensor(kF32, {4, 1})};
  ASSERT_TRUE(CallKernel("moe_combine", {inputs[0], experts, Positions(experts), gates}, &y).ok());
  EXPECT_EQ(y[0].values, (std::vector<double>{1, 2, 0, 0}));
}

TEST(Moe, GroupsHaveExpertsOfTheirOwn) {
  Tensor tokens(kF64, {2, 2, 1});
  tokens.values = {1, 2, 3, 4};
  const Tensor experts = Ints({2, 2, 1}, {1, 0, 1, 1});
  std::vector<Tensor> inputs = {Tensor(kF64, {2, 2, 2, 1})};
  ASSERT_TRUE(CallKernel("moe_dispatch", {tokens, experts, Positions(experts)}, &inputs).ok());
  EXPECT_EQ(inputs[0].values, (std::vector<double>{2, 0, 1, 0, 0, 0, 3, 4}));
  Tensor gates(kF64, {2, 2, 1});
  gates.values = {10, 10, 10, 10};
  std::vector<Tensor> y = {tokens};
  ASSERT_TRUE(CallKernel("moe_combine", {inputs[0], experts, Positions(experts), gates}, &y).ok());
  EXPECT_EQ(y[0].values, (std::vector<double>{10, 20, 30, 40}));
}

TEST(Moe, BadCallsAreRefused) {
  const Tensor x(kF32, {4, 3}), route(kS32, {4, 2}), gates(kF32, {4, 2}), slots(kF32, {2, 5, 3});
  std::vector<Tensor> out = {slots};
  auto dispatch = [&](std::vector<Tensor> in) { return CallKernel("moe_dispatch", in, &out); };
  auto combine = [&](std::vector<Tensor> in) { return CallKernel("moe_combine", in, &out); };
  ASSERT_TRUE(dispatch({x, route, route}).ok());
  ExpectError(dispatch({x, route}), "E132", {"moe_dispatch"});
  ExpectError(dispatch({x, gates, route}), "E134", {"experts", "s32"});
  ExpectError(dispatch({x, route, Tensor(kS32, {4, 1})}), "E133", {"positions"});
  ExpectError(dispatch({x, Tensor(kS32, {3, 2}), route}), "E133", {"experts"});
  ExpectError(dispatch({route, route, route}), "E134", {"tokens"});
  ExpectError(dispatch({Tensor(kF32, {3}), route, route}), "E133", {"tokens"});
  ExpectError(CallKernel("moe_dispatch", {x, route, route}, &out, "{capacity = 2 : i64}"), "E131",
              {"capacity"});
  out = {Tensor(kF32, {2, 5, 4})};
  ExpectError(dispatch({x, route, route}), "E133", {"inputs"});
  out = {Tensor(kF32, {2, 5})};
  ExpectError(dispatch({x, route, route}), "E133", {"inputs"});
  out = {x};
  ASSERT_TRUE(combine({slots, route, route, gates}).ok());
  ExpectError(combine({slots, route, route, Tensor(kF32, {4, 3})}), "E133", {"gates"});
  ExpectError(combine({slots, route, route, Tensor(kF64, {4, 2})}), "E134", {"gates"});
  ExpectError(combine({Tensor(kF32, {2, 3}), route, route, gates}), "E133", {"outputs"});
  out = {Tensor(kS32, {4})};
  ExpectError(CallKernel("moe_positions", {Tensor(kS32, {4})}, &out), "E133", {"experts"});
  ExpectError(CallKernel("moe_positions", {Tensor(kF32, {4, 1})}, &out), "E134", {"experts"});
}

}  // namespace
}  // namespace shardcall
