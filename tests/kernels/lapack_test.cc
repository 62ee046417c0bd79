// SPDX-License-Identifier: Apache-2.0
// The LAPACK targets in their four types: factors are multiplied together again.
#include <complex>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/kernels/host/lapack/call.h"
#include "tests/kernels/kernel_test_util.h"

namespace shardcall {
namespace {

using lapack::kIsComplex;
using lapack::Real;
using lapack::TypeOf;

constexpr int64_t kBatch = 3;

// A batch of column-major matrices; vectors have one column.
template <typename T>
struct Matrices {
  int64_t m, n;
  std::vector<T> values;
  Matrices(int64_t rows, int64_t columns) : m(rows), n(columns), values(kBatch * rows * columns) {}
  T& at(int64_t b, int64_t i, int64_t j) { return values[(b * n + j) * m + i]; }
  BufferView matrix() { return {TypeOf<T>(), {kBatch, m, n}, values.data()}; }
  BufferView vector() { return {TypeOf<T>(), {kBatch, m * n}, values.data()}; }
};

struct Integers {
  std::vector<int32_t> values;
  int64_t n;  // per matrix; 0: one, without a dimension
  explicit Integers(int64_t count = 0)
      : values(kBatch * std::max<int64_t>(1, count), 77), n(count) {}
  BufferView view() {
    std::vector<int64_t> dims = {kBatch};
    if (n > 0) dims.push_back(n);
    return {ElementType::kS32, dims, values.data()};
  }
};

absl::Status CallTarget(absl::string_view target, std::vector<BufferView> operands,
                        std::vector<BufferView> results, absl::string_view attributes = "{}") {
  HandlerRegistry registry;
  SHARDCALL_RETURN_IF_ERROR(RegisterBuiltinHandlers(registry));
  SHARDCALL_ASSIGN_OR_RETURN(const HandlerEntry* entry, registry.Find(target, "Host"));
  SHARDCALL_ASSIGN_OR_RETURN(const AttributeMapView map, AttributeMapView::Parse(attributes));
  HandlerContext context;
  context.target = target;
  context.attributes = &map;
  return entry->host(context, operands, results);
}

template <typename T>
T Conjugate(T x) {
  if constexpr (kIsComplex<T>) return std::conj(x);
  return x;
}

template <typename T>
class Lapack : public ::testing::Test {
 protected:
  static constexpr Real<T> kLimit = 200 * std::numeric_limits<Real<T>>::epsilon();
  static std::string Name(absl::string_view real, absl::string_view complex = "") {
    const char letter = std::is_same_v<T, float>    ? 's'
                        : std::is_same_v<T, double> ? 'd'
                        : sizeof(T) == 8            ? 'c'
                                                    : 'z';
    return absl::StrCat("lapack_", std::string(1, letter),
                        kIsComplex<T> && !complex.empty() ? complex : real, "_ffi");
  }
  static Matrices<T> Random(int64_t m, int64_t n, int seed = 1) {
    Matrices<T> a(m, n);
    std::mt19937_64 rng(seed);
    std::normal_distribution<Real<T>> normal;
    for (T& v : a.values) {
      if constexpr (kIsComplex<T>) {
        v = {normal(rng), normal(rng)};
      } else {
        v = normal(rng);
      }
    }
    return a;
  }
  // a a^H + n I.
  static Matrices<T> Positive(int64_t n) {
    Matrices<T> a = Random(n, n), p(n, n);
    for (int64_t b = 0; b < kBatch; ++b) {
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          for (int64_t k = 0; k < n; ++k) p.at(b, i, j) += a.at(b, i, k) * Conjugate(a.at(b, j, k));
          if (i == j) p.at(b, i, j) = std::real(p.at(b, i, j)) + static_cast<Real<T>>(n);
        }
      }
    }
    return p;
  }
};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Lapack, Types);

