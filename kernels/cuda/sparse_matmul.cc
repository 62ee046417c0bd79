// SPDX-License-Identifier: Apache-2.0
// Offsets and columns may have any values (kernels/host/kernels.h), but cuSPARSE reads them
// unchecked, and invalid ones crash the process. So a kernel checks them first, and the call waits
// for its result; the host cannot check them, since they are in device memory. Shards of a sparse
// matrix are often irregular: entries of other shards have columns that count as padding.
#include "shardcall/kernels/cuda/sparse_matmul.h"

#include <complex>
#include <memory>
#include <utility>

#include "shardcall/kernels/cuda/call_scratch.h"
#include "shardcall/kernels/cuda/cuda_type.h"
#include "shardcall/kernels/cuda/cusparse_library.h"
#include "shardcall/kernels/cuda/launch.h"
#include "shardcall/kernels/cuda/library_status.h"
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/sparse.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// The type in which cuSPARSE multiplies this type; none for integers.
struct SparseTypes {
  cudaDataType_t value, compute;
};
bool FindTypes(ElementType type, SparseTypes* types) {
  switch (type) {
    case ElementType::kF32: *types = {CUDA_R_32F, CUDA_R_32F}; return true;
    case ElementType::kF64: *types = {CUDA_R_64F, CUDA_R_64F}; return true;
    case ElementType::kF16: *types = {CUDA_R_16F, CUDA_R_32F}; return true;
    case ElementType::kBF16: *types = {CUDA_R_16BF, CUDA_R_32F}; return true;
    case ElementType::kC64: *types = {CUDA_C_32F, CUDA_C_32F}; return true;
    case ElementType::kC128: *types = {CUDA_C_64F, CUDA_C_64F}; return true;
    default: return false;
  }
}

struct Csr {
  SparseStructure structure;
  const void* values;
  const int32_t *columns, *offsets;  // offsets start at 0
};

class Product {
 public:
  Product(const HandlerContext& context, const SparseLaunch& launch, ElementType type)
      : device_(*context.device),
        deadline_(context.deadline),
        launch_(launch),
        value_bytes_(ElementTypeBytes(type)),
        scratch_(device_) {}

  // Computes y = a b.
  absl::Status Run(const SparseTypes& types, void* y, bool* irregular) {
    SHARDCALL_ASSIGN_OR_RETURN(const Csr a, Look());
    *irregular = a.structure.irregular != 0;
    if (*irregular) return absl::OkStatus();
    if (a.structure.first == a.structure.last) {
      const int64_t bytes = launch_.m * launch_.n * value_bytes_;
      return RuntimeStatus(cudaMemsetAsync(y, 0, bytes, stream()), "cudaMemsetAsync");
    }
    return Multiply(types, a, y);
  }
  CallScratch& scratch() { return scratch_; }

 private:
  cudaStream_t stream() const { return static_cast<cudaStream_t>(device_.stream()); }

  absl::StatusOr<Csr> Look() {
    SHARDCALL_ASSIGN_OR_RETURN(void* const structure, scratch_.New(sizeof(SparseStructure)));
    SHARDCALL_ASSIGN_OR_RETURN(void* const shifted,
                               scratch_.New((launch_.m + 1) * sizeof(int32_t)));
    SHARDCALL_RETURN_IF_ERROR(RuntimeStatus(
        cudaMemsetAsync(structure, 0, sizeof(SparseStructure), stream()), "cudaMemsetAsync"));
    const int code = LaunchSparseCheck(launch_, static_cast<SparseStructure*>(structure),
                                       static_cast<int32_t*>(shifted), stream());
    SHARDCALL_RETURN_IF_ERROR(RuntimeStatus(static_cast<cudaError_t>(code), "a kernel's launch"));
    SHARDCALL_RETURN_IF_ERROR(Await());
    auto found = std::make_shared<SparseStructure>();
    const absl::Status copied = device_.CopyOut(found.get(), structure, sizeof(*found));
    if (!copied.ok()) {
      device_.Hold(std::move(found));  // the copy may still be running
      return DeviceStatus(copied);
    }
    Csr a = {*found, launch_.values, launch_.columns, static_cast<const int32_t*>(shifted)};
    if (a.structure.irregular != 0 || a.structure.first == 0) return a;
    // If the first entry is not entry 0, values and columns are copied, since a library may read
    // several at once (alignment).
    const int64_t first = a.structure.first, count = a.structure.last - first;
    SHARDCALL_ASSIGN_OR_RETURN(void* const values, scratch_.New(count * value_bytes_));
    SHARDCALL_ASSIGN_OR_RETURN(void* const columns, scratch_.New(count * sizeof(int32_t)));
    if (count > 0) {
      SHARDCALL_RETURN_IF_ERROR(DeviceStatus(
          device_.CopyWithin(values, static_cast<const char*>(a.values) + first * value_bytes_,
                             count * value_bytes_)));
      SHARDCALL_RETURN_IF_ERROR(
          DeviceStatus(device_.CopyWithin(columns, a.columns + first, count * sizeof(int32_t))));
    }
    a.values = values;
    a.columns = static_cast<const int32_t*>(columns);
    return a;
  }

  absl::Status Await() {
    const absl::Status status = device_.Wait(deadline_);
    if (!absl::IsDeadlineExceeded(status)) return DeviceStatus(status);
    return ToStatus({.code = "E319",
                     .message = "what was enqueued before is not over on the stream",
                     .fix = "Give a longer deadline (--wait)"},
                    absl::StatusCode::kDeadlineExceeded);
  }

