// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/math/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kLargestRadix = 31;

FftNumber operator+(FftNumber a, FftNumber b) { return {a.re + b.re, a.im + b.im}; }
FftNumber operator-(FftNumber a, FftNumber b) { return {a.re - b.re, a.im - b.im}; }
FftNumber operator*(FftNumber a, FftNumber b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
FftNumber operator*(double a, FftNumber b) { return {a * b.re, a * b.im}; }
FftNumber Conjugate(FftNumber a) { return {a.re, -a.im}; }
// a * -i, or a * i for an inverse transform.
template <bool kInverse>
FftNumber QuarterTurn(FftNumber a) {
  return kInverse ? FftNumber{-a.im, a.re} : FftNumber{a.im, -a.re};
}

// exp(-2 pi i k / n). The angle is reduced to the first eighth of a turn, where sine and cosine are
// most accurate.
FftNumber Root(int64_t k, int64_t n) {
  const int64_t eighth = 8 * k / n;  // 0 to 7
  // Distance to the nearest quarter, as a fraction of a turn: r / (4 n).
  const int64_t quarter = (eighth + 1) / 2;
  const double angle = 2 * std::numbers::pi * static_cast<double>(4 * k - quarter * n) /
                       (4 * static_cast<double>(n));
  const double c = std::cos(angle), s = std::sin(angle);
  switch (quarter % 4) {
    case 0: return {c, -s};
    case 1: return {-s, -c};
    case 2: return {-c, s};
    default: return {s, c};
  }
}

// One stage over p * m blocks of s: y[r + s (p q + j)] is output j of the
// p-point transform of x[r + s (q + m k)], times w^(q j), w = roots[s].
template <bool kInverse>
void Stage(int64_t p, int64_t m, int64_t s, const std::vector<FftNumber>& roots, const FftNumber* x,
           FftNumber* y) {
  const int64_t n = static_cast<int64_t>(roots.size());
  auto root = [&](int64_t k) { return kInverse ? Conjugate(roots[k]) : roots[k]; };
  for (int64_t q = 0; q < m; ++q) {
    const FftNumber* in = x + s * q;
    FftNumber* out = y + s * p * q;
    const int64_t step = s * m;
    if (p == 2) {
      const FftNumber w = root(s * q);
      for (int64_t r = 0; r < s; ++r) {
        const FftNumber a = in[r], b = in[r + step];
        out[r] = a + b;
        out[r + s] = w * (a - b);
      }
    } else if (p == 4) {
      const FftNumber w1 = root(s * q), w2 = root(2 * s * q), w3 = root(3 * s * q);
      for (int64_t r = 0; r < s; ++r) {
        const FftNumber a = in[r], b = in[r + step], c = in[r + 2 * step], d = in[r + 3 * step];
        const FftNumber even = a + c, odd = b + d, low = a - c, high = QuarterTurn<kInverse>(b - d);
        out[r] = even + odd;
        out[r + s] = w1 * (low + high);
        out[r + 2 * s] = w2 * (even - odd);
        out[r + 3 * s] = w3 * (low - high);
      }
    } else if (p == 3) {
      const FftNumber w1 = root(s * q), w2 = root(2 * s * q);
      const double half = std::numbers::sqrt3 / 2;
      for (int64_t r = 0; r < s; ++r) {
        const FftNumber a = in[r], sum = in[r + step] + in[r + 2 * step];
        const FftNumber middle = a - 0.5 * sum;
        const FftNumber turn = half * QuarterTurn<kInverse>(in[r + step] - in[r + 2 * step]);
        out[r] = a + sum;
        out[r + s] = w1 * (middle + turn);
        out[r + 2 * s] = w2 * (middle - turn);
      }
    } else {  // any prime: sums over mirrored pairs
      const int64_t pairs = (p - 1) / 2;
      for (int64_t r = 0; r < s; ++r) {
        FftNumber sums[kLargestRadix / 2 + 1], differences[kLargestRadix / 2 + 1];
        FftNumber total = in[r];
        for (int64_t k = 1; k <= pairs; ++k) {
          sums[k] = in[r + k * step] + in[r + (p - k) * step];
          differences[k] = QuarterTurn<kInverse>(in[r + k * step] - in[r + (p - k) * step]);
          total = total + sums[k];
        }
        out[r] = total;
        for (int64_t j = 1; j <= pairs; ++j) {
          FftNumber middle = in[r], turn;
          for (int64_t k = 1; k <= pairs; ++k) {
            const FftNumber w = roots[k * j % p * (n / p)];
            middle = middle + w.re * sums[k];
            turn = turn + (-w.im) * differences[k];
          }
          out[r + j * s] = root(s * q * j) * (middle + turn);
          out[r + (p - j) * s] = root(s * q * (p - j)) * (middle - turn);
        }
      }
    }
  }
}

}  // namespace

