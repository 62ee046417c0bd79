// SPDX-License-Identifier: Apache-2.0
// The shipped targets that call a library of the CUDA toolkit, against the host's
// handlers: on a GPU, and without one over stand-ins (stand_in/). Skips without either.
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/kernels/cuda_target_util.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using Type = ElementType;

constexpr Type kMatrixTypes[] = {Type::kF32, Type::kBF16, Type::kF16,
                                 Type::kF64, Type::kC64,  Type::kC128};

std::vector<int64_t> Dims(std::vector<int64_t> batch, bool transposed, int64_t rows,
                          int64_t columns) {
  batch.push_back(transposed ? columns : rows);
  batch.push_back(transposed ? rows : columns);
  return batch;
}

TEST_F(CudaTargets, GemmTransposesEveryTypeAsTheHostDoes) {
  const char* const ops[] = {"\"N\"", "\"T\"", "\"C\""};
  for (Type type : kMatrixTypes) {
    for (int op_a : {0, 1, 2}) {
      for (int op_b : {0, 1, 2}) {
        ExpectAsOnHost("cublas_gemm",
                       {WholeNumbers(type, Dims({}, op_a > 0, 5, 7), 1),
                        WholeNumbers(type, Dims({}, op_b > 0, 7, 3), 2)},
                       {type, {5, 3}},
                       absl::StrCat("{transa = ", ops[op_a], ", transb = ", ops[op_b], "}"));
      }
    }
  }
}

TEST_F(CudaTargets, GemmOfBatchesAddsAScaledOperand) {
  for (Type type : kMatrixTypes) {
    for (bool has_c : {false, true}) {
      std::vector<Array> operands = {WholeNumbers(type, {2, 3, 5, 7}, 1),
                                     WholeNumbers(type, {2, 3, 9, 7}, 2)};
      if (has_c) operands.push_back(WholeNumbers(type, {2, 3, 5, 9}, 3));
      ExpectAsOnHost(
          "gemm", operands, {type, {2, 3, 5, 9}},
          has_c ? "{transb = true, alpha = 2.0, beta = -1.0}" : "{transb = true, alpha = 2.0}");
    }
  }
}

TEST_F(CudaTargets, GemmOfNarrowFloatsGivesF32) {
  for (Type type : {Type::kF16, Type::kBF16}) {
    ExpectAsOnHost("cublas_gemm",
                   {WholeNumbers(type, {6, 40}, 1), WholeNumbers(type, {40, 4}, 2),
                    WholeNumbers(Type::kF32, {6, 4}, 3)},
                   {Type::kF32, {6, 4}}, "{beta = 0.5}");
  }
}

TEST_F(CudaTargets, GemmWithoutTermsIsTheScaledOperandOrZero) {
  for (Type type : kMatrixTypes) {
    for (bool transposed : {false, true}) {
      const std::string ops = transposed ? "{transa = true, transb = true, " : "{";
      std::vector<Array> operands = {{type, Dims({2}, transposed, 3, 0)},
                                     {type, Dims({2}, transposed, 0, 4)}};
      ExpectAsOnHost("cublas_gemm", operands, {type, {2, 3, 4}}, ops + "alpha = 1.0}");
      operands.push_back(WholeNumbers(type, {2, 3, 4}, 1));
      ExpectAsOnHost("cublas_gemm", operands, {type, {2, 3, 4}}, ops + "beta = 2.0}");
    }
    ExpectAsOnHost("cublas_gemm", {{type, {0, 3}}, WholeNumbers(type, {3, 2}, 1)}, {type, {0, 2}});
    ExpectAsOnHost("cublas_gemm", {{type, {0, 2, 3}}, {type, {0, 3, 2}}}, {type, {0, 2, 2}});
  }
}

