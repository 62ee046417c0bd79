// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/fuse/fused_reduce.h"

#include <algorithm>
#include <limits>

#include "shardcall/partitioner/runtime/lanes/scalar_ops.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

// The partial sums of more columns would not fit into the cache together with the blocks.
constexpr int64_t kMostColumns = 256;

}  // namespace

bool CanFuseReduction(const MonoidReduceData& data) {
  const bool monoid = data.monoid == PartialOp::kSum || data.monoid == PartialOp::kMax ||
                      data.monoid == PartialOp::kMin;
  const bool columns =
      data.inner == 1 || (data.monoid == PartialOp::kSum && data.inner <= kMostColumns);
  return monoid && columns && data.perm.empty() &&
         (data.type == ElementType::kF32 || data.type == ElementType::kBF16) && data.outer > 0 &&
         data.extent > 0 && data.inner > 0;
}

FusedReduction::FusedReduction(const MonoidReduceData& data, const void* init, void* out)
    : data_(data), sum_(data.monoid == PartialOp::kSum), out_(static_cast<char*>(out)) {
  LoadFloats(data.type, init, 1, &init_);
  if (sum_) {
    sum_row_ = FindSumRow();
    sum_columns_ = FindSumColumns();
    parts_.resize(kReduceParts * data.inner);
  } else {
    extreme_ = FindExtremeRow(data.monoid == PartialOp::kMax);
  }
  Start();
}

void FusedReduction::Start() {
  row_ = 0;
  std::fill(parts_.begin(), parts_.end(), kNoSum);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  best_ = data_.monoid == PartialOp::kMax ? -kInfinity : kInfinity;
}

void FusedReduction::Finish() {
  if (sum_) {
    double results[kMostColumns];
    for (int64_t c = 0; c < data_.inner; ++c) {
      results[c] = FinishSum(init_, parts_.data(), data_.inner, c);
    }
    StoreFloats(data_.type, results, data_.inner, out_);
  } else {
    const float result = data_.monoid == PartialOp::kMax ? scalar_ops::Maximum::Do(init_, best_)
                                                         : scalar_ops::Minimum::Do(init_, best_);
    StoreFloats(data_.type, &result, 1, out_);
  }
  out_ += data_.inner * ElementTypeBytes(data_.type);
  Start();
}

void FusedReduction::Feed(const float* x, int64_t n) {
  if (data_.inner == 1) {
    while (n > 0) {
      const int64_t count = std::min(n, data_.extent - row_);
      if (sum_) {
        sum_row_(x, count, row_, parts_.data());
      } else {
        extreme_(x, count, &best_);
      }
      x += count;
      n -= count;
      row_ += count;
      if (row_ == data_.extent) Finish();
    }
    return;
  }
  while (n > 0) {
    const int64_t count = std::min(n, data_.inner - column_);
    sum_columns_(x, count, parts_.data() + row_ % kReduceParts * data_.inner + column_);
    x += count;
    n -= count;
    column_ += count;
    if (column_ < data_.inner) return;
    column_ = 0;
    if (++row_ == data_.extent) Finish();
  }
}

}  // namespace internal
}  // namespace shardcall
