// SPDX-License-Identifier: Apache-2.0
// Trials of a reference with numbers.
#include <algorithm>
#include <limits>

#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/check/reference_body.h"
#include "shardcall/partitioner/runtime/float_arrays.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

std::vector<double> Values(const Tensor& t) {
  if (IsFloat(t.type())) return ToDoubles(t);
  std::vector<double> out;
  for (int64_t k = 0; k < t.num_elements(); ++k) {
    out.push_back(static_cast<double>(IntElement(t, k)));
  }
  return out;
}

Tensor Half(const ReferenceBody& body, int t, const Tensor& from, int atom, int64_t h) {
  const int dim = body.DimOf(t, atom);
  if (dim < 0) return from;
  Dims dims = from.dims();
  dims[dim] /= 2;
  Tensor out(from.type(), dims);
  int64_t inner = from.element_bytes(), outer = 1;
  for (int d = 0; d < dim; ++d) outer *= dims[d];
  for (int d = dim; d < out.rank(); ++d) inner *= dims[d];
  for (int64_t k = 0; k < outer; ++k) {
    std::copy_n(from.data() + (2 * k + h) * inner, inner, out.MutableData() + k * inner);
  }
  return out;
}

// Operand t with two more elements of `atom`, which are `pad`. The atom is the most major one of
// its dimension.
Tensor Padded(const ReferenceBody& body, int t, const Tensor& from, int atom, double pad) {
  Dims dims = from.dims();
  const int dim = body.DimOf(t, atom);
  if (dim < 0) return from;
  dims[dim] = dims[dim] / 3 * 5;
  Tensor out(from.type(), dims);
  if (pad == 0) {
    out = Tensor::Zeros(from.type(), dims);
  } else {
    out = FromDoubles(from.type(), dims, std::vector<double>(out.num_elements(), pad));
  }
  int64_t inner = from.element_bytes(), outer = 1;
  for (int d = 0; d < dim; ++d) outer *= dims[d];
  for (int d = dim + 1; d < from.rank(); ++d) inner *= dims[d];
  for (int64_t k = 0; k < outer; ++k) {
    std::copy_n(from.data() + k * from.dim(dim) * inner, from.dim(dim) * inner,
                out.MutableData() + k * dims[dim] * inner);
  }
  return out;
}

}  // namespace

absl::StatusOr<bool> HalvesMakeTheWhole(const ReferenceBody& body, int atom, PartialOp op) {
  SHARDCALL_ASSIGN_OR_RETURN(const Module half, body.Resized({{atom, 2}}));
  SHARDCALL_ASSIGN_OR_RETURN(const Module whole, body.Resized({{atom, 4}}));
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(whole), seed);
    const auto want = Evaluate(whole, inputs, nullptr);
    std::vector<Tensor> parts[2];
    for (int64_t h : {0, 1}) {
      std::vector<Tensor> mine;
      for (int t = 0; t < body.num_operands(); ++t) {
        mine.push_back(Half(body, t, inputs[t], atom, h));
      }
      auto got = Evaluate(half, std::move(mine), nullptr);
      if (!want.ok() || !got.ok()) return false;
      parts[h] = *std::move(got);
    }
    for (size_t r = 0; r < want->size(); ++r) {
      const int t = body.num_operands() + static_cast<int>(r);
      const Tensor& all = (*want)[r];
      if (body.Count(t, atom) > 0) {
        for (int64_t h : {0, 1}) {
          if (!Compare(Half(body, t, all, atom, h), parts[h][r], /*exact=*/false).ok) return false;
        }
        continue;
      }
      if (!IsFloat(all.type()) && !IsInteger(all.type())) return false;
      std::vector<double> x = Values(parts[0][r]);
      const std::vector<double> y = Values(parts[1][r]);
      for (size_t k = 0; k < x.size(); ++k) {
        x[k] = op == PartialOp::kSum   ? x[k] + y[k]
               : op == PartialOp::kMax ? std::max(x[k], y[k])
                                       : std::min(x[k], y[k]);
      }
      const bool same = IsFloat(all.type()) ? Compare(all, FromDoubles(all.type(), all.dims(), x),
                                                      /*exact=*/false)
                                                  .ok
                                            : x == Values(all);
      if (!same) return false;
    }
  }
  return true;
}

absl::StatusOr<std::optional<double>> PadOf(const ReferenceBody& body, int atom, PartialOp op) {
  const std::optional<double> none;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double pad = op == PartialOp::kSum ? 0 : op == PartialOp::kMax ? -kInfinity : kInfinity;
  for (int t = 0; t < body.num_operands(); ++t) {
    if (body.Count(t, atom) > 0 && pad != 0 && !IsFloat(body.type(t))) return none;
  }
  SHARDCALL_ASSIGN_OR_RETURN(const Module small, body.Resized({{atom, 3}}));
  SHARDCALL_ASSIGN_OR_RETURN(const Module large, body.Resized({{atom, 5}}));
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(small), seed);
    std::vector<Tensor> padded;
    for (int t = 0; t < body.num_operands(); ++t) {
      padded.push_back(Padded(body, t, inputs[t], atom, pad));
    }
    const auto want = Evaluate(small, inputs, nullptr);
    const auto got = Evaluate(large, padded, nullptr);
    if (!want.ok() || !got.ok()) return none;
    for (size_t r = 0; r < want->size(); ++r) {
      if (body.Count(body.num_operands() + static_cast<int>(r), atom) > 0) continue;
      if (!Compare((*want)[r], (*got)[r], /*exact=*/true).ok) return none;
    }
  }
  return std::optional<double>(pad);
}

}  // namespace internal
}  // namespace shardcall
