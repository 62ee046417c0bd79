// SPDX-License-Identifier: Apache-2.0
/* Programs in C: read, propagate, partition, explain, run, verify. The caller owns the
 * object that a function returns through its last argument; on an error the argument
 * is unchanged. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_PROGRAM_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_PROGRAM_H_

#include "shardcall/partitioner/bindings/c/shardcall_c_registry.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A verified HLO module. It does not change: any threads may read, partition and run it
 * at once. */
typedef struct Shardcall_Module Shardcall_Module;
/* HLO text, or a binary HloModuleProto or HloProto. `name` is for messages. Custom
 * calls of shipped targets, and of those in the registry of the process, may be
 * written without a result shape. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Module_Read(const char* data, size_t size,
                                                        const char* name,
                                                        Shardcall_Module** module);
/* Since 0.4. The same with the targets of a registry. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Module_ReadWith(Shardcall_Registry* registry,
                                                            const char* data, size_t size,
                                                            const char* name,
                                                            Shardcall_Module** module);
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Module_Print(const Shardcall_Module* module,
                                                         Shardcall_Text** text);
/* A binary HloModuleProto. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Module_Serialize(const Shardcall_Module* module,
                                                             Shardcall_Text** bytes);
SHARDCALL_EXPORT void Shardcall_Module_Destroy(Shardcall_Module* module);

typedef struct Shardcall_Options {
  size_t struct_size;
  Shardcall_Registry* registry;       /* null: that of the process */
  int64_t num_partitions;             /* 0: what the module says */
  int32_t no_propagate;               /* 1: unannotated values are replicated */
  const char* const* allow_replicate; /* targets that may be gathered; ends with null */
  int64_t max_reshard_bytes;          /* 0: no bound */
  double deadline_s;                  /* of a wait for another device; 0: 60 */
  const char* conflicts;              /* what takes an axis that two dimensions of a value could
                                         have: "wait", "larger" or "smaller"; null or "cheapest":
                                         what leads to the cheapest plan; others: E212 */
  const char* cost;                   /* the machine that plans are compared for, as --cost has it:
                                         "h100,latency=5e-6"; null: the default one; E211 */
  int64_t max_memory;                 /* bytes of a device at its peak; 0: no bound; E210 */
  const char* search;                 /* for which programs the shardings of values that nothing
                                         annotates are chosen together by cost: "none" or "all";
                                         null or "small": those of up to 350 instructions; others:
                                         E213. Without effect beside an order of `conflicts` */
  int32_t strict_partial; /* 1: sums over devices are reduced before they are multiplied,
                             divided or used in a dot */
} Shardcall_Options;      /* null in place of options: all of them zero */

/* The module annotated with the decided shardings; with no_propagate it partitions to
 * the same program. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_PropagateModule(const Shardcall_Module* module,
                                                            const Shardcall_Options* options,
                                                            Shardcall_Text** text);

/* A partitioned program. It keeps alive what it needs of module and registry. */
typedef struct Shardcall_Program Shardcall_Program;
SHARDCALL_EXPORT Shardcall_Error* Shardcall_PartitionModule(const Shardcall_Module* module,
                                                            const Shardcall_Options* options,
                                                            Shardcall_Program** program);
SHARDCALL_EXPORT void Shardcall_Program_Destroy(Shardcall_Program* program);
SHARDCALL_EXPORT int64_t Shardcall_Program_NumPartitions(const Shardcall_Program* program);
/* The per-device module. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Program_Print(const Shardcall_Program* program,
                                                          Shardcall_Text** text);
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Program_Serialize(const Shardcall_Program* program,
                                                              Shardcall_Text** bytes);
/* The JSON of `shardcall partition --report`. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Program_Report(const Shardcall_Program* program,
                                                           Shardcall_Text** json);
/* `format` is "text", "json" or "html"; null: text. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Program_Explain(const Shardcall_Program* program,
                                                            const char* format,
                                                            Shardcall_Text** text);
/* A contract such as "all-gather=0, bytes<=1GiB": E221 if it is broken. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Program_Expect(const Shardcall_Program* program,
                                                           const char* contract);
/* The cache key of the rule of a custom call of the module, by its name. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Program_RuleKey(const Shardcall_Program* program,
                                                            const char* instruction,
                                                            Shardcall_Text** key);

/* Arrays that the caller owns. */
typedef struct Shardcall_Buffers Shardcall_Buffers;
SHARDCALL_EXPORT int32_t Shardcall_Buffers_Count(const Shardcall_Buffers* buffers);
/* Null for an index that does not exist; lives as long as `buffers`. */
SHARDCALL_EXPORT const Shardcall_Buffer* Shardcall_Buffers_Get(const Shardcall_Buffers* buffers,
                                                               int32_t index);
SHARDCALL_EXPORT void Shardcall_Buffers_Destroy(Shardcall_Buffers* buffers);

/* Runs on devices in this process. Inputs and outputs are global arrays, the flat leaves
 * of the entry's parameters and results. Inputs are copied. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Program_Run(const Shardcall_Program* program,
                                                        const Shardcall_Buffer* inputs,
                                                        int32_t num_inputs,
                                                        Shardcall_Buffers** outputs);
/* Runs the module on one device, annotations ignored. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Module_Evaluate(const Shardcall_Module* module,
                                                            Shardcall_Registry* registry,
                                                            const Shardcall_Buffer* inputs,
                                                            int32_t num_inputs,
                                                            Shardcall_Buffers** outputs);
/* Compares the partitioned with the unpartitioned program on random inputs. Returns the
 * JSON of `shardcall verify`, with the outcome in "status". */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Module_Verify(const Shardcall_Module* module,
                                                          const Shardcall_Options* options,
                                                          uint64_t seed, Shardcall_Text** json);

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_PROGRAM_H_ */
