// SPDX-License-Identifier: Apache-2.0
// Transforms of every length up to 70, and of some larger ones, against the sum
// that defines them.
#include <complex>
#include <numbers>

#include "shardcall/kernels/math/fft_plan.h"
#include "tests/kernels/kernel_test_util.h"

namespace shardcall {
namespace {

std::vector<FftNumber> Signal(int64_t n) {
  std::vector<FftNumber> x(n);
  std::mt19937_64 rng(n);
  std::normal_distribution<double> normal;
  for (FftNumber& v : x) v = {normal(rng), normal(rng)};
  return x;
}

TEST(FftPlan, IsTheDefiningSumForEveryLength) {
  std::vector<int64_t> lengths = {74, 101, 128, 210, 211, 1024, 1001};
  for (int64_t n = 0; n <= 70; ++n) lengths.push_back(n);
  for (int64_t n : lengths) {
    for (bool inverse : {false, true}) {
      std::vector<FftNumber> x = Signal(n);
      const std::vector<FftNumber> given = x;
      FftPlan(n).Run(x.data(), inverse);
      double worst = 0;
      for (int64_t k = 0; k < n; ++k) {
        std::complex<double> sum = 0;
        for (int64_t i = 0; i < n; ++i) {
          const double turn = 2 * std::numbers::pi * static_cast<double>(i * k % n) / n;
          sum += std::complex<double>(given[i].re, given[i].im) *
                 std::polar(1.0, inverse ? turn : -turn);
        }
        worst = std::max(worst, std::abs(sum - std::complex<double>(x[k].re, x[k].im)));
      }
      EXPECT_LE(worst, 1e-14 * static_cast<double>(n + 1)) << n << inverse;
    }
  }
}

TEST(FftPlan, BackAndForthIsTheSignalTimesItsLength) {
  for (int64_t n : {1, 2, 12, 4096, 65537, 99991}) {
    std::vector<FftNumber> x = Signal(n);
    const std::vector<FftNumber> given = x;
    FftPlan plan(n);
    plan.Run(x.data(), false);
    plan.Run(x.data(), true);
    double worst = 0;
    for (int64_t k = 0; k < n; ++k) {
      worst = std::max(worst, std::abs(x[k].re / static_cast<double>(n) - given[k].re));
    }
    EXPECT_LE(worst, 1e-13) << n;
  }
}

TEST(Fft, TheTargetFollowsItsAttributes) {
  const Tensor x = RandomTensor(ElementType::kF64, {2, 6}, 1);
  std::vector<Tensor> back = {Tensor(ElementType::kF64, {2, 6})};
  HandlerRegistry registry;
  ASSERT_TRUE(RegisterBuiltinHandlers(registry).ok());
  const HostHandler& fft = (*registry.Find("fft", "Host"))->host;
  std::vector<std::complex<double>> spectrum(8);
  std::vector<double> signal = x.values, again(12);
  const BufferView in{ElementType::kF64, {2, 6}, signal.data()};
  const BufferView middle{ElementType::kC128, {2, 4}, spectrum.data()};
  const BufferView out{ElementType::kF64, {2, 6}, again.data()};
  auto run = [&](absl::string_view attributes, const BufferView& from, const BufferView& to) {
    const auto map = AttributeMapView::Parse(attributes);
    HandlerContext context;
    context.target = "fft";
    context.attributes = &*map;
    return fft(context, {from}, {to});
  };
  ASSERT_TRUE(run("{fft_type = \"RFFT\"}", in, middle).ok());
  ASSERT_TRUE(run("{fft_type = \"IRFFT\", fft_length = 6 : i64}", middle, out).ok());
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(again[i], signal[i], 1e-14);
  ExpectError(run("{fft_type = \"DCT\"}", in, middle), "E131", {"\"fft_type\"", "DCT"});
  ExpectError(run("{}", in, middle), "E133", {"element types"});
  ExpectError(run("{fft_type = \"RFFT\", fft_length = 5 : i64}", in, middle), "E133",
              {"fft_length"});
}

}  // namespace
}  // namespace shardcall
