// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/host/fft.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/kernels.h"
#include "shardcall/kernels/math/fft_plan.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

int64_t Product(absl::Span<const int64_t> dims) {
  int64_t p = 1;
  for (int64_t d : dims) p *= d;
  return p;
}

// Transforms one dimension of [outer, n, inner], in place.
void TransformDim(std::vector<FftNumber>& x, int64_t outer, int64_t n, int64_t inner,
                  bool inverse) {
  if (n <= 1) return;
  FftPlan plan(n);
  std::vector<FftNumber> line(inner == 1 ? 0 : n);
  for (int64_t a = 0; a < outer; ++a) {
    for (int64_t b = 0; b < inner; ++b) {
      FftNumber* base = x.data() + a * n * inner + b;
      if (inner == 1) {
        plan.Run(base, inverse);
        continue;
      }
      for (int64_t i = 0; i < n; ++i) line[i] = base[i * inner];
      plan.Run(line.data(), inverse);
      for (int64_t i = 0; i < n; ++i) base[i * inner] = line[i];
    }
  }
}

void TransformDims(std::vector<FftNumber>& x, absl::Span<const int64_t> dims, int first, int last,
                   bool inverse) {
  for (int d = first; d < last; ++d) {
    TransformDim(x, Product(dims.first(d)), dims[d], Product(dims.subspan(d + 1)), inverse);
  }
}

template <typename R>
std::vector<FftNumber> Read(const R* from, int64_t count, bool complex) {
  std::vector<FftNumber> x(count);
  for (int64_t i = 0; i < count; ++i) {
    x[i] = complex ? FftNumber{from[2 * i], from[2 * i + 1]} : FftNumber{from[i], 0};
  }
  return x;
}
template <typename R>
void Write(const std::vector<FftNumber>& x, double scale, bool complex, R* to) {
  for (size_t i = 0; i < x.size(); ++i) {
    if (complex) {
      to[2 * i] = static_cast<R>(x[i].re * scale);
      to[2 * i + 1] = static_cast<R>(x[i].im * scale);
    } else {
      to[i] = static_cast<R>(x[i].re * scale);
    }
  }
}

// Truncates or extends lines of `from` elements to `to`; the new elements are the conjugates that
// the spectrum of a real signal has.
std::vector<FftNumber> ResizeLines(const std::vector<FftNumber>& x, int64_t from, int64_t to) {
  const int64_t lines = from == 0 ? 0 : static_cast<int64_t>(x.size()) / from;
  std::vector<FftNumber> y(lines * to);
  for (int64_t l = 0; l < lines; ++l) {
    for (int64_t i = 0; i < to; ++i) {
      if (i < from) {
        y[l * to + i] = x[l * from + i];
      } else if (to - i < from) {
        const FftNumber& mirrored = x[l * from + to - i];
        y[l * to + i] = {mirrored.re, -mirrored.im};
      }
    }
  }
  return y;
}

}  // namespace

const char* CheckFft(const FftShape& shape, absl::Span<const int64_t> lengths) {
  const bool in_real = shape.kind == FftKind::kRealForward;
  const bool out_real = shape.kind == FftKind::kRealInverse;
  const size_t rank = shape.in_dims.size();
  if (IsComplex(shape.in_type) == in_real || IsComplex(shape.out_type) == out_real ||
      !(IsComplex(shape.in_type) || IsFloat(shape.in_type)) ||
      !(IsComplex(shape.out_type) || IsFloat(shape.out_type)) ||
      ElementTypeBits(shape.in_type) < 32 || ElementTypeBits(shape.out_type) < 32) {
    return "these element types are not transformed";
  }
  if (lengths.empty() || lengths.size() > rank || shape.out_dims.size() != rank) {
    return "fft_length does not fit the operand";
  }
  const size_t first = rank - lengths.size();
  const absl::Span<const int64_t> signal = out_real ? shape.out_dims : shape.in_dims;
  const absl::Span<const int64_t> spectrum = out_real ? shape.in_dims : shape.out_dims;
  for (size_t k = 0; k < rank; ++k) {
    if (k >= first && signal[k] != lengths[k - first]) return "fft_length does not fit the operand";
    if (k + 1 < rank && signal[k] != spectrum[k]) return "operand and result differ in a dimension";
  }
  const int64_t n = lengths.back();
  // The spectrum of an empty line is empty.
  const int64_t expected = in_real || out_real ? n / 2 + 1 : n;
  if (spectrum.back() != expected && !(n == 0 && spectrum.back() == 0)) {
    return "the last dimension does not fit fft_length";
  }
  return nullptr;
}

