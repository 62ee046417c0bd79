// SPDX-License-Identifier: Apache-2.0
// The functions of cuBLASLt that we call, over host memory: it computes the product that
// the descriptors say, on the stream, and ends the process where they contradict each
// other or the memory. Its algorithms want a workspace; the one that a heuristic gave is
// for the problem that it was asked for.
#include <cublasLt.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tests/collectives/stand_in/memory.h"
#include "tests/collectives/stand_in/stand_in.h"
#include "tests/collectives/stand_in/stream.h"
#include "tests/kernels/stand_in/library.h"

namespace stand_in {
namespace {

constexpr size_t kWorkspace = 4096;

struct Handle {
  int device;
};
struct Layout {
  cudaDataType_t type;
  int64_t rows, columns, ld;
  int32_t batch = 1;
  int64_t stride = 0;
  size_t bytes() const {  // from the first element to the last
    if (rows == 0 || columns == 0) return 0;
    return ((batch - 1) * stride + (columns - 1) * ld + rows) * BytesOf(type);
  }
};
struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
};
struct Preference {
  size_t workspace = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignments[4] = {256, 256, 256, 256};
};
template <typename T>
Held<T>& All(Thing thing) {
  static Held<T>* const all = new Held<T>(thing);
  return *all;
}
Held<Handle>& Handles() { return All<Handle>(Thing::kHandle); }
Held<Layout>& Layouts() { return All<Layout>(Thing::kDescriptor); }
Held<Operation>& Operations() { return All<Operation>(Thing::kDescriptor); }
Held<Preference>& Preferences() { return All<Preference>(Thing::kDescriptor); }

struct Product {
  Operation operation;
  Layout a, b, c, d;
};

// What the library refuses, or computes something else for.
void CheckProduct(const Product& p) {
  const auto rows = [](const Layout& m, cublasOperation_t op) {
    return op == CUBLAS_OP_N ? m.rows : m.columns;
  };
  const auto columns = [](const Layout& m, cublasOperation_t op) {
    return op == CUBLAS_OP_N ? m.columns : m.rows;
  };
  if (rows(p.a, p.operation.a) != p.d.rows || columns(p.b, p.operation.b) != p.d.columns ||
      columns(p.a, p.operation.a) != rows(p.b, p.operation.b) || p.c.rows != p.d.rows ||
      p.c.columns != p.d.columns) {
    Misuse("cuBLASLt: matrices that do not fit");
  }
  for (const Layout* m : {&p.a, &p.b, &p.c, &p.d}) {
    if (m->rows < 1 || m->columns < 1) Misuse("cuBLASLt: an empty matrix");
    if (m->ld < m->rows) Misuse("cuBLASLt: a leading dimension below the rows");
    if (m->batch != p.d.batch) Misuse("cuBLASLt: batches of several sizes");
  }
  if (p.d.batch > 1 && p.d.stride < p.d.ld * p.d.columns) Misuse("cuBLASLt: results overlap");
  const cudaDataType_t type = p.a.type;
  const bool narrow = BytesOf(type) == 2;
  const bool wide = type == CUDA_R_64F || type == CUDA_C_64F;
  if (p.b.type != type || p.c.type != p.d.type ||
      (p.d.type != type && !(narrow && p.d.type == CUDA_R_32F)) ||
      p.operation.scale != (narrow ? CUDA_R_32F : type) ||
      p.operation.compute != (wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F)) {
    Misuse("cuBLASLt: types that do not go together");
  }
}

// Marks an algorithm with the problem that it is for.
uint64_t MarkOf(const Product& p) {
  uint64_t mark = 0xcbf29ce484222325;
  const auto add = [&](uint64_t v) { mark = (mark ^ v) * 0x100000001b3; };
  add(p.operation.a), add(p.operation.b), add(p.operation.compute), add(p.operation.scale);
  for (const Layout* m : {&p.a, &p.b, &p.c, &p.d}) {
    add(m->type), add(m->rows), add(m->columns), add(m->ld), add(m->batch), add(m->stride);
  }
  return mark;
}

void Compute(const Product& p, std::complex<double> alpha, std::complex<double> beta, const char* a,
             const char* b, const char* c, char* d) {
  const auto at = [](const Layout& m, const char* data, int64_t batch, cublasOperation_t op,
                     int64_t row, int64_t column) {
    if (op != CUBLAS_OP_N) std::swap(row, column);
    const auto v = Load(m.type, data + (batch * m.stride + column * m.ld + row) * BytesOf(m.type));
    return op == CUBLAS_OP_C ? std::conj(v) : v;
  };
  const int64_t inner = p.operation.a == CUBLAS_OP_N ? p.a.columns : p.a.rows;
  for (int64_t batch = 0; batch < p.d.batch; ++batch) {
    for (int64_t i = 0; i < p.d.rows; ++i) {
      for (int64_t j = 0; j < p.d.columns; ++j) {
        std::complex<double> sum = 0;
        for (int64_t l = 0; l < inner; ++l) {
          sum += at(p.a, a, batch, p.operation.a, i, l) * at(p.b, b, batch, p.operation.b, l, j);
        }
        sum *= alpha;
        if (beta != 0.0) sum += beta * at(p.c, c, batch, CUBLAS_OP_N, i, j);
        Store(p.d.type, sum, d + (batch * p.d.stride + j * p.d.ld + i) * BytesOf(p.d.type));
      }
    }
  }
}

View LookAtMatrix(const Layout& m, const void* data) {
  return LookAtDevice(data, m.bytes(), "cublasLtMatmul");
}

}  // namespace
}  // namespace stand_in

