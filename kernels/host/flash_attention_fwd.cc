// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include "shardcall/kernels/host/attention.h"
#include "shardcall/kernels/host/kernels.h"
#include "shardcall/kernels/math/blas.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

// The softmax of a row, updated with one tile of keys at a time.
struct RowState {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;  // of exp(score - max)
};

template <typename T>
class Forward {
 public:
  explicit Forward(const AttentionShape& shape)
      : shape_(shape),
        q_(shape.queries * shape.dim),
        k_(shape.keys * shape.dim),
        v_(shape.keys * shape.value_dim),
        out_(shape.queries * shape.value_dim),
        scores_(std::min(kQueryTile, shape.queries) * std::min(kKeyTile, shape.keys)),
        lse_(shape.queries) {}

  void Run(absl::Span<const BufferView> operands, const BufferView& out, const BufferView* lse) {
    for (int64_t b = 0; b < shape_.batch; ++b) {
      for (int64_t g = 0; g < shape_.kv_heads; ++g) {
        LoadHead(shape_, operands[1], b, g, k_.data());
        LoadHead(shape_, operands[2], b, g, v_.data());
        for (int64_t h = g * shape_.group(); h < (g + 1) * shape_.group(); ++h) {
          LoadHead(shape_, operands[0], b, h, q_.data());
          Head();
          StoreHead(shape_, out, b, h, out_.data());
          if (lse == nullptr) continue;
          const int64_t at = (b * shape_.heads + h) * shape_.queries;
          StoreFloats(lse->type, lse_.data(), shape_.queries,
                      static_cast<char*>(lse->data) + at * ElementTypeBytes(lse->type));
        }
      }
    }
  }

 private:
  void Head() {
    std::fill(out_.begin(), out_.end(), T(0));
    for (int64_t i = 0; i < shape_.queries; i += kQueryTile) {
      const int64_t rows = std::min(kQueryTile, shape_.queries - i);
      rows_.assign(rows, RowState());
      const int64_t end = shape_.end_key(i + rows - 1);
      for (int64_t j = shape_.first_key(i) / kKeyTile * kKeyTile; j < end; j += kKeyTile) {
        Tile(i, rows, j, std::min(kKeyTile, shape_.keys - j));
      }
      for (int64_t r = 0; r < rows; ++r) Finish(i + r, rows_[r]);
    }
  }

  // Updates queries [i, i + rows) with keys [j, j + cols).
  void Tile(int64_t i, int64_t rows, int64_t j, int64_t cols) {
    BlasGemm(BlasOp::kNone, BlasOp::kTranspose, rows, cols, shape_.dim, T(1),
             q_.data() + i * shape_.dim, shape_.dim, k_.data() + j * shape_.dim, shape_.dim, T(0),
             scores_.data(), cols);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t first = std::clamp<int64_t>(shape_.first_key(i + r) - j, 0, cols);
      const int64_t end = std::clamp<int64_t>(shape_.end_key(i + r) - j, first, cols);
      Softmax(i + r, first, end, cols, &scores_[r * cols], &rows_[r]);
    }
    BlasGemm(BlasOp::kNone, BlasOp::kNone, rows, shape_.value_dim, cols, T(1), scores_.data(), cols,
             v_.data() + j * shape_.value_dim, shape_.value_dim, T(1),
             out_.data() + i * shape_.value_dim, shape_.value_dim);
  }

  // Turns the scores of one row into weights relative to the largest score so far, and rescales the
  // previous sums.
  void Softmax(int64_t query, int64_t first, int64_t end, int64_t cols, T* row, RowState* state) {
    const T scale = static_cast<T>(shape_.scale);
    T largest = static_cast<T>(state->largest);
    for (int64_t c = first; c < end; ++c) {
      row[c] *= scale;
      largest = std::max(largest, row[c]);
    }
    // If all scores are -inf, subtracting the largest would give NaN.
    const T base = std::isinf(largest) && largest < 0 ? T(0) : largest;
    double sum = 0;
    std::fill(row, row + first, T(0));
    for (int64_t c = first; c < end; ++c) {
      row[c] = std::exp(row[c] - base);
      sum += row[c];
    }
    std::fill(row + end, row + cols, T(0));
    if (largest != state->largest && state->sum != 0) {
      const T factor = std::exp(static_cast<T>(state->largest) - base);
      state->sum *= factor;
      for (int64_t e = 0; e < shape_.value_dim; ++e) out_[query * shape_.value_dim + e] *= factor;
    }
    state->largest = largest;
    state->sum += sum;
  }

  void Finish(int64_t query, const RowState& state) {
    lse_[query] = static_cast<T>(state.largest + std::log(state.sum));
    if (shape_.first_key(query) >= shape_.end_key(query)) return;  // attends to no key
    const T sum = static_cast<T>(state.sum);
    for (int64_t e = 0; e < shape_.value_dim; ++e) out_[query * shape_.value_dim + e] /= sum;
  }

  const AttentionShape& shape_;
  std::vector<T> q_, k_, v_, out_, scores_, lse_;
  std::vector<RowState> rows_;
};

}  // namespace

absl::Status FlashAttentionFwd(const HandlerContext& context, absl::Span<const BufferView> operands,
                               absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"q", "k", "v"}, {"out", "lse"}, 0, 1);
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_ASSIGN_OR_RETURN(const AttentionShape shape, CheckAttention(context, args, 0));
  const ElementType type = operands[0].type;
  SHARDCALL_RETURN_IF_ERROR(CheckAttentionOut(args, shape, type, Result(0)));
  const BufferView* lse = results.size() > 1 ? &results[1] : nullptr;
  if (lse != nullptr) SHARDCALL_RETURN_IF_ERROR(CheckAttentionLse(args, shape, type, Result(1)));
  if (type == ElementType::kF64) {
    Forward<double>(shape).Run(operands, results[0], lse);
  } else {
    Forward<float>(shape).Run(operands, results[0], lse);
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
