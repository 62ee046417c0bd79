// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms of one length, in f64: mixed radix if all prime factors are small,
// otherwise Bluestein's algorithm. So any length takes O(n log n).
#ifndef SHARDCALL_KERNELS_MATH_FFT_PLAN_H_
#define SHARDCALL_KERNELS_MATH_FFT_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

namespace shardcall {
inline namespace internal {

struct FftNumber {
  double re = 0, im = 0;
};

// Not thread-safe: a plan holds the scratch memory of its transforms.
class FftPlan {
 public:
  explicit FftPlan(int64_t length);

  int64_t length() const { return n_; }
  // x[k] = sum over i of x[i] exp(-+ 2 pi i k / n), not scaled; the upper sign unless `inverse`.
  void Run(FftNumber* x, bool inverse);

 private:
  void MixedRadix(FftNumber* x, bool inverse);
  void Chirp(FftNumber* x, bool inverse);

  int64_t n_;
  std::vector<int64_t> radices_;  // empty: Bluestein
  std::vector<FftNumber> roots_;  // exp(-2 pi i k / n)
  std::vector<FftNumber> scratch_;
  // For Bluestein: a convolution whose length is a power of two.
  std::unique_ptr<FftPlan> convolution_;
  std::vector<FftNumber> chirp_, chirp_spectrum_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_MATH_FFT_PLAN_H_
