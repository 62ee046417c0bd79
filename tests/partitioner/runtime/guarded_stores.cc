// SPDX-License-Identifier: Apache-2.0
#include "guarded_stores.h"

namespace shardcall {

void StoreSeen(void* data, int64_t at) { static_cast<float*>(data)[at] = 1; }

#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
__attribute__((no_sanitize("address")))
#endif
void StoreUnseen(void* data, int64_t at) {
  volatile float* const x = static_cast<float*>(data);
  x[at] = 1;
}

}  // namespace shardcall
