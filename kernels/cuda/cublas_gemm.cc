// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's matrices are column-major, ours are row-major. In memory, a row-major matrix is its
// column-major transpose, and d^T = op(b)^T op(a)^T. So our b is passed as a. op of a transpose is
// the transpose of op, also for the adjoint.
#include "shardcall/kernels/cuda/cublas_gemm.h"

#include <algorithm>
#include <complex>
#include <utility>

#include "shardcall/kernels/cuda/call_scratch.h"
#include "shardcall/kernels/cuda/cublas_lt.h"
#include "shardcall/kernels/cuda/library_status.h"
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/gemm.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kMostBatch = 65535;          // of one launch, limited by the grid
constexpr uint64_t kMostWorkspace = 32 << 20;  // as NVIDIA recommends for Hopper
constexpr uint32_t kBestAlignment = 256;

cudaDataType_t LtType(ElementType type) {
  switch (type) {
    case ElementType::kF64: return CUDA_R_64F;
    case ElementType::kF16: return CUDA_R_16F;
    case ElementType::kBF16: return CUDA_R_16BF;
    case ElementType::kC64: return CUDA_C_32F;
    case ElementType::kC128: return CUDA_C_64F;
    default: return CUDA_R_32F;
  }
}

cublasOperation_t LtOp(BlasOp op) {
  switch (op) {
    case BlasOp::kTranspose: return CUBLAS_OP_T;
    case BlasOp::kAdjoint: return CUBLAS_OP_C;
    default: return CUBLAS_OP_N;
  }
}

// alpha or beta in the type that the library takes: narrow floats are computed in f32.
struct Scalar {
  Scalar(cudaDataType_t type, double value) {
    if (type == CUDA_R_64F || type == CUDA_C_64F) {
      wide = value;
    } else {
      narrow = static_cast<float>(value);
    }
    data = type == CUDA_R_64F || type == CUDA_C_64F ? static_cast<const void*>(&wide) : &narrow;
  }
  std::complex<double> wide;
  std::complex<float> narrow;
  const void* data;
};

// One matrix product, or a strided batch of them, in cuBLASLt's terms.
class Product {
 public:
  struct Matrix {
    char* data;
    ElementType type;
    int64_t rows, columns;  // as stored, row-major
    char* At(int64_t batch) const {
      return data == nullptr ? nullptr : data + batch * rows * columns * ElementTypeBytes(type);
    }
  };

  Product(const CublasLt& lt, const GemmCall& call, const HandlerContext& context)
      : lt_(lt), call_(call), context_(context) {}

  // d = alpha op(a) op(b) + beta c; c is d where beta is 0. `step` is 0 if all products use the
  // same a and b.
  absl::Status Run(const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d, double alpha,
                   int64_t step, CallScratch& scratch) {
    SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<PooledHandle> handle,
                               lt_.Handle(*context_.device));
    const auto lt_handle = static_cast<cublasLtHandle_t>(handle->handle);
    for (int64_t first = 0; first < call_.batch; first += kMostBatch) {
      const int64_t batch = std::min(kMostBatch, call_.batch - first);
      const Matrix part[] = {At(b, first * step), At(a, first * step), At(c, first), At(d, first)};
      SHARDCALL_RETURN_IF_ERROR(RunBatch(lt_handle, part, alpha, batch, step, scratch));
    }
    return absl::OkStatus();
  }

 private:
  static Matrix At(Matrix m, int64_t batch) {
    m.data = m.At(batch);
    return m;
  }

  template <typename Attribute, typename Value>
  absl::Status Set(const CublasLt::Operation& operation, Attribute attribute, Value value) const {
    return lt_.Check(
        lt_.cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
  }
  template <typename Attribute, typename Value>
  absl::Status Set(const CublasLt::Preference& preference, Attribute attribute, Value value) const {
    return lt_.Check(lt_.cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value,
                                                              sizeof(value)),
                     "cublasLtMatmulPreferenceSetAttribute");
  }

  absl::StatusOr<CublasLt::Preference> NewPreference(const Matrix* part) const {
    SHARDCALL_ASSIGN_OR_RETURN(CublasLt::Preference preference, lt_.NewPreference());
    SHARDCALL_RETURN_IF_ERROR(
        Set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace));
    // Split-K partial sums must be added before they are rounded to the result's type.
    SHARDCALL_RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                  uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}));
    const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    for (int k = 0; k < 4; ++k) {
      uint32_t alignment = kBestAlignment;
      while (reinterpret_cast<uintptr_t>(part[k].data) % alignment != 0) alignment /= 2;
      SHARDCALL_RETURN_IF_ERROR(Set(preference, alignments[k], alignment));
    }
    return preference;
  }

  // `part`: b, a, c and d of this part of the batch.
  absl::Status RunBatch(cublasLtHandle_t handle, const Matrix* part, double alpha, int64_t batch,
                        int64_t step, CallScratch& scratch) {
    const cudaDataType_t type = LtType(part[0].type);
    const cudaDataType_t scale = ElementTypeBytes(part[0].type) == 2 ? CUDA_R_32F : type;
    const bool wide = type == CUDA_R_64F || type == CUDA_C_64F;
    SHARDCALL_ASSIGN_OR_RETURN(
        const CublasLt::Operation operation,
        lt_.NewOperation(wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, scale));
    SHARDCALL_RETURN_IF_ERROR(Set(operation, CUBLASLT_MATMUL_DESC_TRANSA, LtOp(call_.op_b)));
    SHARDCALL_RETURN_IF_ERROR(Set(operation, CUBLASLT_MATMUL_DESC_TRANSB, LtOp(call_.op_a)));
    CublasLt::Layout layouts[4] = {
        {nullptr, nullptr}, {nullptr, nullptr}, {nullptr, nullptr}, {nullptr, nullptr}};
    for (int k = 0; k < 4; ++k) {
      const Matrix& m = part[k];
      SHARDCALL_ASSIGN_OR_RETURN(
          layouts[k],
          lt_.NewLayout(LtType(m.type), m.columns, m.rows, m.columns, static_cast<int32_t>(batch),
                        m.rows * m.columns * (k < 2 ? step : 1)));
    }
    SHARDCALL_ASSIGN_OR_RETURN(const CublasLt::Preference preference, NewPreference(part));
    cublasLtMatmulHeuristicResult_t found = {};
    int count = 0;
    SHARDCALL_RETURN_IF_ERROR(lt_.Check(
        lt_.cublasLtMatmulAlgoGetHeuristic(handle, operation.get(), layouts[0].get(),
                                           layouts[1].get(), layouts[2].get(), layouts[3].get(),
                                           preference.get(), 1, &found, &count),
        "cublasLtMatmulAlgoGetHeuristic"));
    SHARDCALL_RETURN_IF_ERROR(lt_.Check(count < 1 ? CUBLAS_STATUS_NOT_SUPPORTED : found.state,
                                        "cublasLtMatmulAlgoGetHeuristic"));
    if (found.workspaceSize > workspace_bytes_) {  // parts run one after another
      SHARDCALL_ASSIGN_OR_RETURN(workspace_,
                                 scratch.New(static_cast<int64_t>(found.workspaceSize)));
      workspace_bytes_ = found.workspaceSize;
    }
    const Scalar a(scale, alpha), b(scale, call_.beta);
    return lt_.Check(
        lt_.cublasLtMatmul(handle, operation.get(), a.data, part[0].data, layouts[0].get(),
                           part[1].data, layouts[1].get(), b.data, part[2].data, layouts[2].get(),
                           part[3].data, layouts[3].get(), &found.algo, workspace_,
                           workspace_bytes_, static_cast<cudaStream_t>(context_.device->stream())),
        "cublasLtMatmul");
  }

  const CublasLt& lt_;
  const GemmCall& call_;
  const HandlerContext& context_;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
};

