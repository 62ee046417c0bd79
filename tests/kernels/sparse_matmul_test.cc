// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/kernel_test_util.h"

namespace shardcall {
namespace {

constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kF64 = ElementType::kF64;
constexpr ElementType kS32 = ElementType::kS32;

struct Csr {
  Tensor values, columns, offsets;
};

// About half of the elements of a dense [m, k], and the dense matrix.
Csr RandomCsr(ElementType type, int64_t m, int64_t k, int seed, std::vector<double>* dense) {
  const Tensor all = RandomIntegers(type, {m, k}, seed, -6, 6);
  std::vector<double> values, columns, offsets = {0};
  dense->assign(m * k, 0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = k - 1; j >= 0; --j) {  // in no order of columns
      const double v = all.values[i * k + j];
      if (v <= 0) continue;
      (*dense)[i * k + j] = v;
      values.push_back(v);
      columns.push_back(static_cast<double>(j));
    }
    offsets.push_back(static_cast<double>(values.size()));
  }
  const int64_t z = static_cast<int64_t>(values.size());
  Csr csr = {Tensor(type, {z}), Tensor(kS32, {z}), Tensor(kS32, {m + 1})};
  csr.values.values = values;
  csr.columns.values = columns;
  csr.offsets.values = offsets;
  return csr;
}

std::vector<double> Product(const std::vector<double>& a, const Tensor& b, int64_t m) {
  const int64_t k = b.dims[0], n = b.dims[1];
  std::vector<double> y(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t j = 0; j < n; ++j) y[i * n + j] += a[i * k + l] * b.values[l * n + j];
    }
  }
  return y;
}

class SparseMatmulTest : public testing::TestWithParam<ElementType> {};

TEST_P(SparseMatmulTest, IsTheDenseProduct) {
  int seed = 0;
  for (const auto& [m, k, n] :
       std::vector<std::tuple<int, int, int>>{{5, 7, 3}, {1, 1, 1}, {16, 4, 9}, {3, 12, 1}}) {
    std::vector<double> dense;
    const Csr a = RandomCsr(GetParam(), m, k, ++seed, &dense);
    const Tensor b = RandomIntegers(GetParam(), {k, n}, ++seed, 0, 4);
    std::vector<Tensor> y = {Tensor(GetParam(), {m, n})};
    const absl::Status status =
        CallKernel("sparse_matmul", {a.values, a.columns, a.offsets, b}, &y);
    ASSERT_TRUE(status.ok()) << status;
    ExpectNear(y[0], Product(dense, b, m), GetParam() == ElementType::kBF16 ? 1e-2 : 0, "y");
  }
}
INSTANTIATE_TEST_SUITE_P(Types, SparseMatmulTest,
                         testing::Values(kF32, kF64, ElementType::kBF16, ElementType::kF16, kS32,
                                         ElementType::kS64, ElementType::kU32),
                         [](const auto& info) { return std::string(ElementTypeName(info.param)); });

TEST(SparseMatmul, RoundedSumsAreNearTheF64Reference) {
  std::vector<double> dense;
  Csr a = RandomCsr(kF64, 20, 30, 3, &dense);
  const Tensor b = RandomTensor(kF32, {30, 8}, 4);
  Csr f32 = a;
  f32.values.type = kF32;
  std::vector<Tensor> y = {Tensor(kF32, {20, 8})};
  ASSERT_TRUE(CallKernel("sparse_matmul", {f32.values, f32.columns, f32.offsets, b}, &y).ok());
  ExpectNear(y[0], Product(dense, b, 20), 1e-6, "y");
}

std::vector<double> Call(std::vector<double> columns, std::vector<double> offsets) {
  Tensor values(kF32, {static_cast<int64_t>(columns.size())}), c(kS32, values.dims),
      o(kS32, {static_cast<int64_t>(offsets.size())}), b(kF32, {3, 1});
  for (size_t i = 0; i < columns.size(); ++i) values.values[i] = 1;
  c.values = std::move(columns);
  o.values = std::move(offsets);
  b.values = {1, 10, 100};
  std::vector<Tensor> y = {Tensor(kF32, {static_cast<int64_t>(o.values.size()) - 1, 1})};
  EXPECT_TRUE(CallKernel("sparse_matmul", {values, c, o, b}, &y).ok());
  return y[0].values;
}

TEST(SparseMatmul, EntriesInNoColumnArePadding) {
  EXPECT_EQ(Call({0, -1, 3, 2, 2147483647}, {0, 3, 5}), (std::vector<double>{1, 100}));
}

TEST(SparseMatmul, ColumnsMayRepeat) {
  EXPECT_EQ(Call({1, 1, 0}, {0, 3}), (std::vector<double>{21}));
}

