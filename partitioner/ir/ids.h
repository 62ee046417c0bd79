// SPDX-License-Identifier: Apache-2.0
// Strong ids of a module's instructions and computations.
#ifndef SHARDCALL_PARTITIONER_IR_IDS_H_
#define SHARDCALL_PARTITIONER_IR_IDS_H_

#include <cstdint>
#include <utility>

#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

template <typename Tag>
struct StrongId {
  uint32_t value = UINT32_MAX;
  constexpr StrongId() = default;
  constexpr explicit StrongId(uint32_t v) : value(v) {}
  constexpr bool valid() const { return value != UINT32_MAX; }
  friend constexpr bool operator==(StrongId, StrongId) = default;
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
  template <typename H>
  friend H AbslHashValue(H h, StrongId id) {
    return H::combine(std::move(h), id.value);
  }
};

using InstrId = StrongId<struct InstrTag>;  // index into Module's instructions
using CompId = StrongId<struct CompTag>;    // index into Module's computations
// A value: (instruction, flat index into its tuple shape), dense over a module.
using LeafId = StrongId<struct LeafTag>;

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_IDS_H_
