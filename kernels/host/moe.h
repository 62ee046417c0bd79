// SPDX-License-Identifier: Apache-2.0
// Tokens to experts and back, as handlers. Each of t tokens chooses `a` experts of e;
// an expert has c places (its capacity). T is f32, bf16, f16 or f64. A choice whose
// expert is not in [0, e), or whose place is not in [0, c), is dropped: it goes
// nowhere and adds nothing. Places are given, so what is dropped does not depend on
// how tokens or experts are sharded. Leading dimensions are independent groups.
#ifndef SHARDCALL_KERNELS_HOST_MOE_H_
#define SHARDCALL_KERNELS_HOST_MOE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// moe_positions(experts s32[.., t, a]) -> positions s32[.., t, a]
//   how many choices before this one chose the same expert: its place there
// Before are the choices of earlier tokens, then earlier ones of the same token; with
// the attribute choices_first (bool, false) all first choices stand before all second
// ones. A negative expert is no choice: it has place -1 and takes none.
absl::Status MoePositions(const HandlerContext& context, absl::Span<const BufferView> operands,
                          absl::Span<const BufferView> results);

// moe_dispatch(tokens T[.., t, d], experts s32[.., t, a], positions s32[.., t, a])
//   -> inputs T[.., e, c, d]
//   inputs[experts[t, a], positions[t, a]] += tokens[t], from zeros; no attributes
// Its gradient is moe_combine with gates of 1.
absl::Status MoeDispatch(const HandlerContext& context, absl::Span<const BufferView> operands,
                         absl::Span<const BufferView> results);

// moe_combine(outputs T[.., e, c, d], experts s32[.., t, a], positions s32[.., t, a],
//             gates G[.., t, a]) -> y T[.., t, d]
//   y[t] = sum over a of gates[t, a] outputs[experts[t, a], positions[t, a]]
// G is T, or f32 for a narrow T. Summed in the order of choices, in f32 for narrow T;
// no attributes. The gradient of outputs is moe_dispatch of the tokens' gradients
// where all gates are 1.
absl::Status MoeCombine(const HandlerContext& context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_MOE_H_
