// SPDX-License-Identifier: Apache-2.0
// Inputs of collectives as a function of the rank, and reductions element by
// element as the interface defines them, written apart from the library's.
#ifndef SHARDCALL_TESTS_COLLECTIVES_REFERENCE_H_
#define SHARDCALL_TESTS_COLLECTIVES_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "shardcall/collectives/communicator.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall::testing {

using Bytes = std::vector<unsigned char>;

const std::vector<ElementType>& ReducibleTypes();
const std::vector<ReduceKind>& AllKinds();

// What `rank` contributes to call `seed`: the same wherever it is computed.
// Floats are finite, of both signs and several magnitudes, so that the order of
// a sum shows in its last bits.
// With SetExactData(true) they are small integers, whose sums and products of a
// few are exact in every order, for backends that have an order of their own.
void SetExactData(bool exact);
Bytes Data(int rank, uint32_t seed, ElementType type, int64_t count);
Bytes RawData(int rank, uint32_t seed, int64_t bytes);

Bytes ReferenceReduce(ReduceKind kind, ElementType type, const std::vector<Bytes>& inputs,
                      int64_t first, int64_t count);

}  // namespace shardcall::testing

#endif  // SHARDCALL_TESTS_COLLECTIVES_REFERENCE_H_