TYPED_TEST(Lapack, LowerTimesUpperIsTheMatrixWithItsRowsExchanged) {
  using T = TypeParam;
  Matrices<T> a = this->Random(4, 3), lu(4, 3);
  Integers pivots(3), info;
  ASSERT_TRUE(
      CallTarget(this->Name("getrf"), {a.matrix()}, {lu.matrix(), pivots.view(), info.view()})
          .ok());
  for (int64_t b = 0; b < kBatch; ++b) {
    EXPECT_EQ(info.values[b], 0);
    for (int64_t k = 0; k < 3; ++k) {
      const int64_t other = pivots.values[b * 3 + k] - 1;
      for (int64_t j = 0; j < 3; ++j) std::swap(a.at(b, k, j), a.at(b, other, j));
    }
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        T sum = 0;
        for (int64_t k = 0; k <= std::min(i, j); ++k) {
          sum += (k == i ? T(1) : lu.at(b, i, k)) * lu.at(b, k, j);
        }
        EXPECT_LE(std::abs(sum - a.at(b, i, j)), this->kLimit);
      }
    }
  }
}

TYPED_TEST(Lapack, ASingularMatrixIsReportedInItsOwnStatus) {
  using T = TypeParam;
  Matrices<T> a = this->Random(3, 3);
  for (int64_t j = 0; j < 3; ++j) a.at(1, 0, j) = a.at(1, 1, j) = a.at(1, 2, j) = 0;
  Integers pivots(3), info;
  // In place: the result is the operand's buffer.
  ASSERT_TRUE(
      CallTarget(this->Name("getrf"), {a.matrix()}, {a.matrix(), pivots.view(), info.view()}).ok());
  EXPECT_THAT(info.values, ::testing::ElementsAre(0, 1, 0));
}

TYPED_TEST(Lapack, OrthogonalTimesUpperIsTheMatrix) {
  using T = TypeParam;
  Matrices<T> a = this->Random(5, 3), qr(5, 3), tau(3, 1), q(5, 3);
  ASSERT_TRUE(CallTarget(this->Name("geqrf"), {a.matrix()}, {qr.matrix(), tau.vector()}).ok());
  ASSERT_TRUE(
      CallTarget(this->Name("orgqr", "ungqr"), {qr.matrix(), tau.vector()}, {q.matrix()}).ok());
  // The same by ormqr: Q applied to R in the upper rows.
  Matrices<T> product(5, 3);
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = i; j < 3; ++j) product.at(b, i, j) = qr.at(b, i, j);
    }
  }
  ASSERT_TRUE(CallTarget(this->Name("ormqr", "unmqr"),
                         {qr.matrix(), tau.vector(), product.matrix()}, {product.matrix()},
                         "{left = true, transpose = false}")
                  .ok());
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        T sum = 0;
        for (int64_t k = 0; k <= j; ++k) sum += q.at(b, i, k) * qr.at(b, k, j);
        EXPECT_LE(std::abs(sum - a.at(b, i, j)), this->kLimit);
        EXPECT_LE(std::abs(product.at(b, i, j) - a.at(b, i, j)), this->kLimit);
      }
    }
  }
}

TYPED_TEST(Lapack, ACholeskyFactorTimesItsAdjointIsTheMatrix) {
  using T = TypeParam;
  Matrices<T> a = this->Positive(4), f(4, 4);
  a.at(2, 3, 3) = -1;
  Integers info;
  ASSERT_TRUE(
      CallTarget(this->Name("potrf"), {a.matrix()}, {f.matrix(), info.view()}, "{uplo = 76 : ui8}")
          .ok());
  EXPECT_THAT(info.values, ::testing::ElementsAre(0, 0, 4));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        T sum = 0;
        for (int64_t k = 0; k <= j; ++k) sum += f.at(b, i, k) * Conjugate(f.at(b, j, k));
        EXPECT_LE(std::abs(sum - a.at(b, i, j)), 20 * this->kLimit);
      }
    }
  }
}

