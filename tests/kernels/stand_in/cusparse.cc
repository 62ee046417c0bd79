// SPDX-License-Identifier: Apache-2.0
// The functions of cuSPARSE that we call, over host memory: it computes the product, on
// the stream of the handle, and ends the process where the matrix is none that the
// library may be given.
#include <cusparse.h>

#include <string>
#include <utility>

#include "tests/collectives/stand_in/memory.h"
#include "tests/collectives/stand_in/stream.h"
#include "tests/kernels/stand_in/library.h"

namespace stand_in {
namespace {

constexpr size_t kBuffer = 1000;
constexpr uintptr_t kVector = 16;  // bytes that kernels of the library may read at once

struct Handle {
  int device;
  cudaStream_t stream = nullptr;
};
struct Sparse {
  int64_t rows, columns, entries;
  const void *offsets, *places, *values;
  cudaDataType type;
};
struct Dense {
  int64_t rows, columns, ld;
  void* values;
  cudaDataType type;
};
template <typename T>
Held<T>& All(Thing thing) {
  static Held<T>* const all = new Held<T>(thing);
  return *all;
}
Held<Handle>& Handles() { return All<Handle>(Thing::kHandle); }
Held<Sparse>& SparseMatrices() { return All<Sparse>(Thing::kDescriptor); }
Held<Dense>& DenseMatrices() { return All<Dense>(Thing::kDescriptor); }

struct Product {
  Sparse a;
  Dense b, y;
};
Product CheckProduct(cusparseOperation_t op_a, cusparseOperation_t op_b,
                     cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                     cusparseDnMatDescr_t y, cudaDataType compute, cusparseSpMMAlg_t algorithm,
                     const char* function) {
  const Product p{*SparseMatrices().Find(a, function), *DenseMatrices().Find(b, function),
                  *DenseMatrices().Find(y, function)};
  if (op_a != CUSPARSE_OPERATION_NON_TRANSPOSE || op_b != CUSPARSE_OPERATION_NON_TRANSPOSE ||
      algorithm != CUSPARSE_SPMM_CSR_ALG2) {
    Misuse("cuSPARSE: what the stand-in does not have");
  }
  if (p.a.columns != p.b.rows || p.a.rows != p.y.rows || p.b.columns != p.y.columns) {
    Misuse("cuSPARSE: matrices that do not fit");
  }
  const bool narrow = BytesOf(p.a.type) == 2;
  if (p.b.type != p.a.type || p.y.type != p.a.type || compute != (narrow ? CUDA_R_32F : p.a.type)) {
    Misuse("cuSPARSE: types that do not go together");
  }
  return p;
}

cusparseStatus_t NewDense(cusparseDnMatDescr_t* made, int64_t rows, int64_t columns, int64_t ld,
                          const void* values, cudaDataType type, cusparseOrder_t order) {
  if (order != CUSPARSE_ORDER_ROW || ld < columns || rows < 1 || columns < 1) {
    Misuse("cuSPARSE: a dense matrix that is empty, or not in rows of its length");
  }
  DenseMatrices().Make(made, {rows, columns, ld, const_cast<void*>(values), type});
  return CUSPARSE_STATUS_SUCCESS;
}

View LookAligned(const void* data, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(data) % kVector != 0) Misuse("cuSPARSE: memory out of line");
  return LookAtDevice(data, bytes, "cusparseSpMM");
}

void Compute(const Product& p, const int32_t* offsets, const int32_t* places, const char* values,
             const char* b, char* y) {
  if (offsets[0] != 0 || offsets[p.a.rows] != p.a.entries) {
    Misuse("cuSPARSE: offsets that are not from 0 to the number of entries");
  }
  const size_t bytes = BytesOf(p.a.type);
  for (int64_t i = 0; i < p.a.rows; ++i) {
    if (offsets[i] > offsets[i + 1]) Misuse("cuSPARSE: offsets that fall");
    for (int64_t j = 0; j < p.y.columns; ++j) {
      std::complex<double> sum = 0;
      for (int64_t e = offsets[i]; e < offsets[i + 1]; ++e) {
        if (places[e] < 0 || places[e] >= p.a.columns) Misuse("cuSPARSE: a column that is none");
        sum += Load(p.a.type, values + e * bytes) *
               Load(p.b.type, b + (places[e] * p.b.ld + j) * bytes);
      }
      Store(p.y.type, sum, y + (i * p.y.ld + j) * bytes);
    }
  }
}

}  // namespace
}  // namespace stand_in

using namespace stand_in;  // NOLINT

