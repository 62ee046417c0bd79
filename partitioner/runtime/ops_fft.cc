// SPDX-License-Identifier: Apache-2.0
// fft over the trailing dimensions, computed in f64: a power of two by
// radix 2, any other length by Bluestein's chirp.
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include "partitioner/runtime/lower_op.h"
#include "partitioner/runtime/step_run.h"
#include "partitioner/runtime/strided.h"

namespace shardcall {
namespace {

using Complex = std::complex<double>;

Complex Unit(double numerator, double denominator) {
  const double angle = 2 * std::numbers::pi * numerator / denominator;
  return {std::cos(angle), std::sin(angle)};
}

void Radix2(std::vector<Complex>& x, int sign) {
  const size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  std::vector<Complex> roots(n / 2);
  for (size_t k = 0; k < n / 2; ++k) {
    roots[k] = Unit(sign * static_cast<double>(k), static_cast<double>(n));
  }
  for (size_t size = 2; size <= n; size *= 2) {
    for (size_t i = 0; i < n; i += size) {
      for (size_t k = 0; k < size / 2; ++k) {
        const Complex a = x[i + k], b = x[i + k + size / 2] * roots[k * (n / size)];
        x[i + k] = a + b;
        x[i + k + size / 2] = a - b;
      }
    }
  }
}

void Transform(std::vector<Complex>& x, int sign) {
  const size_t n = x.size();
  if (n <= 1) return;
  if ((n & (n - 1)) == 0) return Radix2(x, sign);
  size_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  std::vector<Complex> a(m), b(m), chirp(n);
  for (size_t k = 0; k < n; ++k) {
    // k^2 mod 2n keeps the angle small.
    chirp[k] = Unit(sign * static_cast<double>(k * k % (2 * n)), 2.0 * static_cast<double>(n));
    a[k] = x[k] * chirp[k];
    b[k] = std::conj(chirp[k]);
    if (k > 0) b[m - k] = b[k];
  }
  Radix2(a, 1);
  Radix2(b, 1);
  for (size_t k = 0; k < m; ++k) a[k] *= b[k];
  Radix2(a, -1);
  for (size_t k = 0; k < n; ++k) x[k] = a[k] / static_cast<double>(m) * chirp[k];
}

struct FftData : OpData {
  FftType type = FftType::kFft;
  int rank = 1;
};

// One dimension of [outer, n, inner], in place.
void TransformDim(std::vector<Complex>& x, int64_t outer, int64_t n, int64_t inner, int sign) {
  std::vector<Complex> line(n);
  for (int64_t a = 0; a < outer; ++a) {
    for (int64_t b = 0; b < inner; ++b) {
      Complex* base = x.data() + a * n * inner + b;
      for (int64_t i = 0; i < n; ++i) line[i] = base[i * inner];
      Transform(line, sign);
      for (int64_t i = 0; i < n; ++i) base[i * inner] = line[i];
    }
  }
}

void TransformDims(std::vector<Complex>& x, const Dims& dims, int first, int last, int sign) {
  for (int d = first; d < last; ++d) {
    TransformDim(x, Product(absl::MakeConstSpan(dims).first(d)), dims[d],
                 Product(absl::MakeConstSpan(dims).subspan(d + 1)), sign);
  }
}

template <typename R>
std::vector<Complex> Read(const Tensor& t) {
  std::vector<Complex> x(t.num_elements());
  const R* from = t.data<R>();
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = IsComplex(t.type()) ? Complex(from[2 * i], from[2 * i + 1]) : Complex(from[i], 0);
  }
  return x;
}
template <typename R>
void Write(const std::vector<Complex>& x, double scale, Tensor* t) {
  R* to = t->MutableData<R>();
  for (size_t i = 0; i < x.size(); ++i) {
    if (IsComplex(t->type())) {
      to[2 * i] = static_cast<R>(x[i].real() * scale);
      to[2 * i + 1] = static_cast<R>(x[i].imag() * scale);
    } else {
      to[i] = static_cast<R>(x[i].real() * scale);
    }
  }
}

// Lines of `from` elements cut or continued to lines of `to`: continued ones are
// the conjugates that a real signal's spectrum has.
std::vector<Complex> ResizeLines(const std::vector<Complex>& x, int64_t from, int64_t to,
                                 bool mirror) {
  const int64_t lines = from == 0 ? 0 : static_cast<int64_t>(x.size()) / from;
  std::vector<Complex> y(lines * to);
  for (int64_t l = 0; l < lines; ++l) {
    for (int64_t i = 0; i < to; ++i) {
      if (i < from) {
        y[l * to + i] = x[l * from + i];
      } else if (mirror && to - i < from) {
        y[l * to + i] = std::conj(x[l * from + to - i]);
      }
    }
  }
  return y;
}

absl::Status RunFft(StepRun& run) {
  const auto& data = run.data<FftData>();
  const Tensor& in = run.in(0);
  Tensor out = run.NewResult(0);
  const bool wide = in.type() == ElementType::kF64 || in.type() == ElementType::kC128;
  std::vector<Complex> x = wide ? Read<double>(in) : Read<float>(in);
  Dims dims = in.dims();
  const int rank = in.rank(), first = rank - data.rank;
  double scale = 1;
  if (out.num_elements() == 0) {
    run.Set(0, std::move(out));
    return absl::OkStatus();
  }
  switch (data.type) {
    case FftType::kFft:
      TransformDims(x, dims, first, rank, -1);
      break;
    case FftType::kIfft:
      TransformDims(x, dims, first, rank, 1);
      scale = 1.0 / static_cast<double>(Product(absl::MakeConstSpan(dims).subspan(first)));
      break;
    case FftType::kRfft:
      TransformDims(x, dims, first, rank, -1);
      x = ResizeLines(x, dims.back(), out.dims().back(), false);
      break;
    case FftType::kIrfft: {
      // The last dimension at the end: what comes before it is complex, and the
      // imaginary part of a real line's ends is ignored.
      TransformDims(x, dims, first, rank - 1, 1);
      const int64_t n = out.dims().back(), half = dims.back();
      for (size_t l = 0; l * half < x.size(); ++l) {
        x[l * half].imag(0);
        if (n % 2 == 0 && half - 1 == n / 2) x[l * half + half - 1].imag(0);
      }
      x = ResizeLines(x, half, n, true);
      dims.back() = n;
      TransformDims(x, dims, rank - 1, rank, 1);
      scale = 1.0 / static_cast<double>(Product(absl::MakeConstSpan(dims).subspan(first)));
    }
  }
  wide ? Write<double>(x, scale, &out) : Write<float>(x, scale, &out);
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerFft(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<FftAttrs>();
  const Shape& in = *context.operand_shape(0);
  const LeafShape& out = step->shapes[0];
  auto data = std::make_unique<FftData>();
  data->type = attrs.type;
  data->rank = static_cast<int>(attrs.length.size());
  if (data->rank < 1 || data->rank > in.rank() || out.dims.size() != in.dims().size()) {
    return context.Error("E311", "fft_length does not fit the operand");
  }
  const Dims signal = attrs.type == FftType::kIrfft ? out.dims : ToDims(in.dims());
  const int64_t spectrum = attrs.type == FftType::kIrfft ? in.dims().back() : out.dims.back();
  for (int k = 0; k < data->rank; ++k) {
    if (signal[in.rank() - data->rank + k] != attrs.length[k]) {
      return context.Error("E311", "fft_length does not fit the operand");
    }
  }
  const bool real = attrs.type == FftType::kRfft || attrs.type == FftType::kIrfft;
  if (spectrum != (real ? attrs.length.back() / 2 + 1 : attrs.length.back())) {
    return context.Error("E311", "the last dimension does not fit fft_length");
  }
  const bool in_real = attrs.type == FftType::kRfft, out_real = attrs.type == FftType::kIrfft;
  if (IsComplex(in.element_type()) == in_real || IsComplex(out.type) == out_real ||
      ElementTypeBits(in.element_type()) < 32) {
    return context.Unimplemented("a transform of these element types");
  }
  step->fn = RunFft;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace shardcall
