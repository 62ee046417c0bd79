// SPDX-License-Identifier: Apache-2.0
// Common to flash_attention_fwd and flash_attention_bwd: shapes, attributes, the keys that a query
// attends to, and the layout of a head in its buffer.
#ifndef SHARDCALL_KERNELS_HOST_ATTENTION_H_
#define SHARDCALL_KERNELS_HOST_ATTENTION_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/kernels/host/arguments.h"

namespace shardcall {
inline namespace internal {

// Scores are computed in tiles of queries by keys, so that memory is linear in the lengths. Up to
// kKeyTile keys, the softmax of a row takes one pass.
inline constexpr int64_t kQueryTile = 128;
inline constexpr int64_t kKeyTile = 512;

struct AttentionShape {
  int64_t batch = 0;
  int64_t heads = 0;  // of q
  int64_t kv_heads = 0;
  int64_t queries = 0;       // length of q
  int64_t keys = 0;          // length of k and v
  int64_t dim = 0;           // of q and k
  int64_t value_dim = 0;     // of v and out
  bool heads_first = false;  // layout "bhsd"
  bool causal = false;
  int64_t window = -1;
  double scale = 0;

  int64_t group() const { return kv_heads == 0 ? 0 : heads / kv_heads; }

  // Query i attends to keys [first_key(i), end_key(i)); both bounds grow with i.
  int64_t first_key(int64_t i) const {
    return window >= 0 ? std::clamp<int64_t>(i - window, 0, keys) : 0;
  }
  int64_t end_key(int64_t i) const {
    if (causal) return std::min(keys, i + 1);
    return window >= 0 && i < keys - window ? std::min(keys, i + window + 1) : keys;
  }
};

// Checks q, k and v (operands first, first + 1, first + 2) and the attributes.
absl::StatusOr<AttentionShape> CheckAttention(const HandlerContext& context,
                                              const CallArguments& args, int first);

// Checks types and shapes of the related arrays: out (and its gradient), which is like q but with
// v's head dimension, and lse.
absl::Status CheckAttentionOut(const CallArguments& args, const AttentionShape& shape,
                               ElementType type, ArgumentPlace out);
absl::Status CheckAttentionLse(const CallArguments& args, const AttentionShape& shape,
                               ElementType type, ArgumentPlace lse);

// One head of a buffer [b, s, h, e] or [b, h, s, e] as a dense [s, e] of T.
template <typename T>
void LoadHead(const AttentionShape& shape, const BufferView& buffer, int64_t batch, int64_t head,
              T* to);
template <typename T>
void StoreHead(const AttentionShape& shape, const BufferView& buffer, int64_t batch, int64_t head,
               const T* from);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_ATTENTION_H_