FftPlan::FftPlan(int64_t length) : n_(length) {
  if (n_ <= 1) return;
  int64_t rest = n_;
  for (; rest % 4 == 0; rest /= 4) radices_.push_back(4);
  for (int64_t p = 2; p <= kLargestRadix && rest > 1; ++p) {
    for (; rest % p == 0; rest /= p) radices_.push_back(p);
  }
  if (rest == 1) {
    roots_.resize(n_);
    for (int64_t k = 0; k < n_; ++k) roots_[k] = Root(k, n_);
    scratch_.resize(n_);
    return;
  }
  radices_.clear();
  int64_t m = 1;
  while (m < 2 * n_ - 1) m *= 2;
  convolution_ = std::make_unique<FftPlan>(m);
  chirp_.resize(n_);
  chirp_spectrum_.assign(m, {});
  scratch_.resize(m);
  int64_t square = 0;  // k^2 mod 2n
  for (int64_t k = 0; k < n_; ++k) {
    chirp_[k] = Root(square, 2 * n_);
    chirp_spectrum_[k] = Conjugate(chirp_[k]);
    if (k > 0) chirp_spectrum_[m - k] = chirp_spectrum_[k];
    square = (square + 2 * k + 1) % (2 * n_);
  }
  convolution_->Run(chirp_spectrum_.data(), false);
  for (FftNumber& v : chirp_spectrum_) v = (1.0 / static_cast<double>(m)) * v;
}

void FftPlan::MixedRadix(FftNumber* x, bool inverse) {
  FftNumber *from = x, *to = scratch_.data();
  int64_t left = n_, s = 1;
  for (int64_t p : radices_) {
    left /= p;
    inverse ? Stage<true>(p, left, s, roots_, from, to)
            : Stage<false>(p, left, s, roots_, from, to);
    s *= p;
    std::swap(from, to);
  }
  if (from != x) std::copy(from, from + n_, x);
}

// An inverse transform is a forward one with conjugated input and output.
void FftPlan::Chirp(FftNumber* x, bool inverse) {
  const int64_t m = convolution_->length();
  for (int64_t k = 0; k < n_; ++k) scratch_[k] = (inverse ? Conjugate(x[k]) : x[k]) * chirp_[k];
  std::fill(scratch_.begin() + n_, scratch_.end(), FftNumber{});
  convolution_->Run(scratch_.data(), false);
  for (int64_t k = 0; k < m; ++k) scratch_[k] = scratch_[k] * chirp_spectrum_[k];
  convolution_->Run(scratch_.data(), true);
  for (int64_t k = 0; k < n_; ++k) {
    const FftNumber y = scratch_[k] * chirp_[k];
    x[k] = inverse ? Conjugate(y) : y;
  }
}

void FftPlan::Run(FftNumber* x, bool inverse) {
  if (n_ <= 1) return;
  convolution_ != nullptr ? Chirp(x, inverse) : MixedRadix(x, inverse);
}

}  // namespace internal
}  // namespace shardcall
