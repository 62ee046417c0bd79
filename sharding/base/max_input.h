// SPDX-License-Identifier: Apache-2.0
// How much is read of a file.
#ifndef SHARDCALL_SHARDING_BASE_MAX_INPUT_H_
#define SHARDCALL_SHARDING_BASE_MAX_INPUT_H_

#include <cstdint>

#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// The bytes that a program or a manifest may have, and an .npz file beside the arrays that are
// read of it, where nothing else is said: 4 GiB. A protobuf message has at most 2 GiB, and text of
// a million instructions about 200 MB.
inline constexpr int64_t kMaxInput = int64_t{4} << 30;

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_MAX_INPUT_H_
