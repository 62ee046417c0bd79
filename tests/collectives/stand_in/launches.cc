// SPDX-License-Identifier: Apache-2.0
// In the place of our CUDA kernels, which have no GPU to run on: what they compute,
// on the stream; relu and the norm of f32 alone, by the definition of each.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "shardcall/kernels/cuda/launch.h"
#include "shardcall/kernels/cuda/sparse_element.h"
#include "tests/collectives/stand_in/memory.h"
#include "tests/collectives/stand_in/record.h"
#include "tests/collectives/stand_in/stream.h"

namespace shardcall {
inline namespace internal {
namespace {

float* Floats(const stand_in::View& view) { return reinterpret_cast<float*>(view.data); }

stand_in::View LookAtFloats(const void* pointer, int64_t count, const char* kernel) {
  return stand_in::LookAtDevice(pointer, count * sizeof(float), kernel);
}

void Push(void* stream, const char* kernel, stand_in::Stream::Step step) {
  stand_in::Record(kernel);
  const auto found = stand_in::FindStream(static_cast<cudaStream_t>(stream), kernel);
  if (found->device() != stand_in::CurrentDevice()) {
    stand_in::Misuse(std::string(kernel) + " on a stream of another device than the current one");
  }
  found->Push(std::move(step));
}

// The sparse matrix of a launch.
struct SparseViews {
  stand_in::View values, columns, offsets;
  SparseLaunch Of(SparseLaunch launch) const {
    launch.values = values.data;
    launch.columns = reinterpret_cast<const int32_t*>(columns.data);
    launch.offsets = reinterpret_cast<const int32_t*>(offsets.data);
    return launch;
  }
};
SparseViews LookAtSparse(const SparseLaunch& l, size_t value_bytes) {
  const char* const kernel = "a sparse kernel";
  return {stand_in::LookAtDevice(l.values, l.z * value_bytes, kernel),
          stand_in::LookAtDevice(l.columns, l.z * sizeof(int32_t), kernel),
          stand_in::LookAtDevice(l.offsets, (l.m + 1) * sizeof(int32_t), kernel)};
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
  const bool floats =
      l.type == CudaType::kF32 && l.gain_type == CudaType::kF32 && l.rstd_type == CudaType::kF32;
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

// By what each of the kernel's threads does.
int LaunchSparseMatmul(const SparseLaunch& given, void* stream) {
  if (stand_in::Fails("a kernel's launch")) return cudaErrorLaunchFailure;
  cuda::WithSparseType(given.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    Push(stream, "SparseMatmul",
         [l = given, in = LookAtSparse(given, sizeof(T)),
          b = stand_in::LookAtDevice(given.b, given.k * given.n * sizeof(T), "SparseMatmul"),
          y = stand_in::LookAtDevice(given.y, given.m * given.n * sizeof(T), "SparseMatmul")] {
           SparseLaunch launch = in.Of(l);
           launch.b = b.data;
           launch.y = y.data;
           for (int64_t i = 0; i < l.m; ++i) {
             for (int64_t j = 0; j < l.n; ++j) cuda::SparseElement<T>(launch, i, j);
           }
           return true;
         });
  });
  return cudaSuccess;
}

int LaunchSparseCheck(const SparseLaunch& given, SparseStructure* structure, int32_t* shifted,
                      void* stream) {
  if (stand_in::Fails("a kernel's launch")) return cudaErrorLaunchFailure;
  const int64_t offsets = given.m + 1;
  Push(stream, "SparseCheck",
       [l = given, offsets, in = LookAtSparse(given, 0),
        found = stand_in::LookAtDevice(structure, sizeof(SparseStructure), "SparseCheck"),
        to = stand_in::LookAtDevice(shifted, offsets * sizeof(int32_t), "SparseCheck")] {
         const SparseLaunch launch = in.Of(l);
         auto& s = *reinterpret_cast<SparseStructure*>(found.data);
         for (int64_t i = 0; i < std::max(offsets, l.z); ++i) {
           if (i < offsets) {
             reinterpret_cast<int32_t*>(to.data)[i] = cuda::ShiftedOffset(launch, i);
           }
           if (cuda::IrregularAt(launch, i)) s.irregular = 1;
         }
         s.first = launch.offsets[0];
         s.last = launch.offsets[l.m];
         return true;
       });
  return cudaSuccess;
}

const char* CudaErrorText(int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); }

}  // namespace internal
}  // namespace shardcall
