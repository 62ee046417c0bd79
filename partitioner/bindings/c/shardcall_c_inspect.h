// SPDX-License-Identifier: Apache-2.0
/* The target InspectSharding in C: a function is called at compile time with the
 * sharding of the call's operand. The call has the 16 bytes of
 * Shardcall_EncodeInspectShardingCallback as its backend_config, has_side_effect, and
 * API version 1; it is removed from the partitioned program. See inspect_sharding.h. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_INSPECT_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_INSPECT_H_

#include "shardcall/partitioner/bindings/c/shardcall_c_base.h"
#include "shardcall/partitioner/bindings/xla/inspect_callback.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Since 0.3. `function` and `data` must stay valid until they have been forgotten as
 * often as they were encoded; until then any thread that partitions may call them.
 * E148: `function` or `backend_config` is null. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_EncodeInspectShardingCallback(
    Shardcall_InspectSharding* function, void* data, char backend_config[16]);
/* E148 for bytes that do not encode a callback. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_ForgetInspectShardingCallback(
    const char backend_config[16]);

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_INSPECT_H_ */
