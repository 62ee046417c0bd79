// SPDX-License-Identifier: Apache-2.0
// dot: any batch and contracting dimensions, transposed to one batched product.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <vector>

#include "shardcall/kernels/host/matmul.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

struct DotData : OpData {
  MatmulShape shape;
  Dims lhs_perm, rhs_perm;      // empty: no transpose
  bool plain_products = false;  // of floats of one type, without contraction
};

// A product without a sum keeps the sign of zero, but a BLAS adds it to 0. `Bits` are the bits of
// an element, with the sign highest.
template <typename Bits>
void KeepSignsOfZeros(const MatmulShape& shape, const void* lhs, const void* rhs, void* out) {
  const Bits* a = static_cast<const Bits*>(lhs);
  const Bits* b = static_cast<const Bits*>(rhs);
  Bits* c = static_cast<Bits*>(out);
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  for (int64_t k = 0; k < shape.batch; ++k, a += shape.m, b += shape.n) {
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j, ++c) {
        if (*c == 0) *c = static_cast<Bits>((a[i] ^ b[j]) & kSign);
      }
    }
  }
}

absl::Status RunDot(StepRun& run) {
  const auto& data = run.data<DotData>();
  const Tensor lhs = data.lhs_perm.empty() ? run.in(0) : Transpose(run.in(0), data.lhs_perm);
  const Tensor rhs = data.rhs_perm.empty() ? run.in(1) : Transpose(run.in(1), data.rhs_perm);
  Tensor out = run.NewResult(0);
  SHARDCALL_RETURN_IF_ERROR(Matmul(data.shape, lhs.type(), lhs.data(), rhs.type(), rhs.data(),
                                   out.type(), out.MutableData()));
  if (data.plain_products) {
    switch (out.element_bytes()) {
      case 2:
        KeepSignsOfZeros<uint16_t>(data.shape, lhs.data(), rhs.data(), out.MutableData());
        break;
      case 4:
        KeepSignsOfZeros<uint32_t>(data.shape, lhs.data(), rhs.data(), out.MutableData());
        break;
      default:
        KeepSignsOfZeros<uint64_t>(data.shape, lhs.data(), rhs.data(), out.MutableData());
        break;
    }
  }
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

// Dimensions of `shape` that are neither batch nor contracting.
Dims FreeDims(const Shape& shape, Ints batch, Ints contracting) {
  Dims free;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
        std::find(contracting.begin(), contracting.end(), d) == contracting.end()) {
      free.push_back(d);
    }
  }
  return free;
}

// Whether batch + first + second, without dimensions of size 1, is ascending.
bool InOrder(const Shape& shape, Ints batch, Ints first, Ints second) {
  int64_t previous = -1;
  for (Ints part : {batch, first, second}) {
    for (int64_t d : part) {
      if (shape.dim(static_cast<int>(d)) == 1) continue;
      if (d < previous) return false;
      previous = d;
    }
  }
  return true;
}

int64_t Extent(const Shape& shape, Ints dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= shape.dim(static_cast<int>(d));
  return n;
}

bool ValidDims(const Shape& shape, Ints dims) {
  return std::all_of(dims.begin(), dims.end(),
                     [&](int64_t d) { return d >= 0 && d < shape.rank(); });
}

}  // namespace

absl::Status LowerDot(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<DotAttrs>();
  const Shape& lhs = *context.operand_shape(0);
  const Shape& rhs = *context.operand_shape(1);
  if (attrs.lhs_contracting.size() != attrs.rhs_contracting.size() ||
      attrs.lhs_batch.size() != attrs.rhs_batch.size() || !ValidDims(lhs, attrs.lhs_batch) ||
      !ValidDims(lhs, attrs.lhs_contracting) || !ValidDims(rhs, attrs.rhs_batch) ||
      !ValidDims(rhs, attrs.rhs_contracting)) {
    return context.Error("E311", "the dimension numbers of the two sides do not match");
  }
  if (!MatmulSupports(lhs.element_type(), rhs.element_type(), step->shapes[0].type)) {
    return context.Unimplemented("a product of these element types");
  }
  // Contracting pairs may be summed in any order, so take the order in memory of lhs.
  std::vector<size_t> order(attrs.lhs_contracting.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return attrs.lhs_contracting[a] < attrs.lhs_contracting[b];
  });
  Dims lhs_k, rhs_k;
  for (size_t p : order) {
    lhs_k.push_back(attrs.lhs_contracting[p]);
    rhs_k.push_back(attrs.rhs_contracting[p]);
  }
  const Dims lhs_free = FreeDims(lhs, attrs.lhs_batch, lhs_k);
  const Dims rhs_free = FreeDims(rhs, attrs.rhs_batch, rhs_k);
  auto data = std::make_unique<DotData>();
  data->shape.batch = Extent(lhs, attrs.lhs_batch);
  data->shape.m = Extent(lhs, lhs_free);
  data->shape.n = Extent(rhs, rhs_free);
  data->shape.k = Extent(lhs, lhs_k);
  if (InOrder(lhs, attrs.lhs_batch, lhs_free, lhs_k)) {
    data->shape.transpose_a = false;
  } else if (InOrder(lhs, attrs.lhs_batch, lhs_k, lhs_free)) {
    data->shape.transpose_a = true;
  } else {
    for (Ints part : std::initializer_list<Ints>{attrs.lhs_batch, Ints(lhs_free), Ints(lhs_k)}) {
      data->lhs_perm.insert(data->lhs_perm.end(), part.begin(), part.end());
    }
  }
  if (InOrder(rhs, attrs.rhs_batch, rhs_k, rhs_free)) {
    data->shape.transpose_b = false;
  } else if (InOrder(rhs, attrs.rhs_batch, rhs_free, rhs_k)) {
    data->shape.transpose_b = true;
  } else {
    for (Ints part : std::initializer_list<Ints>{attrs.rhs_batch, Ints(rhs_k), Ints(rhs_free)}) {
      data->rhs_perm.insert(data->rhs_perm.end(), part.begin(), part.end());
    }
  }
  const ElementType type = step->shapes[0].type;
  // An algorithm that splits its operands adds products of their parts, so it is excluded.
  data->plain_products = lhs_k.empty() && attrs.algorithm.empty() && lhs.element_type() == type &&
                         rhs.element_type() == type && IsFloat(type) && ElementTypeBytes(type) >= 2;
  step->fn = RunDot;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
