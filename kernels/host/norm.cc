// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/host/norm.h"

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::StatusOr<NormShape> CheckNorm(const CallArguments& args, ArgumentPlace x,
                                    ArgumentPlace gain) {
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(x, kFloatTypes));
  SHARDCALL_RETURN_IF_ERROR(args.CheckLeastRank(x, 1));
  const BufferView& xb = args.at(x);
  const BufferView& gb = args.at(gain);
  const ElementType gain_types[] = {xb.type, ElementType::kF32};
  const bool only_own = xb.type == ElementType::kF32 || xb.type == ElementType::kF64;
  SHARDCALL_RETURN_IF_ERROR(
      args.CheckType(gain, absl::MakeConstSpan(gain_types, only_own ? 1 : 2)));

  NormShape shape;
  shape.width = xb.dims.back();
  shape.rows = 1;
  for (int i = 0; i + 1 < xb.rank(); ++i) shape.rows *= xb.dims[i];
  const int lead = gb.rank() - 1;
  bool fits = lead >= 0 && lead < xb.rank() && gb.dims.back() == shape.width;
  int64_t gains = 1;
  for (int i = 0; fits && i < lead; ++i) {
    fits = gb.dims[i] == xb.dims[i];
    gains *= gb.dims[i];
  }
  if (!fits) {
    return args.ShapeError(
        gain, absl::StrCat(ElementTypeName(gb.type), "[", shape.width, "], or that with leading ",
                           "dimensions of x, which is ", xb.ToString()));
  }
  shape.rows_per_gain = gains == 0 ? 1 : shape.rows / gains;
  return shape;
}

absl::Status CheckRstd(const CallArguments& args, ArgumentPlace x, ArgumentPlace rstd) {
  const BufferView& xb = args.at(x);
  const ElementType types[] = {ElementType::kF32, ElementType::kF64};
  SHARDCALL_RETURN_IF_ERROR(
      args.CheckType(rstd, absl::MakeConstSpan(types, xb.type == ElementType::kF64 ? 2 : 1)));
  return args.CheckDims(rstd, absl::MakeConstSpan(xb.dims).subspan(0, xb.rank() - 1));
}

}  // namespace internal
}  // namespace shardcall