  absl::Status Multiply(const SparseTypes& types, const Csr& a, void* y) {
    const SparseLaunch& l = launch_;
    SHARDCALL_ASSIGN_OR_RETURN(const Cusparse* const library, Cusparse::Get());
    SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<PooledHandle> pooled,
                               library->Handle(device_));
    const std::lock_guard<std::mutex> lock(pooled->mutex);
    const auto handle = static_cast<cusparseHandle_t>(pooled->handle);
    SHARDCALL_RETURN_IF_ERROR(
        library->Check(library->cusparseSetStream(handle, stream()), "cusparseSetStream"));
    cusparseConstSpMatDescr_t sparse = nullptr;
    SHARDCALL_RETURN_IF_ERROR(library->Check(
        library->cusparseCreateConstCsr(&sparse, l.m, l.k, a.structure.last - a.structure.first,
                                        a.offsets, a.columns, a.values, CUSPARSE_INDEX_32I,
                                        CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, types.value),
        "cusparseCreateConstCsr"));
    const Cusparse::Sparse sparse_owner(sparse, library->cusparseDestroySpMat);
    cusparseConstDnMatDescr_t b = nullptr;
    SHARDCALL_RETURN_IF_ERROR(library->Check(
        library->cusparseCreateConstDnMat(&b, l.k, l.n, l.n, l.b, types.value, CUSPARSE_ORDER_ROW),
        "cusparseCreateConstDnMat"));
    const Cusparse::Dense b_owner(b, library->cusparseDestroyDnMat);
    cusparseDnMatDescr_t to = nullptr;
    SHARDCALL_RETURN_IF_ERROR(library->Check(
        library->cusparseCreateDnMat(&to, l.m, l.n, l.n, y, types.value, CUSPARSE_ORDER_ROW),
        "cusparseCreateDnMat"));
    const Cusparse::Dense y_owner(to, library->cusparseDestroyDnMat);

    const bool wide = types.compute == CUDA_R_64F || types.compute == CUDA_C_64F;
    const std::complex<double> wide_scalars[] = {1, 0};
    const std::complex<float> scalars[] = {1, 0};  // the first half of the 1 is a real 1
    const void* const one = wide ? static_cast<const void*>(&wide_scalars[0]) : &scalars[0];
    const void* const zero = wide ? static_cast<const void*>(&wide_scalars[1]) : &scalars[1];
    constexpr cusparseOperation_t kAsItIs = CUSPARSE_OPERATION_NON_TRANSPOSE;
    constexpr cusparseSpMMAlg_t kAlgorithm = CUSPARSE_SPMM_CSR_ALG2;  // suits dense rows
    size_t bytes = 0;
    SHARDCALL_RETURN_IF_ERROR(library->Check(
        library->cusparseSpMM_bufferSize(handle, kAsItIs, kAsItIs, one, sparse, b, zero, to,
                                         types.compute, kAlgorithm, &bytes),
        "cusparseSpMM_bufferSize"));
    SHARDCALL_ASSIGN_OR_RETURN(void* const buffer, scratch_.New(static_cast<int64_t>(bytes)));
    return library->Check(library->cusparseSpMM(handle, kAsItIs, kAsItIs, one, sparse, b, zero, to,
                                                types.compute, kAlgorithm, buffer),
                          "cusparseSpMM");
  }

  HandlerDevice& device_;
  const absl::Duration deadline_;
  const SparseLaunch& launch_;
  const int64_t value_bytes_;
  CallScratch scratch_;
};

absl::Status RunSparse(const HandlerContext& context, absl::Span<const BufferView> operands,
                       const BufferView& y) {
  if (y.num_elements() == 0) return absl::OkStatus();
  SparseLaunch launch = {};
  launch.type = CudaTypeOf(y.type);
  launch.m = y.dims[0];
  launch.k = operands[3].dims[0];
  launch.n = y.dims[1];
  launch.z = operands[0].dims[0];
  launch.values = operands[0].data;
  launch.columns = static_cast<const int32_t*>(operands[1].data);
  launch.offsets = static_cast<const int32_t*>(operands[2].data);
  launch.b = operands[3].data;
  Product product(context, launch, y.type);
  SHARDCALL_ASSIGN_OR_RETURN(const ResultPlace place,
                             ResultPlace::Of(y, operands, product.scratch()));
  SparseTypes types;
  bool irregular = true;
  if (launch.z > 0 && launch.k > 0 && FindTypes(y.type, &types)) {
    SHARDCALL_RETURN_IF_ERROR(product.Run(types, place.data, &irregular));
  }
  if (irregular) {
    launch.y = place.data;
    const int code = LaunchSparseMatmul(launch, context.device->stream());
    SHARDCALL_RETURN_IF_ERROR(RuntimeStatus(static_cast<cudaError_t>(code), "a kernel's launch"));
  }
  return place.Finish(*context.device);
}

absl::Status Run(const HandlerContext& context, absl::Span<const BufferView> operands,
                 absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"values", "columns", "offsets", "b"},
                           {"y"});
  SHARDCALL_RETURN_IF_ERROR(CheckSparseMatmul(context, args));
  return args.Located(RunSparse(context, operands, results[0]));
}

}  // namespace

HostHandler CudaSparseMatmul() { return Run; }

}  // namespace internal
}  // namespace shardcall
