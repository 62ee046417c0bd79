// SPDX-License-Identifier: Apache-2.0
// Elements as integers that are ordered alike: floats by total order.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_SORT_KEYS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_SORT_KEYS_H_

#include <cstdint>
#include <vector>

#include "sharding/element_type.h"

namespace shardcall {

// keys[i] < keys[j] iff element i precedes element j. Not for complex types.
void OrderKeys(ElementType type, const void* elements, int64_t count, std::vector<int64_t>* keys);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_SORT_KEYS_H_
