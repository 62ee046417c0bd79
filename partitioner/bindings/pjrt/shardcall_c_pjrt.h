// SPDX-License-Identifier: Apache-2.0
/* PJRT plugins in C, since 0.5: XLA's CPUs, GPUs and TPUs run what is partitioned, and
 * convert StableHLO. What a function gives through its last argument the caller owns; it is
 * left alone where there is an error. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_SHARDCALL_C_PJRT_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_SHARDCALL_C_PJRT_H_

#include "partitioner/api/shardcall_c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A plugin's devices in this process; one thread at a time. */
typedef struct Shardcall_PjrtEngine Shardcall_PjrtEngine;

/* What the plugin's client is made with: `value` is a number, "true", "false" or a text. */
typedef struct Shardcall_PjrtOption {
  size_t struct_size;
  const char* name;
  const char* value;
} Shardcall_PjrtOption;

/* Loads the plugin, which stays loaded until the process ends; its client is made when a
 * program is run, for as many devices. E333, E334. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_PjrtEngine_Create(const char* plugin,
                                                              const Shardcall_PjrtOption* options,
                                                              int32_t num_options,
                                                              Shardcall_PjrtEngine** engine);
SHARDCALL_EXPORT void Shardcall_PjrtEngine_Destroy(Shardcall_PjrtEngine* engine);

/* Shardcall_Program_Run and Shardcall_Module_Verify on the engine's devices. E334 to E337. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Program_RunOnPjrt(const Shardcall_Program* program,
                                                              Shardcall_PjrtEngine* engine,
                                                              const Shardcall_Buffer* inputs,
                                                              int32_t num_inputs,
                                                              Shardcall_Buffers** outputs);
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Module_VerifyOnPjrt(const Shardcall_Module* module,
                                                                const Shardcall_Options* options,
                                                                Shardcall_PjrtEngine* engine,
                                                                uint64_t seed,
                                                                Shardcall_Text** json);

/* StableHLO, as text or bytecode, as a binary HloModuleProto, which Shardcall_Module_Read
 * takes; converted by the plugin. E333, E334, E340. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_StablehloToHlo(const char* plugin, const char* data,
                                                           size_t size, Shardcall_Text** hlo);

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_PJRT_SHARDCALL_C_PJRT_H_ */
