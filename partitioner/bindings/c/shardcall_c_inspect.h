// SPDX-License-Identifier: Apache-2.0
/* The target InspectSharding in C: a function is told at compile time how the
 * operand of a call is sharded. The call has the 16 bytes of Encode as its
 * backend_config, has_side_effect, and API version 1; it is gone from the
 * partitioned program. See inspect_sharding.h. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_INSPECT_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_INSPECT_H_

#include "shardcall/partitioner/bindings/c/shardcall_c_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* XLA's layout. The function sets error_txt where it fails, and with it
 * free_error, which is then called once. */
typedef struct Shardcall_InspectShardingArgs {
  const char* sharding_spec; /* a serialised xla.OpSharding */
  size_t sharding_spec_size;
  char* error_txt;
  void* error_scratch;
  void (*free_error)(struct Shardcall_InspectShardingArgs* args);
} Shardcall_InspectShardingArgs;
typedef void Shardcall_InspectSharding(void* data, Shardcall_InspectShardingArgs* args);

/* Since 0.3. `function` and `data` stay until they are forgotten, as often as they
 * were encoded; until then any thread that partitions may call them. E148: a null
 * function or place for the bytes. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_EncodeInspectShardingCallback(
    Shardcall_InspectSharding* function, void* data, char backend_config[16]);
/* E148 for bytes that no callback is encoded by. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_ForgetInspectShardingCallback(
    const char backend_config[16]);

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_INSPECT_H_ */
