// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/kernels.h"
#include "shardcall/kernels/host/relu.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kBF16, ElementType::kF16,
                                  ElementType::kF64, ElementType::kS8,   ElementType::kS16,
                                  ElementType::kS32, ElementType::kS64};

template <typename T>
void Run(const BufferView& x, const BufferView& y) {
  const auto* from = static_cast<const T*>(x.data);
  auto* to = static_cast<T*>(y.data);
  const int64_t n = x.num_elements();
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] <= T(0) ? T(0) : from[i];  // NaN is not <= 0
}

// f16 and bf16 by their bits: a value with a sign bit becomes zero, unless it is NaN.
void RunBits(const BufferView& x, const BufferView& y, uint16_t infinity) {
  const auto* from = static_cast<const uint16_t*>(x.data);
  auto* to = static_cast<uint16_t*>(y.data);
  const int64_t n = x.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    const bool nan = (from[i] & 0x7fff) > infinity;
    to[i] = (from[i] & 0x8000) && !nan ? 0 : from[i];
  }
}

template <typename T>
void RunBackward(const BufferView& dy, const BufferView& x, const BufferView& dx) {
  const auto* from = static_cast<const T*>(dy.data);
  const auto* at = static_cast<const T*>(x.data);
  auto* to = static_cast<T*>(dx.data);
  const int64_t n = x.num_elements();
  for (int64_t i = 0; i < n; ++i) to[i] = at[i] > T(0) ? from[i] : T(0);
}

// f16 and bf16 by their bits: dy where x is neither zero, negative nor NaN.
void RunBackwardBits(const BufferView& dy, const BufferView& x, const BufferView& dx,
                     uint16_t infinity) {
  const auto* from = static_cast<const uint16_t*>(dy.data);
  const auto* at = static_cast<const uint16_t*>(x.data);
  auto* to = static_cast<uint16_t*>(dx.data);
  const int64_t n = x.num_elements();
  for (int64_t i = 0; i < n; ++i) to[i] = at[i] > 0 && at[i] <= infinity ? from[i] : 0;
}

}  // namespace

absl::Status CheckRelu(const CallArguments& args, const HandlerContext& context) {
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(0), kTypes));
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Result(0), {args.operand(0).type}));
  SHARDCALL_RETURN_IF_ERROR(args.CheckDims(Result(0), args.operand(0).dims));
  return args.Located(context.attribute_map().OnlyKnown({}));
}

absl::Status CustomRelu(const HandlerContext& context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"x"}, {"y"});
  SHARDCALL_RETURN_IF_ERROR(CheckRelu(args, context));
  const BufferView &x = operands[0], &y = results[0];
  switch (x.type) {
    case ElementType::kF32: Run<float>(x, y); break;
    case ElementType::kF64: Run<double>(x, y); break;
    case ElementType::kBF16: RunBits(x, y, 0x7f80); break;
    case ElementType::kF16: RunBits(x, y, 0x7c00); break;
    case ElementType::kS8: Run<int8_t>(x, y); break;
    case ElementType::kS16: Run<int16_t>(x, y); break;
    case ElementType::kS32: Run<int32_t>(x, y); break;
    default: Run<int64_t>(x, y);
  }
  return absl::OkStatus();
}

absl::Status CustomReluBwd(const HandlerContext& context, absl::Span<const BufferView> operands,
                           absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"dy", "x"}, {"dx"});
  SHARDCALL_RETURN_IF_ERROR(args.CheckCounts());
  SHARDCALL_RETURN_IF_ERROR(args.CheckType(Operand(0), kFloatTypes));
  for (ArgumentPlace place : {Operand(1), Result(0)}) {
    SHARDCALL_RETURN_IF_ERROR(args.CheckType(place, {operands[0].type}));
    SHARDCALL_RETURN_IF_ERROR(args.CheckDims(place, operands[0].dims));
  }
  SHARDCALL_RETURN_IF_ERROR(args.Located(context.attribute_map().OnlyKnown({})));
  const BufferView &dy = operands[0], &x = operands[1], &dx = results[0];
  switch (x.type) {
    case ElementType::kF64: RunBackward<double>(dy, x, dx); break;
    case ElementType::kBF16: RunBackwardBits(dy, x, dx, 0x7f80); break;
    case ElementType::kF16: RunBackwardBits(dy, x, dx, 0x7c00); break;
    default: RunBackward<float>(dy, x, dx);
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
