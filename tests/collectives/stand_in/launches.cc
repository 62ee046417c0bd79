// SPDX-License-Identifier: Apache-2.0
// In the place of our CUDA kernels, which have no GPU to run on: what they compute
// of f32, on the stream, by the definition of each.
#include <cuda_runtime_api.h>

#include <cmath>

#include "kernels/cuda/launch.h"
#include "tests/collectives/stand_in/memory.h"
#include "tests/collectives/stand_in/record.h"
#include "tests/collectives/stand_in/stream.h"

namespace shardcall {
namespace {

float* Floats(const stand_in::View& view) { return reinterpret_cast<float*>(view.data); }

stand_in::View LookAtFloats(const void* pointer, int64_t count, const char* kernel) {
  return stand_in::LookAtDevice(pointer, count * sizeof(float), kernel);
}

void Push(void* stream, const char* kernel, stand_in::Stream::Step step) {
  stand_in::Record(kernel);
  stand_in::FindStream(static_cast<cudaStream_t>(stream), kernel)->Push(std::move(step));
}

}  // namespace

int LaunchRelu(CudaType type, const void* x, void* y, int64_t n, void* stream) {
  if (type != CudaType::kF32) return cudaErrorNotSupported;
  Push(stream, "Relu", [n, in = LookAtFloats(x, n, "Relu"), out = LookAtFloats(y, n, "Relu")] {
    for (int64_t i = 0; i < n; ++i) Floats(out)[i] = Floats(in)[i] <= 0 ? 0 : Floats(in)[i];
    return true;
  });
  return cudaSuccess;
}

int LaunchRmsNorm(const RmsNormLaunch& l, void* stream) {
  const bool floats = l.type == CudaType::kF32 && l.gain_type == CudaType::kF32 &&
                      l.rstd_type == CudaType::kF32;
  if (!floats) return cudaErrorNotSupported;
  const int64_t n = l.rows * l.width;
  const int64_t gains = (l.rows + l.rows_per_gain - 1) / l.rows_per_gain;
  Push(stream, "RmsNorm",
       [l, x = LookAtFloats(l.x, n, "RmsNorm"), y = LookAtFloats(l.y, n, "RmsNorm"),
        gain = LookAtFloats(l.gain, gains * l.width, "RmsNorm"),
        rstd = LookAtFloats(l.rstd, l.rstd == nullptr ? 0 : l.rows, "RmsNorm")] {
         for (int64_t r = 0; r < l.rows; ++r) {
           const float* const row = Floats(x) + r * l.width;
           double squares = 0;
           for (int64_t i = 0; i < l.width; ++i) squares += double{row[i]} * row[i];
           const float inverse = static_cast<float>(1 / std::sqrt(squares / l.width + l.eps));
           for (int64_t i = 0; i < l.width; ++i) {
             const float scale = Floats(gain)[r / l.rows_per_gain * l.width + i];
             Floats(y)[r * l.width + i] = row[i] * inverse * scale;
           }
           if (l.rstd != nullptr) Floats(rstd)[r] = inverse;
         }
         return true;
       });
  return cudaSuccess;
}

const char* CudaErrorText(int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); }

}  // namespace shardcall
