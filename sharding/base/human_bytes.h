// SPDX-License-Identifier: Apache-2.0
// Byte counts as text for people.
#ifndef SHARDCALL_SHARDING_BASE_HUMAN_BYTES_H_
#define SHARDCALL_SHARDING_BASE_HUMAN_BYTES_H_

#include <string>

#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// "512 B", "1.75 GiB".
std::string HumanBytes(double bytes);

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_HUMAN_BYTES_H_