TYPED_TEST(Lapack, EigenvectorsAreStretchedByTheirValues) {
  using T = TypeParam;
  Matrices<T> a = this->Positive(4), v(4, 4);
  Matrices<Real<T>> w(4, 1);
  Integers info;
  ASSERT_TRUE(CallTarget(this->Name("syevd", "heevd"), {a.matrix()},
                         {v.matrix(), w.vector(), info.view()},
                         "{mode = 86 : ui8, uplo = 85 : ui8}")
                  .ok());
  for (int64_t b = 0; b < kBatch; ++b) {
    EXPECT_EQ(info.values[b], 0);
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 4; ++j) {
        T sum = 0;
        for (int64_t k = 0; k < 4; ++k) sum += a.at(b, i, k) * v.at(b, k, j);
        EXPECT_LE(std::abs(sum - v.at(b, i, j) * w.at(b, j, 0)), 20 * this->kLimit);
      }
    }
  }
}

TYPED_TEST(Lapack, GeneralEigenvectorsAreComplexColumnsOfTheirValues) {
  using T = TypeParam;
  using C = std::complex<Real<T>>;
  Matrices<T> a = this->Random(5, 5), wr(5, 1), wi(5, 1);
  a.at(1, 0, 0) = std::numeric_limits<Real<T>>::quiet_NaN();
  Matrices<C> vl(5, 5), vr(5, 5);
  Integers info;
  std::vector<BufferView> results = {wr.vector(), vl.matrix(), vr.matrix(), info.view()};
  if (!kIsComplex<T>) results.insert(results.begin() + 1, wi.vector());
  ASSERT_TRUE(CallTarget(this->Name("geev"), {a.matrix()}, results,
                         "{compute_left = 78 : ui8, compute_right = 86 : ui8}")
                  .ok());
  EXPECT_THAT(info.values, ::testing::ElementsAre(0, -4, 0));
  EXPECT_TRUE(std::isnan(std::real(vr.at(1, 2, 2))));
  for (int64_t b : {0, 2}) {
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        C sum = 0, value = wr.at(b, j, 0);
        if (!kIsComplex<T>) value = C(std::real(wr.at(b, j, 0)), std::real(wi.at(b, j, 0)));
        for (int64_t k = 0; k < 5; ++k) sum += C(a.at(b, i, k)) * vr.at(b, k, j);
        EXPECT_LE(std::abs(sum - vr.at(b, i, j) * value), 20 * this->kLimit);
        EXPECT_EQ(vl.at(b, i, j), C(0));
      }
    }
  }
}

