// SPDX-License-Identifier: Apache-2.0
// What a collective instruction sends.
#ifndef SHARDCALL_PARTITIONER_IR_SHAPES_COLLECTIVE_BYTES_H_
#define SHARDCALL_PARTITIONER_IR_SHAPES_COLLECTIVE_BYTES_H_

#include <cstdint>
#include <optional>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/reshard/links.h"

namespace shardcall {
inline namespace internal {

// Bytes of the operands that are arrays.
double OperandBytes(const Module& module, const Instruction& collective);

// The collective that an op is or starts, if any.
std::optional<Collective> CollectiveOf(Opcode opcode);

// Bytes that an average device sends (CollectiveSends of sharding/backend.h), in groups of
// `group_size` devices; of a collective-permute by the share of the devices that send.
double BytesSent(const Module& module, const Instruction& collective, int64_t group_size,
                 int64_t num_devices);

// What it takes over the links that it crosses, as those of the module's Context are.
Crossing CrossingOf(const Module& module, const Instruction& collective, int64_t num_devices);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SHAPES_COLLECTIVE_BYTES_H_
