// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/kernels.h"
#include "shardcall/kernels/host/norm.h"
#include "shardcall/kernels/math/row_sums.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/narrow_float.h"

namespace shardcall {
inline namespace internal {
namespace {

template <typename T>
void Run(const NormShape& shape, double eps, const BufferView& x, const BufferView& gain,
         const BufferView& y, const BufferView* rstd) {
  const int64_t d = shape.width;
  std::vector<T> row(d), scale(d);
  const auto* xp = static_cast<const char*>(x.data);
  const auto* gp = static_cast<const char*>(gain.data);
  auto* yp = static_cast<char*>(y.data);
  const int64_t row_bytes = d * ElementTypeBytes(x.type);
  for (int64_t r = 0; r < shape.rows; ++r) {
    if (r % shape.rows_per_gain == 0) {
      LoadFloats(gain.type, gp, d, scale.data());
      gp += d * ElementTypeBytes(gain.type);
    }
    LoadFloats(x.type, xp + r * row_bytes, d, row.data());
    const double mean = RowDot(row.data(), row.data(), d) / static_cast<double>(d);
    const T inverse = static_cast<T>(1 / std::sqrt(mean + eps));
    for (T& v : row) v *= inverse;
    if (ElementTypeBytes(x.type) < 4) {
      // Round to T before the multiplication with the gain, like the unfused form.
      StoreFloats(x.type, row.data(), d, yp + r * row_bytes);
      LoadFloats(x.type, yp + r * row_bytes, d, row.data());
    }
    for (int64_t i = 0; i < d; ++i) row[i] *= scale[i];
    StoreFloats(x.type, row.data(), d, yp + r * row_bytes);
    if (rstd != nullptr) {
      StoreFloats(rstd->type, &inverse, 1,
                  static_cast<char*>(rstd->data) + r * ElementTypeBytes(rstd->type));
    }
  }
}

}  // namespace

absl::StatusOr<RmsNormCall> CheckRmsNorm(const CallArguments& args, const HandlerContext& context) {
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  RmsNormCall call;
  SHARDCALL_ASSIGN_OR_RETURN(call.shape, CheckNorm(args, Operand(0), Operand(1)));
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Result(0), {args.operand(0).type}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Result(0), args.operand(0).dims));
  if (args.num_results() > 1) {
    SHARDCALL_RETURN_IF_ERROR(CheckRstd(args, Operand(0), Result(1)));
    call.rstd = &args.result(1);
  }
  const AttributeMapView& attributes = context.attribute_map();
  SHARDCALL_RETURN_IF_ERROR(args.Located(attributes.OnlyKnown({"eps"})));
  SHARDCALL_ASSIGN_ATTRIBUTE(call.eps, args, attributes.GetFloat("eps", 1e-5));
  if (!(call.eps >= 0) || std::isinf(call.eps)) {
    return args.AttributeError("eps", "a finite number that is not negative",
                               absl::StrCat(call.eps));
  }
  return call;
}

absl::Status RmsNorm(const HandlerContext& context, absl::Span<const BufferView> operands,
                     absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"x", "gain"}, {"y", "rstd"}, 0, 1);
  SHARDCALL_ASSIGN_OR_RETURN(const RmsNormCall call, CheckRmsNorm(args, context));
  if (operands[0].type == ElementType::kF64) {
    Run<double>(call.shape, call.eps, operands[0], operands[1], results[0], call.rstd);
  } else {
    Run<float>(call.shape, call.eps, operands[0], operands[1], results[0], call.rstd);
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
