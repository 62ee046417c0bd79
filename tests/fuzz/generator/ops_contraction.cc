// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/generator/ops.h"

namespace shardcall::generator {
namespace {

double SumOfProducts(ElementType type, double a, double b, int64_t count) {
  const double bound =
      a * b * static_cast<double>(std::max<int64_t>(count, 1)) * (IsComplex(type) ? 2 : 1);
  return IsInteger(type) && bound > 100 ? kUnbounded : bound;
}

}  // namespace

bool Generator::DotOp(Scope& s) {
  Value lhs;
  if (!Find(
          s,
          [&](Value x) {
            const ElementType t = TypeOf(s, x);
            return x.whole && t != ElementType::kPred && ElementTypeBits(t) >= 8 &&
                   (!IsFloat(t) || ElementTypeBits(t) >= 16);
          },
          &lhs)) {
    return false;
  }
  const ElementType type = TypeOf(s, lhs);
  const Dims dims = DimsOf(s, lhs);
  Dims lhs_batch, lhs_contracting, rhs_dims, roles;  // role of each rhs dim
  int64_t count = 1, free = 1;
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t role = random_.Int(0, 3);
    const int64_t d = static_cast<int64_t>(k);
    if (role == 0) {
      lhs_batch.push_back(d);
    } else if (role != 1) {
      lhs_contracting.push_back(d);
      count *= dims[k];
    } else {
      free *= dims[k];
    }
  }
  // Right dimensions: batch k is 10 + k, contracting 20 + k, free 0.
  for (size_t k = 0; k < lhs_batch.size(); ++k) roles.push_back(10 + static_cast<int64_t>(k));
  for (size_t k = 0; k < lhs_contracting.size(); ++k) roles.push_back(20 + static_cast<int64_t>(k));
  for (int64_t k = random_.Int(0, 2); k > 0; --k) roles.push_back(0);
  random_.Shuffle(&roles);
  Dims rhs_batch(lhs_batch.size()), rhs_contracting(lhs_contracting.size());
  for (size_t k = 0; k < roles.size(); ++k) {
    const int64_t d = static_cast<int64_t>(k);
    if (roles[k] >= 20) {
      rhs_contracting[roles[k] - 20] = d;
      rhs_dims.push_back(dims[lhs_contracting[roles[k] - 20]]);
    } else if (roles[k] >= 10) {
      rhs_batch[roles[k] - 10] = d;
      rhs_dims.push_back(dims[lhs_batch[roles[k] - 10]]);
    } else {
      rhs_dims.push_back(random_.Int(1, 8));
      free *= rhs_dims.back();
    }
  }
  if (free > 600) return false;
  Value rhs = Like(s, type, rhs_dims);
  double bound = SumOfProducts(type, lhs.bound, rhs.bound, count);
  if (!IsInteger(type) && bound > MaxBound(type)) {
    lhs = Bounded(s, lhs, 2);
    rhs = Bounded(s, rhs, 2);
    bound = SumOfProducts(type, lhs.bound, rhs.bound, count);
    if (bound > MaxBound(type)) return false;
  }
  DotAttrs attrs;
  attrs.lhs_batch = lhs_batch;
  attrs.lhs_contracting = lhs_contracting;
  attrs.rhs_batch = rhs_batch;
  attrs.rhs_contracting = rhs_contracting;
  ElementType to = ElementType::kInvalid;
  if (random_.Chance(30) && (type == ElementType::kBF16 || type == ElementType::kF16)) {
    to = ElementType::kF32;
  } else if (random_.Chance(30) && type == ElementType::kS8) {
    to = ElementType::kS32;
  }
  return Push(s, s.b.Dot(lhs.id, rhs.id, attrs, to), bound);
}

bool Generator::ConvolutionOp(Scope& s) {
  static const auto* const kTypes = new std::vector<ElementType>{
      ElementType::kF32, ElementType::kF32, ElementType::kF32, ElementType::kF64};
  const ElementType type = random_.Pick(*kTypes);
  const int spatial = static_cast<int>(random_.Int(1, 2));
  const bool by_batch = random_.Chance(15), by_feature = !by_batch && random_.Chance(30);
  const int64_t groups = by_batch || by_feature ? random_.Int(2, 3) : 1;
  const int64_t inputs = random_.Int(1, 3);
  const int64_t batch = random_.Int(1, 4) * (by_batch ? groups : 1);
  const int64_t outputs = random_.Int(1, 3) * groups;
  // Sizes by label: b f and the digits of the input, i o and the kernel's.
  std::string in_labels = "bf", kernel_labels = "io", out_labels = "bf";
  Dims size, stride, low, high, lhs, rhs, reversal, extents;
  int64_t count = inputs;
  for (int k = 0; k < spatial; ++k) {
    for (std::string* labels : {&in_labels, &kernel_labels, &out_labels}) {
      labels->push_back(static_cast<char>('0' + k));
    }
    const int64_t extent = random_.Int(2, 9);
    int64_t n = random_.Int(1, 3), ld = random_.Chance(20) ? 2 : 1, rd = random_.Chance(20) ? 2 : 1;
    int64_t l = random_.Int(-1, 2), h = random_.Int(-1, 2);
    if ((extent - 1) * ld + 1 + l + h < (n - 1) * rd + 1) n = 1, ld = 1, l = h = 0;
    extents.push_back(extent), size.push_back(n), stride.push_back(random_.Int(1, 2));
    low.push_back(l), high.push_back(h), lhs.push_back(ld), rhs.push_back(rd);
    reversal.push_back(random_.Chance(10));
    count *= n;
  }
  auto shuffled = [&](std::string labels) {
    std::vector<char> all(labels.begin(), labels.end());
    if (random_.Chance(50)) random_.Shuffle(&all);
    return std::string(all.begin(), all.end());
  };
  in_labels = shuffled(in_labels);
  kernel_labels = shuffled(kernel_labels);
  out_labels = shuffled(out_labels);
  Dims in_dims, kernel_dims;
  for (char c : in_labels) {
    in_dims.push_back(c == 'b'   ? batch
                      : c == 'f' ? inputs * (by_feature ? groups : 1)
                                 : extents[c - '0']);
  }
  for (char c : kernel_labels) {
    kernel_dims.push_back(c == 'i' ? inputs : c == 'o' ? outputs : size[c - '0']);
  }
  Value x = Like(s, type, in_dims), k = Like(s, type, kernel_dims);
  double bound = SumOfProducts(type, x.bound, k.bound, count);
  if (bound > MaxBound(type)) {
    x = Bounded(s, x, 8);
    k = Bounded(s, k, 8);
    bound = SumOfProducts(type, x.bound, k.bound, count);
  }
  const std::string text = absl::StrCat(in_labels, "_", kernel_labels, "->", out_labels);
  ConvolutionAttrs attrs;
  attrs.window = {size, stride, low, high, lhs, rhs, reversal};
  attrs.dim_labels = text;
  attrs.feature_group_count = by_feature ? groups : 1;
  attrs.batch_group_count = by_batch ? groups : 1;
  return Push(s, Emit(s, Opcode::kConvolution, {x.id, k.id}, Intern(attrs)), bound);
}

}  // namespace shardcall::generator
