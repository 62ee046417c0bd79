// SPDX-License-Identifier: Apache-2.0
/* The function that the target InspectSharding calls, in C: see inspect_sharding.h and
 * shardcall_c_inspect.h. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_INSPECT_CALLBACK_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_INSPECT_CALLBACK_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* XLA's layout. On failure the function sets error_txt, and also free_error, which is
 * then called once. */
typedef struct Shardcall_InspectShardingArgs {
  const char* sharding_spec; /* a serialised xla.OpSharding */
  size_t sharding_spec_size;
  char* error_txt;
  void* error_scratch;
  void (*free_error)(struct Shardcall_InspectShardingArgs* args);
} Shardcall_InspectShardingArgs;
typedef void Shardcall_InspectSharding(void* data, Shardcall_InspectShardingArgs* args);

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_XLA_INSPECT_CALLBACK_H_ */
