// SPDX-License-Identifier: Apache-2.0
// What handlers of the test do to float32 buffers, by code that AddressSanitizer sees
// and by code that it does not.
#ifndef SHARDCALL_TESTS_PARTITIONER_RUNTIME_GUARDED_STORES_H_
#define SHARDCALL_TESTS_PARTITIONER_RUNTIME_GUARDED_STORES_H_

#include <cstdint>

namespace shardcall {

void StoreSeen(void* data, int64_t at);
void StoreUnseen(void* data, int64_t at);

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_RUNTIME_GUARDED_STORES_H_