using namespace stand_in;  // NOLINT

extern "C" {

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "an error of the stand-in for cuBLASLt";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (Fails("cublasLtCreate")) return CUBLAS_STATUS_NOT_INITIALIZED;
  Record("cublasLtCreate");
  Handles().Make(handle, {CurrentDevice()});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (Fails("cublasLtMatmulDescCreate")) return CUBLAS_STATUS_ALLOC_FAILED;
  Operations().Make(made, {compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  Operations().Destroy(operation, "cublasLtMatmulDescDestroy");
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  if (Fails("cublasLtMatmulDescSetAttribute")) return CUBLAS_STATUS_INVALID_VALUE;
  const auto found = Operations().Find(operation, "cublasLtMatmulDescSetAttribute");
  const auto op = static_cast<cublasOperation_t>(ReadAttribute<int32_t>(value, bytes));
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: found->a = op; break;
    case CUBLASLT_MATMUL_DESC_TRANSB: found->b = op; break;
    default: Misuse("an attribute of operations that the stand-in does not have");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  if (Fails("cublasLtMatrixLayoutCreate")) return CUBLAS_STATUS_ALLOC_FAILED;
  Layouts().Make(made, {type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), ld});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  Layouts().Destroy(layout, "cublasLtMatrixLayoutDestroy");
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  if (Fails("cublasLtMatrixLayoutSetAttribute")) return CUBLAS_STATUS_INVALID_VALUE;
  const auto found = Layouts().Find(layout, "cublasLtMatrixLayoutSetAttribute");
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      found->batch = ReadAttribute<int32_t>(value, bytes);
      break;
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      found->stride = ReadAttribute<int64_t>(value, bytes);
      break;
    default: Misuse("an attribute of layouts that the stand-in does not have");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  if (Fails("cublasLtMatmulPreferenceCreate")) return CUBLAS_STATUS_ALLOC_FAILED;
  Preferences().Make(made, {});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  Preferences().Destroy(preference, "cublasLtMatmulPreferenceDestroy");
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  if (Fails("cublasLtMatmulPreferenceSetAttribute")) return CUBLAS_STATUS_INVALID_VALUE;
  const auto found = Preferences().Find(preference, "cublasLtMatmulPreferenceSetAttribute");
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      found->workspace = ReadAttribute<uint64_t>(value, bytes);
      break;
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      found->reductions = ReadAttribute<uint32_t>(value, bytes);
      break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      found->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] =
          ReadAttribute<uint32_t>(value, bytes);
      break;
    default: Misuse("an attribute of preferences that the stand-in does not have");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  const char* const function = "cublasLtMatmulAlgoGetHeuristic";
  if (Fails(function)) return CUBLAS_STATUS_NOT_SUPPORTED;
  Handles().Find(handle, function);
  const Product product{*Operations().Find(operation, function), *Layouts().Find(a, function),
                        *Layouts().Find(b, function), *Layouts().Find(c, function),
                        *Layouts().Find(d, function)};
  CheckProduct(product);
  const auto wanted = Preferences().Find(preference, function);
  if (wanted->reductions != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) {
    Misuse("cuBLASLt: parts of sums may be rounded to the result's type");
  }
  if (asked < 1) Misuse("cuBLASLt: no algorithm is asked for");
  *results = {};
  results->algo.data[0] = MarkOf(product);
  results->algo.data[1] =
      *std::min_element(std::begin(wanted->alignments), std::end(wanted->alignments));
  results->workspaceSize = wanted->workspace >= kWorkspace ? kWorkspace : 0;
  results->algo.data[2] = results->workspaceSize;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  const char* const function = "cublasLtMatmul";
  if (Fails(function)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (Handles().Find(handle, function)->device != CurrentDevice()) {
    Misuse("cuBLASLt: a handle of another device than the current one");
  }
  const Product p{*Operations().Find(operation, function), *Layouts().Find(a_layout, function),
                  *Layouts().Find(b_layout, function), *Layouts().Find(c_layout, function),
                  *Layouts().Find(d_layout, function)};
  CheckProduct(p);
  if (algo == nullptr || algo->data[0] != MarkOf(p)) {
    Misuse("cuBLASLt: an algorithm for another problem");
  }
  if (workspace_bytes < algo->data[2]) Misuse("cuBLASLt: a workspace that is too small");
  if (d == a || d == b) Misuse("cuBLASLt: the result is written over an operand");
  for (const void* pointer : {a, b, c, static_cast<const void*>(d)}) {
    if (reinterpret_cast<uintptr_t>(pointer) % algo->data[1] != 0) {
      Misuse("cuBLASLt: memory that is less aligned than was said");
    }
  }
  const auto found = FindStream(stream, function);
  if (found->device() != CurrentDevice()) Misuse("cuBLASLt: a stream of another device");
  const auto scalar = [&](const void* from) {
    return Load(p.operation.scale, static_cast<const char*>(from));
  };
  Record("cublasLtMatmul(" + std::to_string(p.d.rows) + "x" + std::to_string(p.d.columns) + ", " +
         std::to_string(p.d.batch) + " of them)");
  found->Push([p, one = scalar(alpha), other = scalar(beta), av = LookAtMatrix(p.a, a),
               bv = LookAtMatrix(p.b, b), cv = LookAtMatrix(p.c, c), dv = LookAtMatrix(p.d, d),
               wv = LookAtDevice(workspace, workspace_bytes, function), workspace_bytes] {
    if (workspace_bytes > 0) std::memset(wv.data, 0x5A, workspace_bytes);
    Compute(p, one, other, av.data, bv.data, cv.data, dv.data);
    return true;
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
