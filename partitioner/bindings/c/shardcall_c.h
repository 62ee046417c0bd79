// SPDX-License-Identifier: Apache-2.0
/* The complete C interface. Plugins need only shardcall_c_plugin.h, and link nothing;
 * programs that register, partition and run link the library. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_H_

#include "shardcall/partitioner/bindings/c/shardcall_c_base.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_check.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_derived.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_inspect.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_partition.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_plugin.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_program.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_registry.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_stop.h"

#endif /* SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_H_ */
