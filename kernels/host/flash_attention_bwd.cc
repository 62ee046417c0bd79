// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "shardcall/kernels/host/attention.h"
#include "shardcall/kernels/host/kernels.h"
#include "shardcall/kernels/math/blas.h"
#include "shardcall/kernels/math/row_sums.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

// With p = exp(scale q k^T - lse) and delta_i = sum over e of dout_ie out_ie:
//   dv = p^T dout
//   ds = scale p (dout v^T - delta)
//   dq = ds k, dk = ds^T q
// The weights p are made anew tile by tile; the heads of q that share a head of
// k and v add to its gradients in their order.
template <typename T>
class Backward {
 public:
  explicit Backward(const AttentionShape& shape)
      : shape_(shape),
        q_(shape.queries * shape.dim),
        k_(shape.keys * shape.dim),
        v_(shape.keys * shape.value_dim),
        out_(shape.queries * shape.value_dim),
        dout_(shape.queries * shape.value_dim),
        dq_(shape.queries * shape.dim),
        dk_(shape.keys * shape.dim),
        dv_(shape.keys * shape.value_dim),
        lse_(shape.queries),
        delta_(shape.queries),
        weights_(std::min(kQueryTile, shape.queries) * std::min(kKeyTile, shape.keys)),
        dscores_(weights_.size()) {}

  void Run(absl::Span<const BufferView> operands, absl::Span<const BufferView> results) {
    const BufferView& lse = operands[5];
    for (int64_t b = 0; b < shape_.batch; ++b) {
      for (int64_t g = 0; g < shape_.kv_heads; ++g) {
        LoadHead(shape_, operands[2], b, g, k_.data());
        LoadHead(shape_, operands[3], b, g, v_.data());
        std::fill(dk_.begin(), dk_.end(), T(0));
        std::fill(dv_.begin(), dv_.end(), T(0));
        for (int64_t h = g * shape_.group(); h < (g + 1) * shape_.group(); ++h) {
          LoadHead(shape_, operands[0], b, h, dout_.data());
          LoadHead(shape_, operands[1], b, h, q_.data());
          LoadHead(shape_, operands[4], b, h, out_.data());
          const int64_t at = (b * shape_.heads + h) * shape_.queries;
          LoadFloats(lse.type, static_cast<const char*>(lse.data) + at * ElementTypeBytes(lse.type),
                     shape_.queries, lse_.data());
          Head();
          StoreHead(shape_, results[0], b, h, dq_.data());
        }
        StoreHead(shape_, results[1], b, g, dk_.data());
        StoreHead(shape_, results[2], b, g, dv_.data());
      }
    }
  }

 private:
  void Head() {
    const int64_t f = shape_.value_dim;
    for (int64_t i = 0; i < shape_.queries; ++i) {
      delta_[i] = static_cast<T>(RowDot(dout_.data() + i * f, out_.data() + i * f, f));
    }
    std::fill(dq_.begin(), dq_.end(), T(0));
    for (int64_t i = 0; i < shape_.queries; i += kQueryTile) {
      const int64_t rows = std::min(kQueryTile, shape_.queries - i);
      const int64_t end = shape_.end_key(i + rows - 1);
      for (int64_t j = shape_.first_key(i) / kKeyTile * kKeyTile; j < end; j += kKeyTile) {
        Tile(i, rows, j, std::min(kKeyTile, shape_.keys - j));
      }
    }
  }

  void Tile(int64_t i, int64_t rows, int64_t j, int64_t cols) {
    const int64_t e = shape_.dim, f = shape_.value_dim;
    const T *q = q_.data() + i * e, *k = k_.data() + j * e, *v = v_.data() + j * f;
    const T* dout = dout_.data() + i * f;
    BlasGemm(BlasOp::kNone, BlasOp::kTranspose, rows, cols, e, T(1), q, e, k, e, T(0),
             weights_.data(), cols);
    BlasGemm(BlasOp::kNone, BlasOp::kTranspose, rows, cols, f, T(1), dout, f, v, f, T(0),
             dscores_.data(), cols);
    const T scale = static_cast<T>(shape_.scale);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t first = std::clamp<int64_t>(shape_.first_key(i + r) - j, 0, cols);
      const int64_t end = std::clamp<int64_t>(shape_.end_key(i + r) - j, first, cols);
      T *p = &weights_[r * cols], *ds = &dscores_[r * cols];
      std::fill(p, p + first, T(0));
      std::fill(ds, ds + first, T(0));
      for (int64_t c = first; c < end; ++c) {
        p[c] = std::exp(p[c] * scale - lse_[i + r]);
        ds[c] = p[c] * (ds[c] - delta_[i + r]) * scale;
      }
      std::fill(p + end, p + cols, T(0));
      std::fill(ds + end, ds + cols, T(0));
    }
    BlasGemm(BlasOp::kTranspose, BlasOp::kNone, cols, f, rows, T(1), weights_.data(), cols, dout, f,
             T(1), dv_.data() + j * f, f);
    BlasGemm(BlasOp::kNone, BlasOp::kNone, rows, e, cols, T(1), dscores_.data(), cols, k, e, T(1),
             dq_.data() + i * e, e);
    BlasGemm(BlasOp::kTranspose, BlasOp::kNone, cols, e, rows, T(1), dscores_.data(), cols, q, e,
             T(1), dk_.data() + j * e, e);
  }

  const AttentionShape& shape_;
  std::vector<T> q_, k_, v_, out_, dout_, dq_, dk_, dv_, lse_, delta_, weights_, dscores_;
};

}  // namespace

absl::Status FlashAttentionBwd(const HandlerContext& context, absl::Span<const BufferView> operands,
                               absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"dout", "q", "k", "v", "out", "lse"},
                           {"dq", "dk", "dv"});
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_ASSIGN_OR_RETURN(const AttentionShape shape, CheckAttention(context, args, 1));
  const ElementType type = operands[1].type;
  SHARDCALL_RETURN_IF_ERROR(CheckAttentionOut(args, shape, type, Operand(0)));
  SHARDCALL_RETURN_IF_ERROR(CheckAttentionOut(args, shape, type, Operand(4)));
  SHARDCALL_RETURN_IF_ERROR(CheckAttentionLse(args, shape, type, Operand(5)));
  for (int i = 0; i < 3; ++i) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(Result(i), {type}));
    SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Result(i), operands[1 + i].dims));
  }
  if (type == ElementType::kF64) {
    Backward<double>(shape).Run(operands, results);
  } else {
    Backward<float>(shape).Run(operands, results);
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
