// SPDX-License-Identifier: Apache-2.0
// The version, which ranks compare at start. The builds of the library and of the Python package
// read it from here.
#ifndef SHARDCALL_PARTITIONER_API_VERSION_H_
#define SHARDCALL_PARTITIONER_API_VERSION_H_

#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_VERSION_H_