void RunFft(const FftShape& shape, const void* in, void* out) {
  const int64_t count = Product(shape.in_dims);
  const int rank = static_cast<int>(shape.in_dims.size()), first = rank - shape.rank;
  if (count == 0 || Product(shape.out_dims) == 0) {
    std::fill_n(static_cast<char*>(out), Product(shape.out_dims) * ElementTypeBytes(shape.out_type),
                char{0});
    return;
  }
  const bool in_complex = IsComplex(shape.in_type);
  std::vector<FftNumber> x = ElementTypeBits(shape.in_type) == (in_complex ? 128 : 64)
                                 ? Read(static_cast<const double*>(in), count, in_complex)
                                 : Read(static_cast<const float*>(in), count, in_complex);
  std::vector<int64_t> dims(shape.in_dims.begin(), shape.in_dims.end());
  double scale = 1;
  switch (shape.kind) {
    case FftKind::kForward:
    case FftKind::kInverse:
      TransformDims(x, dims, first, rank, shape.kind == FftKind::kInverse);
      break;
    case FftKind::kRealForward: {
      // The last dimension first, so that the others only transform its half spectrum.
      TransformDims(x, dims, rank - 1, rank, false);
      x = ResizeLines(x, dims.back(), shape.out_dims.back());
      dims.back() = shape.out_dims.back();
      TransformDims(x, dims, first, rank - 1, false);
      break;
    }
    case FftKind::kRealInverse: {
      // The last dimension comes last: its input is complex, and the imaginary parts at the ends of
      // a real line's spectrum are ignored.
      TransformDims(x, dims, first, rank - 1, true);
      const int64_t n = shape.out_dims.back(), half = dims.back();
      for (size_t l = 0; l * half < x.size(); ++l) {
        x[l * half].im = 0;
        if (n % 2 == 0 && half - 1 == n / 2) x[l * half + half - 1].im = 0;
      }
      x = ResizeLines(x, half, n);
      dims.back() = n;
      TransformDims(x, dims, rank - 1, rank, true);
      break;
    }
  }
  if (shape.kind == FftKind::kInverse || shape.kind == FftKind::kRealInverse) {
    scale = 1.0 / static_cast<double>(Product(absl::MakeConstSpan(dims).subspan(first)));
  }
  const bool out_complex = IsComplex(shape.out_type);
  if (ElementTypeBits(shape.out_type) == (out_complex ? 128 : 64)) {
    Write(x, scale, out_complex, static_cast<double*>(out));
  } else {
    Write(x, scale, out_complex, static_cast<float*>(out));
  }
}

absl::Status Fft(const HandlerContext& context, absl::Span<const BufferView> operands,
                 absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"x"}, {"y"});
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(args.CheckLeastRank(Operand(0), 1));
  SHARDCALL_RETURN_IF_ERROR(args.CheckLeastRank(Result(0), 1));
  const AttributeMapView& attributes = context.attribute_map();
  SHARDCALL_RETURN_IF_ERROR(args.Located(attributes.OnlyKnown({"fft_type", "fft_length"})));
  SHARDCALL_ASSIGN_ATTRIBUTE(const std::string type, args, attributes.GetString("fft_type", "FFT"));
  static constexpr absl::string_view kNames[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  const auto* name = std::find(std::begin(kNames), std::end(kNames), type);
  if (name == std::end(kNames)) {
    return args.AttributeError("fft_type", "FFT, IFFT, RFFT or IRFFT", type);
  }
  FftShape shape;
  shape.kind = static_cast<FftKind>(name - std::begin(kNames));
  shape.in_type = operands[0].type, shape.out_type = results[0].type;
  shape.in_dims = operands[0].dims, shape.out_dims = results[0].dims;
  const int64_t last =
      shape.kind == FftKind::kRealInverse ? shape.out_dims.back() : shape.in_dims.back();
  SHARDCALL_ASSIGN_ATTRIBUTE(const std::vector<int64_t> lengths, args,
                             attributes.GetInts("fft_length", {last}));
  shape.rank = static_cast<int>(lengths.size());
  if (const char* wrong = CheckFft(shape, lengths); wrong != nullptr) {
    return args.ShapeError(Result(0), absl::StrCat("that of a transform of ",
                                                   operands[0].ToString(), " (", wrong, ")"));
  }
  RunFft(shape, operands[0].data, results[0].data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