absl::Status RunGemm(const HandlerContext& context, const GemmCall& call,
                     absl::Span<const BufferView> operands, const BufferView& d) {
  if (d.num_elements() == 0) return absl::OkStatus();
  const auto stream = static_cast<cudaStream_t>(context.device->stream());
  if (call.k == 0 && call.beta == 0) {
    return RuntimeStatus(cudaMemsetAsync(d.data, 0, d.byte_size(), stream), "cudaMemsetAsync");
  }
  SHARDCALL_ASSIGN_OR_RETURN(const CublasLt* const lt, CublasLt::Get());
  CallScratch scratch(*context.device);
  SHARDCALL_ASSIGN_OR_RETURN(const ResultPlace place,
                             ResultPlace::Of(d, operands.subspan(0, 2), scratch));
  const auto matrix = [](const BufferView& buffer, void* data) {
    const auto& dims = buffer.dims;
    return Product::Matrix{static_cast<char*>(data), buffer.type, dims[dims.size() - 2],
                           dims.back()};
  };
  Product::Matrix a = matrix(operands[0], operands[0].data);
  Product::Matrix b = matrix(operands[1], operands[1].data);
  const Product::Matrix to = matrix(d, place.data);
  const Product::Matrix c = call.beta == 0 ? to : matrix(operands[2], operands[2].data);
  double alpha = call.alpha;
  int64_t step = 1;
  if (call.k == 0) {
    // d = beta c, computed as a product of zeros plus beta c.
    for (Product::Matrix* m : {&a, &b}) {
      (m->rows == 0 ? m->rows : m->columns) = 1;
      const int64_t bytes = m->rows * m->columns * ElementTypeBytes(m->type);
      SHARDCALL_ASSIGN_OR_RETURN(void* const zeros, scratch.New(bytes));
      SHARDCALL_RETURN_IF_ERROR(
          RuntimeStatus(cudaMemsetAsync(zeros, 0, bytes, stream), "cudaMemsetAsync"));
      m->data = static_cast<char*>(zeros);
    }
    alpha = 0;
    step = 0;
  }
  SHARDCALL_RETURN_IF_ERROR(Product(*lt, call, context).Run(a, b, c, to, alpha, step, scratch));
  return place.Finish(*context.device);
}

absl::Status CudaCublasGemm(const HandlerContext& context, absl::Span<const BufferView> operands,
                            absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"a", "b", "c"}, {"d"}, 1);
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  const GemmPlaces places = {Operand(0), Operand(1), Operand(2), Result(0), operands.size() > 2};
  SHARDCALL_ASSIGN_OR_RETURN(const GemmCall call, CheckGemm(context, args, kGemmTypes, places));
  return args.Located(RunGemm(context, call, operands, results[0]));
}

}  // namespace

HostHandler CudaGemm() { return CudaCublasGemm; }

}  // namespace internal
}  // namespace shardcall
