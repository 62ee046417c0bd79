// SPDX-License-Identifier: Apache-2.0
/* The C interface, whole. Plugins need shardcall_c_plugin.h alone, and link
 * nothing; programs that register, partition and run link the library. */
#ifndef SHARDCALL_PARTITIONER_API_SHARDCALL_C_H_
#define SHARDCALL_PARTITIONER_API_SHARDCALL_C_H_

#include "partitioner/api/shardcall_c_base.h"
#include "partitioner/api/shardcall_c_check.h"
#include "partitioner/api/shardcall_c_derived.h"
#include "partitioner/api/shardcall_c_inspect.h"
#include "partitioner/api/shardcall_c_partition.h"
#include "partitioner/api/shardcall_c_plugin.h"
#include "partitioner/api/shardcall_c_program.h"
#include "partitioner/api/shardcall_c_registry.h"

#endif /* SHARDCALL_PARTITIONER_API_SHARDCALL_C_H_ */