TEST_F(CudaTargets, AGemmMayWriteOverAnOperand) {
  const Array a = WholeNumbers(Type::kF32, {3, 4, 4}, 1);
  const Array b = WholeNumbers(Type::kF32, {3, 4, 4}, 2);
  const Array c = WholeNumbers(Type::kF32, {3, 4, 4}, 3);
  for (int alias : {0, 1, 2}) {
    ExpectAsOnHost("cublas_gemm", {a, b, c}, {Type::kF32, {3, 4, 4}}, "{beta = 2.0}", alias);
  }
}

TEST_F(CudaTargets, MoreProductsThanOneLaunchTakesAreAllMade) {
  ExpectAsOnHost(
      "cublas_gemm",
      {WholeNumbers(Type::kF16, {70001, 1, 3}, 1), WholeNumbers(Type::kF16, {70001, 3, 1}, 2)},
      {Type::kF16, {70001, 1, 1}});
}

TEST_F(CudaTargets, GemmRefusesWhatTheHostRefuses) {
  const Array a{Type::kF32, {2, 3}, std::vector<std::complex<double>>(6)};
  const Array b{Type::kF32, {3, 2}, std::vector<std::complex<double>>(6)};
  const Array d{Type::kF32, {2, 2}};
  ExpectErrorOfHost("cublas_gemm", {a, a}, d, "E133");
  ExpectErrorOfHost("cublas_gemm", {a}, d, "E132");
  ExpectErrorOfHost("cublas_gemm", {a, b}, {Type::kBF16, {2, 2}}, "E134");
  ExpectErrorOfHost("cublas_gemm", {WholeNumbers(Type::kS32, {2, 3}, 1), b}, d, "E134");
  ExpectErrorOfHost("cublas_gemm", {a, b}, d, "E131", "{transa = \"X\"}");
  ExpectErrorOfHost("cublas_gemm", {a, b}, d, "E131", "{beta = 1.0}");
}

constexpr Type kSparseTypes[] = {Type::kF32,  Type::kBF16, Type::kF16, Type::kF64, Type::kC64,
                                 Type::kC128, Type::kS8,   Type::kS16, Type::kS32, Type::kS64,
                                 Type::kU8,   Type::kU16,  Type::kU32, Type::kU64};

TEST_F(CudaTargets, ASparseProductIsTheHostsInEveryType) {
  for (Type type : kSparseTypes) {
    // A row without entries, one with an entry twice, and columns in any order.
    ExpectAsOnHost("sparse_matmul",
                   {WholeNumbers(type, {7}, 1), Indices({4, 0, 2, 2, 1, 3, 0}),
                    Indices({0, 2, 2, 5, 7}), WholeNumbers(type, {5, 3}, 2)},
                   {type, {4, 3}});
  }
}

// What stands in a part of a sharded matrix, and what nobody should write.
TEST_F(CudaTargets, OffsetsAndColumnsMayBeAnything) {
  const std::vector<std::vector<int>> offsets = {
      {0, 2, 4, 6, 8},     {3, 4, 4, 6, 7},
      {1, 1, 1, 1, 1},     {2, 5, 1, 6, 6},
      {-4, -1, 3, 90, 95}, {8, 6, 4, 2, 0},
      {0, 0, 0, 0, 0},     {-5, 3, 3, 3, 8},
      {5, 5, 6, 8, 9},     {INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MAX}};
  const std::vector<std::vector<int>> columns = {{0, 1, 2, 3, 4, 3, 2, 1},
                                                 {0, -1, 2, 5, 4, 3, INT32_MIN, INT32_MAX},
                                                 {-1, -1, -1, 0, 1, 2, 3, 9}};
  for (Type type : {Type::kF32, Type::kF16, Type::kC128, Type::kS8}) {
    for (const auto& rows : offsets) {
      for (const auto& places : columns) {
        ExpectAsOnHost("sparse_matmul",
                       {WholeNumbers(type, {8}, 1), Indices(places), Indices(rows),
                        WholeNumbers(type, {5, 3}, 2)},
                       {type, {4, 3}});
      }
    }
  }
}