TEST(SparseMatmul, OffsetsStayWithinTheEntries) {
  EXPECT_EQ(Call({0, 1, 2}, {-5, 1, 1, 900}), (std::vector<double>{1, 0, 110}));
  EXPECT_EQ(Call({0, 1, 2}, {2, 1, 3, 0}), (std::vector<double>{0, 110, 0}));
  EXPECT_EQ(Call({}, {0, 7}), (std::vector<double>{0}));
}

TEST(SparseMatmul, BadCallsAreRefused) {
  const Tensor v(kF32, {4}), c(kS32, {4}), o(kS32, {3}), b(kF32, {5, 6});
  std::vector<Tensor> y = {Tensor(kF32, {2, 6})};
  auto call = [&](std::vector<Tensor> in) { return CallKernel("sparse_matmul", in, &y); };
  ASSERT_TRUE(call({v, c, o, b}).ok());
  ExpectError(call({v, c, o}), "E132", {"sparse_matmul"});
  ExpectError(call({v, Tensor(kS32, {3}), o, b}), "E133", {"columns"});
  ExpectError(call({v, v, o, b}), "E134", {"columns"});
  ExpectError(call({v, c, Tensor(kS32, {2}), b}), "E133", {"offsets", "s32[3]"});
  ExpectError(call({v, c, o, Tensor(kF64, {5, 6})}), "E134", {"b"});
  ExpectError(call({v, c, o, Tensor(kF32, {5})}), "E133", {"b"});
  ExpectError(CallKernel("sparse_matmul", {v, c, o, b}, &y, "{x = 1 : i32}"), "E131", {"x"});
  y = {Tensor(kF32, {2, 5})};
  ExpectError(call({v, c, o, b}), "E133", {"y"});
}

TEST(SparseMatmulBwd, IsTheGradientOfTheDenseProduct) {
  for (ElementType type : {kF32, kF64, ElementType::kBF16}) {
    std::vector<double> dense;
    const int64_t m = 6, k = 5, n = 3;
    const Csr a = RandomCsr(type, m, k, 7, &dense);
    const Tensor b = RandomIntegers(type, {k, n}, 8, -3, 3);
    const Tensor dy = RandomIntegers(type, {m, n}, 9, -2, 2);
    std::vector<Tensor> got = {Tensor(type, a.values.dims), Tensor(type, {k, n})};
    const absl::Status status =
        CallKernel("sparse_matmul_bwd", {dy, a.values, a.columns, a.offsets, b}, &got);
    ASSERT_TRUE(status.ok()) << status;
    std::vector<double> dvalues, db(k * n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = k - 1; j >= 0; --j) {  // as RandomCsr has them
        double d = 0;
        for (int64_t l = 0; l < n; ++l) {
          d += dy.values[i * n + l] * b.values[j * n + l];
          db[j * n + l] += dense[i * k + j] * dy.values[i * n + l];
        }
        if (dense[i * k + j] != 0) dvalues.push_back(d);
      }
    }
    EXPECT_EQ(got[0].values, dvalues) << ElementTypeName(type);
    EXPECT_EQ(got[1].values, db) << ElementTypeName(type);
  }
}

TEST(SparseMatmulBwd, EntriesInNoRowOrColumnHaveNoGradient) {
  Tensor values(kF32, {4}), columns(kS32, {4}), offsets(kS32, {3}), b(kF32, {2, 1}),
      dy(kF32, {2, 1});
  values.values = {1, 2, 3, 4};
  columns.values = {0, -1, 9, 1};
  offsets.values = {1, 3, 99};
  b.values = {10, 20};
  dy.values = {5, 7};
  std::vector<Tensor> got = {Tensor(kF32, {4}), Tensor(kF32, {2, 1})};
  ASSERT_TRUE(CallKernel("sparse_matmul_bwd", {dy, values, columns, offsets, b}, &got).ok());
  EXPECT_EQ(got[0].values, (std::vector<double>{0, 0, 0, 140}));
  EXPECT_EQ(got[1].values, (std::vector<double>{0, 28}));
  ExpectError(CallKernel("sparse_matmul_bwd", {dy, values, columns, offsets}, &got), "E132", {});
  ExpectError(CallKernel("sparse_matmul_bwd", {dy, values, columns, columns, b}, &got), "E133",
              {"offsets"});
  got[1] = Tensor(kF64, {2, 1});
  ExpectError(CallKernel("sparse_matmul_bwd", {dy, values, columns, offsets, b}, &got), "E134",
              {"db"});
}

}  // namespace
}  // namespace shardcall
