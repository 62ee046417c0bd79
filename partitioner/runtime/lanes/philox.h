// SPDX-License-Identifier: Apache-2.0
// Philox4x32 with 10 rounds.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LANES_PHILOX_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LANES_PHILOX_H_

#include <cstdint>

namespace shardcall {
inline namespace internal {

// Four random words for a 128-bit counter.
void Philox4x32(uint64_t key, uint64_t low, uint64_t high, uint32_t out[4]);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LANES_PHILOX_H_
