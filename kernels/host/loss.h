// SPDX-License-Identifier: Apache-2.0
// Handlers of losses over a vocabulary. T is f32, bf16, f16 or f64; F is f64 for f64, else f32.
// Rows are computed one by one, in an order that depends only on v. There are no attributes.
#ifndef SHARDCALL_KERNELS_HOST_LOSS_H_
#define SHARDCALL_KERNELS_HOST_LOSS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// softmax_cross_entropy(logits T[.., v], labels I[..]) -> (loss F[..], lse F[..])
//   lse = log(sum over v of exp(logits)), loss = lse - logits[label]
// I is s32 or s64. A label outside of [0, v) has no logit: loss = lse, as with a
// one-hot row of zeros. lse may be left out. It is found as max + log(sum of
// exp(logits - max)), so no finite logits overflow. A row of -inf gives lse =
// -inf, one with +inf or NaN gives NaN. Gradient: softmax_cross_entropy_bwd.
absl::Status SoftmaxCrossEntropy(const HandlerContext& context,
                                 absl::Span<const BufferView> operands,
                                 absl::Span<const BufferView> results);

// softmax_cross_entropy_bwd(dloss F[..], logits T[.., v], labels I[..], lse F[..])
//   -> dlogits T[.., v] = dloss (exp(logits - lse) - onehot(label))
absl::Status SoftmaxCrossEntropyBwd(const HandlerContext& context,
                                    absl::Span<const BufferView> operands,
                                    absl::Span<const BufferView> results);

// softmax_cross_entropy_shard(logits T[.., v], labels I[..])
//   -> (max F[..], sum F[..], label_logit F[..])
// What a part of the vocabulary adds to the loss: the largest logit, the sum of
// exp(logits - max), and the logit of the label, or 0 where it is not in [0, v).
// A row of -inf (or of no logits) gives max = -inf and sum = 0.
absl::Status SoftmaxCrossEntropyShard(const HandlerContext& context,
                                      absl::Span<const BufferView> operands,
                                      absl::Span<const BufferView> results);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_LOSS_H_
