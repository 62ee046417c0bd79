// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/kernels.h"
#include "shardcall/kernels/host/norm.h"
#include "shardcall/kernels/math/row_sums.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

// With n = x rstd and g = dy gain: dx = rstd (g - n mean(g n)), and
// dgain = the sum over rows of dy n, in f64.
template <typename T>
void Run(const NormShape& shape, absl::Span<const BufferView> operands,
         absl::Span<const BufferView> results) {
  const BufferView &dy = operands[0], &x = operands[1], &gain = operands[2], &rstd = operands[3];
  const BufferView &dx = results[0], &dgain = results[1];
  const int64_t d = shape.width, row_bytes = d * ElementTypeBytes(x.type);
  const int64_t gain_bytes = d * ElementTypeBytes(gain.type);
  const int64_t gains = gain.num_elements() / (d == 0 ? 1 : d);
  std::vector<T> norm(d), grad(d), scale(d);
  std::vector<double> sum(d);
  for (int64_t g = 0; g < gains && d > 0; ++g) {
    LoadFloats(gain.type, static_cast<const char*>(gain.data) + g * gain_bytes, d, scale.data());
    sum.assign(d, 0);
    for (int64_t r = g * shape.rows_per_gain; r < (g + 1) * shape.rows_per_gain; ++r) {
      LoadFloats(x.type, static_cast<const char*>(x.data) + r * row_bytes, d, norm.data());
      LoadFloats(dy.type, static_cast<const char*>(dy.data) + r * row_bytes, d, grad.data());
      T inverse;
      LoadFloats(rstd.type, static_cast<const char*>(rstd.data) + r * ElementTypeBytes(rstd.type),
                 1, &inverse);
      for (int64_t i = 0; i < d; ++i) {
        norm[i] *= inverse;
        sum[i] += static_cast<double>(grad[i]) * norm[i];
        grad[i] *= scale[i];
      }
      const T mean = static_cast<T>(RowDot(grad.data(), norm.data(), d) / static_cast<double>(d));
      for (int64_t i = 0; i < d; ++i) grad[i] = inverse * (grad[i] - norm[i] * mean);
      StoreFloats(dx.type, grad.data(), d, static_cast<char*>(dx.data) + r * row_bytes);
    }
    StoreFloats(dgain.type, sum.data(), d, static_cast<char*>(dgain.data) + g * gain_bytes);
  }
}

}  // namespace

absl::Status RmsNormBwd(const HandlerContext& context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"dy", "x", "gain", "rstd"},
                           {"dx", "dgain"});
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_ASSIGN_OR_RETURN(const NormShape shape, CheckNorm(args, Operand(1), Operand(2)));
  for (ArgumentPlace like_x : {Operand(0), Result(0)}) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(like_x, {args.operand(1).type}));
    SHARDCALL_RETURN_IF_ERROR(args.CheckDims(like_x, args.operand(1).dims));
  }
  SHARDCALL_RETURN_IF_ERROR(CheckRstd(args, Operand(1), Operand(3)));
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Result(1), {args.operand(2).type}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Result(1), args.operand(2).dims));
  SHARDCALL_RETURN_IF_ERROR(args.Located(context.attribute_map().OnlyKnown({})));

  if (operands[1].type == ElementType::kF64) {
    Run<double>(shape, operands, results);
  } else {
    Run<float>(shape, operands, results);
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