TYPED_TEST(Lapack, SingularVectorsAndValuesMultiplyToTheMatrix) {
  using T = TypeParam;
  for (absl::string_view routine : {"gesdd", "gesvd"}) {
    for (auto [m, n] : {std::pair<int64_t, int64_t>{5, 3}, {3, 5}}) {
      for (bool full : {true, false}) {
        Matrices<T> a = this->Random(m, n), scratch(m, n), u(m, full ? m : 3), vt(full ? n : 3, n);
        Matrices<Real<T>> s(3, 1);
        Integers info;
        ASSERT_TRUE(CallTarget(this->Name(routine), {a.matrix()},
                               {scratch.matrix(), s.vector(), u.matrix(), vt.matrix(), info.view()},
                               absl::StrCat("{mode = ", full ? 65 : 83, " : ui8}"))
                        .ok());
        for (int64_t b = 0; b < kBatch; ++b) {
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              T sum = 0;
              for (int64_t k = 0; k < 3; ++k) sum += u.at(b, i, k) * s.at(b, k, 0) * vt.at(b, k, j);
              EXPECT_LE(std::abs(sum - a.at(b, i, j)), this->kLimit);
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(Lapack, TriangularAndTridiagonalSystemsAreSolved) {
  using T = TypeParam;
  Matrices<T> a = this->Positive(4), b = this->Random(4, 2, 5), x(4, 2);
  ASSERT_TRUE(CallTarget(this->Name("trsm"), {a.matrix(), b.matrix()}, {x.matrix()},
                         "{side = 76 : ui8, uplo = 76 : ui8, trans_x = 67 : ui8, diag = 78 : ui8}")
                  .ok());
  for (int64_t t = 0; t < kBatch; ++t) {
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        T sum = 0;
        for (int64_t k = i; k < 4; ++k) sum += Conjugate(a.at(t, k, i)) * x.at(t, k, j);
        EXPECT_LE(std::abs(sum - b.at(t, i, j)), this->kLimit);
      }
    }
  }
  Matrices<T> l = this->Random(4, 1, 6), d = this->Random(4, 1, 7), u = this->Random(4, 1, 8);
  Matrices<T> l2(4, 1), d2(4, 1), u2(4, 1);
  for (T& v : d.values) v += T(6);
  Integers info;
  ASSERT_TRUE(CallTarget(this->Name("gtsv"), {l.vector(), d.vector(), u.vector(), b.matrix()},
                         {l2.vector(), d2.vector(), u2.vector(), x.matrix(), info.view()})
                  .ok());
  for (int64_t t = 0; t < kBatch; ++t) {
    for (int64_t i = 0; i < 4; ++i) {
      T sum = d.at(t, i, 0) * x.at(t, i, 1);
      if (i > 0) sum += l.at(t, i, 0) * x.at(t, i - 1, 1);
      if (i < 3) sum += u.at(t, i, 0) * x.at(t, i + 1, 1);
      EXPECT_LE(std::abs(sum - b.at(t, i, 1)), this->kLimit);
    }
  }
}

TEST(LapackErrors, NameTheOperandAndTheAttribute) {
  Matrices<float> a(4, 3), square(3, 3);
  Integers info;
  ExpectError(
      CallTarget("lapack_spotrf_ffi", {a.matrix()}, {a.matrix(), info.view()}, "{uplo = 76 : ui8}"),
      "E133", {"operand 0 (a)", "square matrices", "f32[3,4,3]"});
  ExpectError(CallTarget("lapack_spotrf_ffi", {square.matrix()}, {square.matrix(), info.view()},
                         "{uplo = 80 : ui8}"),
              "E131", {"\"uplo\"", "L (76) or U (85)", "80"});
  ExpectError(CallTarget("lapack_spotrf_ffi", {square.matrix()}, {square.matrix(), info.view()}),
              "E131", {"\"uplo\"", "none"});
  ExpectError(CallTarget("lapack_dpotrf_ffi", {square.matrix()}, {square.matrix(), info.view()},
                         "{uplo = 76 : ui8}"),
              "E134", {"operand 0 (a)", "f64"});
  ExpectError(
      CallTarget("lapack_spotrf_ffi", {square.matrix()}, {square.matrix()}, "{uplo = 76 : ui8}"),
      "E132", {"result"});
  ExpectError(CallTarget("lapack_sgtsv_ffi", {a.vector()}, {a.vector()}), "E132",
              {"4 (dl, d, du, b)"});
}

TEST(LapackErrors, EmptyBatchesAndMatricesAreNoError) {
  std::vector<int32_t> none;
  BufferView a{ElementType::kF64, {0, 3, 3}, nullptr}, w{ElementType::kF64, {0, 3}, nullptr};
  BufferView info{ElementType::kS32, {0}, none.data()};
  EXPECT_TRUE(
      CallTarget("lapack_dsyevd_ffi", {a}, {a, w, info}, "{mode = 86 : ui8, uplo = 76 : ui8}")
          .ok());
  Integers status;
  BufferView empty{ElementType::kF64, {kBatch, 0, 0}, nullptr};
  EXPECT_TRUE(
      CallTarget("lapack_dpotrf_ffi", {empty}, {empty, status.view()}, "{uplo = 76 : ui8}").ok());
  EXPECT_THAT(status.values, ::testing::Each(0));
}

}  // namespace
}  // namespace shardcall