extern "C" {

const char* cusparseGetErrorString(cusparseStatus_t status) {
  return status == CUSPARSE_STATUS_SUCCESS ? "success" : "an error of the stand-in for cuSPARSE";
}
cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) {
  if (Fails("cusparseCreate")) return CUSPARSE_STATUS_NOT_INITIALIZED;
  Record("cusparseCreate");
  Handles().Make(handle, {CurrentDevice()});
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream) {
  if (Fails("cusparseSetStream")) return CUSPARSE_STATUS_INVALID_VALUE;
  FindStream(stream, "cusparseSetStream");
  Handles().Find(handle, "cusparseSetStream")->stream = stream;
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCreateConstCsr(cusparseConstSpMatDescr_t* made, int64_t rows,
                                        int64_t columns, int64_t entries, const void* offsets,
                                        const void* places, const void* values,
                                        cusparseIndexType_t offset_type,
                                        cusparseIndexType_t place_type, cusparseIndexBase_t base,
                                        cudaDataType type) {
  if (Fails("cusparseCreateConstCsr")) return CUSPARSE_STATUS_ALLOC_FAILED;
  if (offset_type != CUSPARSE_INDEX_32I || place_type != CUSPARSE_INDEX_32I ||
      base != CUSPARSE_INDEX_BASE_ZERO || rows < 1 || columns < 1 || entries < 1) {
    Misuse("cuSPARSE: a matrix that is empty, or whose indices the stand-in does not have");
  }
  SparseMatrices().Make(made, {rows, columns, entries, offsets, places, values, type});
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) {
  SparseMatrices().Destroy(matrix, "cusparseDestroySpMat");
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* made, int64_t rows, int64_t columns,
                                     int64_t ld, void* values, cudaDataType type,
                                     cusparseOrder_t order) {
  if (Fails("cusparseCreateDnMat")) return CUSPARSE_STATUS_ALLOC_FAILED;
  return NewDense(made, rows, columns, ld, values, type, order);
}
cusparseStatus_t cusparseCreateConstDnMat(cusparseConstDnMatDescr_t* made, int64_t rows,
                                          int64_t columns, int64_t ld, const void* values,
                                          cudaDataType type, cusparseOrder_t order) {
  if (Fails("cusparseCreateConstDnMat")) return CUSPARSE_STATUS_ALLOC_FAILED;
  return NewDense(const_cast<cusparseDnMatDescr_t*>(made), rows, columns, ld, values, type, order);
}
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) {
  DenseMatrices().Destroy(matrix, "cusparseDestroyDnMat");
  return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t op_a,
                                         cusparseOperation_t op_b, const void*,
                                         cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                                         const void*, cusparseDnMatDescr_t y, cudaDataType compute,
                                         cusparseSpMMAlg_t algorithm, size_t* bytes) {
  const char* const function = "cusparseSpMM_bufferSize";
  if (Fails(function)) return CUSPARSE_STATUS_NOT_SUPPORTED;
  Handles().Find(handle, function);
  CheckProduct(op_a, op_b, a, b, y, compute, algorithm, function);
  *bytes = kBuffer;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t op_a,
                              cusparseOperation_t op_b, const void* alpha,
                              cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b,
                              const void* beta, cusparseDnMatDescr_t y, cudaDataType compute,
                              cusparseSpMMAlg_t algorithm, void* buffer) {
  const char* const function = "cusparseSpMM";
  if (Fails(function)) return CUSPARSE_STATUS_EXECUTION_FAILED;
  const auto found = Handles().Find(handle, function);
  if (found->device != CurrentDevice()) Misuse("cuSPARSE: a handle of another device");
  const Product p = CheckProduct(op_a, op_b, a, b, y, compute, algorithm, function);
  if (Load(compute, static_cast<const char*>(alpha)) != 1.0 ||
      Load(compute, static_cast<const char*>(beta)) != 0.0) {
    Misuse("cuSPARSE: factors that the stand-in does not have");
  }
  if (p.y.values == p.b.values || p.y.values == p.a.values) {
    Misuse("cuSPARSE: the result is written over an operand");
  }
  const size_t bytes = BytesOf(p.a.type);
  Record("cusparseSpMM(" + std::to_string(p.a.rows) + "x" + std::to_string(p.a.columns) + ", " +
         std::to_string(p.a.entries) + " entries)");
  FindStream(found->stream, function)
      ->Push([p, offsets = LookAligned(p.a.offsets, (p.a.rows + 1) * sizeof(int32_t)),
              places = LookAligned(p.a.places, p.a.entries * sizeof(int32_t)),
              values = LookAligned(p.a.values, p.a.entries * bytes),
              dense = LookAligned(p.b.values, p.b.rows * p.b.ld * bytes),
              result = LookAligned(p.y.values, p.y.rows * p.y.ld * bytes),
              used = LookAligned(buffer, kBuffer)] {
        std::memset(used.data, 0x5A, kBuffer);
        Compute(p, reinterpret_cast<const int32_t*>(offsets.data),
                reinterpret_cast<const int32_t*>(places.data), values.data, dense.data,
                result.data);
        return true;
      });
  return CUSPARSE_STATUS_SUCCESS;
}

}  // extern "C"
