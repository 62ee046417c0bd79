// SPDX-License-Identifier: Apache-2.0
// What most programs need: #include "shardcall/shardcall.h". The command's own functions, a
// checker of rules, the runtime on MPI and NCCL, and the C interface have headers of their own;
// README.md of each folder lists them.
#ifndef SHARDCALL_PARTITIONER_API_SHARDCALL_H_
#define SHARDCALL_PARTITIONER_API_SHARDCALL_H_

#include "shardcall/kernels/builtin.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/api/executable.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/api/version.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"

#endif  // SHARDCALL_PARTITIONER_API_SHARDCALL_H_
