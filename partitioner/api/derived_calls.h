// SPDX-License-Identifier: Apache-2.0
// Calls derived from calls, as the target's author declared: the VJP (RegisterVjp) and the form
// under vmap (RegisterBatching).
#ifndef SHARDCALL_PARTITIONER_API_DERIVED_CALLS_H_
#define SHARDCALL_PARTITIONER_API_DERIVED_CALLS_H_

#include "shardcall/partitioner/derived/vjp.h"
#include "shardcall/partitioner/derived/vmap.h"

#endif  // SHARDCALL_PARTITIONER_API_DERIVED_CALLS_H_
