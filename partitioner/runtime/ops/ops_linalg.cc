// SPDX-License-Identifier: Apache-2.0
// cholesky and triangular-solve over batches of matrices, computed in f64.
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/float_arrays.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"

namespace shardcall {
inline namespace internal {
namespace {

using Complex = std::complex<double>;

struct CholeskyData : OpData {
  bool lower = false;
};

// Reads one triangle; the other triangle of the result is zero. A matrix that is not positive
// definite gives NaN.
absl::Status RunCholesky(StepRun& run) {
  const bool lower = run.data<CholeskyData>().lower;
  const Tensor& in = run.in(0);
  const int64_t n = in.dims().back();
  const int64_t count = n == 0 ? 0 : in.num_elements() / (n * n);
  const std::vector<Complex> a = ToComplexes(in);
  std::vector<Complex> out(a.size());
  for (int64_t m = 0; m < count; ++m) {
    const Complex* x = a.data() + m * n * n;
    Complex* l = out.data() + m * n * n;
    auto element = [&](int64_t i, int64_t j) {  // of the lower triangle
      return lower ? x[i * n + j] : std::conj(x[j * n + i]);
    };
    std::vector<Complex> f(n * n);
    bool fails = false;
    for (int64_t j = 0; j < n && !fails; ++j) {
      double diagonal = element(j, j).real();
      for (int64_t k = 0; k < j; ++k) diagonal -= std::norm(f[j * n + k]);
      fails = !(diagonal > 0);
      const double root = std::sqrt(diagonal);
      f[j * n + j] = root;
      for (int64_t i = j + 1; i < n; ++i) {
        Complex sum = element(i, j);
        for (int64_t k = 0; k < j; ++k) sum -= f[i * n + k] * std::conj(f[j * n + k]);
        f[i * n + j] = sum / root;
      }
    }
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        const Complex value = fails ? Complex(kNaN, 0) : f[i * n + j];
        l[lower ? i * n + j : j * n + i] = lower ? value : std::conj(value);
      }
    }
  }
  run.Set(0, FromComplexes(run.shape(0).type, run.shape(0).dims, out));
  return absl::OkStatus();
}

struct TriangularSolveData : OpData {
  bool left_side = false, lower = false, unit_diagonal = false, transpose = false,
       conjugate = false;
};

absl::Status RunTriangularSolve(StepRun& run) {
  const auto& data = run.data<TriangularSolveData>();
  const int64_t n = run.in(0).dims().back();
  const Dims& dims = run.shape(0).dims;
  const int64_t rows = dims[dims.size() - 2], columns = dims.back();
  const int64_t count = rows * columns == 0 ? 0 : run.in(1).num_elements() / (rows * columns);
  const std::vector<Complex> a = ToComplexes(run.in(0));
  std::vector<Complex> b = ToComplexes(run.in(1));
  // op(A) X = B with op(A) lower or upper; X op(A) = B is op(A)^T X^T = B^T.
  const bool flip = data.transpose != !data.left_side;
  const bool lower = data.lower != flip;
  const int64_t systems = data.left_side ? columns : rows;
  for (int64_t m = 0; m < count; ++m) {
    const Complex* matrix = a.data() + m * n * n;
    auto coefficient = [&](int64_t i, int64_t j) {
      const Complex v = flip ? matrix[j * n + i] : matrix[i * n + j];
      return data.conjugate ? std::conj(v) : v;
    };
    for (int64_t s = 0; s < systems; ++s) {
      Complex* x = b.data() + m * rows * columns + (data.left_side ? s : s * columns);
      const int64_t stride = data.left_side ? columns : 1;
      for (int64_t step = 0; step < n; ++step) {
        const int64_t i = lower ? step : n - 1 - step;
        Complex sum = x[i * stride];
        for (int64_t k = 0; k < step; ++k) {
          const int64_t j = lower ? k : n - 1 - k;
          sum -= coefficient(i, j) * x[j * stride];
        }
        x[i * stride] = data.unit_diagonal ? sum : sum / coefficient(i, i);
      }
    }
  }
  run.Set(0, FromComplexes(run.shape(0).type, dims, b));
  return absl::OkStatus();
}

bool IsSquare(const Shape& shape) {
  return shape.rank() >= 2 && shape.dim(shape.rank() - 1) == shape.dim(shape.rank() - 2);
}
bool IsNumber(const Shape& shape) {
  return IsFloat(shape.element_type()) || IsComplex(shape.element_type());
}

}  // namespace

absl::Status LowerCholesky(const LowerContext& context, Step* step) {
  const Shape& in = *context.operand_shape(0);
  if (!IsSquare(in)) return context.Error("E311", "the matrices are not square");
  if (!IsNumber(in)) return context.Unimplemented("a decomposition of this element type");
  auto data = std::make_unique<CholeskyData>();
  data->lower = context.attrs<CholeskyAttrs>().lower;
  step->fn = RunCholesky;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerTriangularSolve(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<TriangularSolveAttrs>();
  const Shape& a = *context.operand_shape(0);
  const Shape& b = *context.operand_shape(1);
  bool fits = IsSquare(a) && b.rank() == a.rank();
  for (int k = 0; fits && k < a.rank() - 2; ++k) fits = a.dim(k) == b.dim(k);
  if (!fits || b.dim(b.rank() - (attrs.left_side ? 2 : 1)) != a.dim(a.rank() - 1)) {
    return context.Error("E311", "the operands do not fit together");
  }
  if (!IsNumber(a) || !IsNumber(b)) return context.Unimplemented("a solve of this element type");
  auto data = std::make_unique<TriangularSolveData>();
  data->left_side = attrs.left_side;
  data->lower = attrs.lower;
  data->unit_diagonal = attrs.unit_diagonal;
  data->transpose = attrs.transpose_a == "TRANSPOSE" || attrs.transpose_a == "ADJOINT";
  data->conjugate = attrs.transpose_a == "ADJOINT";
  step->fn = RunTriangularSolve;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