// A column that is padding does not bring in what b holds.
TEST_F(CudaTargets, PaddingOfASparseMatrixMultipliesNothing) {
  if (Lacks("sparse_matmul")) GTEST_SKIP() << "there is no handler of sparse_matmul";
  Array b = WholeNumbers(Type::kF32, {2, 2}, 2);
  b.values[0] = std::numeric_limits<double>::infinity();
  const auto y = Call("CUDA", "sparse_matmul",
                      {WholeNumbers(Type::kF32, {2}, 1), Indices({-1, 2}), Indices({0, 2}), b},
                      {Type::kF32, {1, 2}});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT(*y, testing::Each(std::complex<double>(0)));
}

TEST_F(CudaTargets, EmptySparseMatricesGiveZeros) {
  const Array none{Type::kF32, {0}}, no_places{Type::kS32, {0}};
  const Array b = WholeNumbers(Type::kF32, {3, 2}, 1);
  ExpectAsOnHost("sparse_matmul", {none, no_places, Indices({0, 0, 0}), b}, {Type::kF32, {2, 2}});
  ExpectAsOnHost("sparse_matmul", {none, no_places, Indices({0}), b}, {Type::kF32, {0, 2}});
  ExpectAsOnHost(
      "sparse_matmul",
      {WholeNumbers(Type::kF32, {2}, 1), Indices({0, 1}), Indices({0, 1, 2}), {Type::kF32, {0, 2}}},
      {Type::kF32, {2, 2}});
}

TEST_F(CudaTargets, ASparseProductMayWriteOverItsMatrix) {
  ExpectAsOnHost("sparse_matmul",
                 {WholeNumbers(Type::kF32, {4}, 1), Indices({1, 2, 0, 1}), Indices({0, 2, 3, 4}),
                  WholeNumbers(Type::kF32, {3, 2}, 2)},
                 {Type::kF32, {3, 2}}, "", /*alias=*/3);
}

TEST_F(CudaTargets, SparseProductsRefuseWhatTheHostRefuses) {
  const Array values = WholeNumbers(Type::kF32, {2}, 1), b = WholeNumbers(Type::kF32, {3, 2}, 2);
  const Array y{Type::kF32, {1, 2}};
  ExpectErrorOfHost("sparse_matmul", {values, Indices({0, 1}), Indices({0, 2, 2}), b}, y, "E133");
  ExpectErrorOfHost("sparse_matmul", {values, Indices({0}), Indices({0, 2}), b}, y, "E133");
  ExpectErrorOfHost("sparse_matmul", {values, values, Indices({0, 2}), b}, y, "E134");
  ExpectErrorOfHost("sparse_matmul", {values, Indices({0, 1}), Indices({0, 2}), b}, y, "E131",
                    "{k = 1 : i64}");
}

TEST_F(CudaTargets, AnAllReduceOfOneDeviceIsItsOperand) {
  ExpectAsOnHost("nccl_allreduce", {WholeNumbers(Type::kF32, {3, 5}, 1)}, {Type::kF32, {3, 5}});
  ExpectAsOnHost("nccl_allreduce", {{Type::kF32, {0}}}, {Type::kF32, {0}});
  const Array x = WholeNumbers(Type::kF32, {3}, 1);
  ExpectErrorOfHost("nccl_allreduce", {x}, {Type::kF32, {4}}, "E133");
  ExpectErrorOfHost("nccl_allreduce", {x}, {Type::kF64, {3}}, "E134");
  ExpectErrorOfHost("nccl_allreduce", {x}, {Type::kF32, {3}}, "E131", "{op = \"mean\"}");
}

TEST_F(CudaTargets, AnAllReduceWithoutACommunicatorSaysSo) {
  const auto y =
      Call("CUDA", "nccl_allreduce", {WholeNumbers(Type::kF32, {3}, 1)}, {Type::kF32, {3}}, "", -1,
           [](HandlerContext& context) { context.num_devices = 2; });
  EXPECT_EQ(DiagnosticCode(y.status()), "E317");
  EXPECT_THAT(std::string(y.status().message()), HasSubstr("there is no communicator"));
}

}  // namespace
}  // namespace shardcall
