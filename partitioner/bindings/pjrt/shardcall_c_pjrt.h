// SPDX-License-Identifier: Apache-2.0
/* PJRT plugins in C, since 0.5: XLA's CPUs, GPUs and TPUs run partitioned programs, and
 * plugins convert StableHLO. The caller owns the object that a function returns through its
 * last argument; on an error the argument is unchanged. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_SHARDCALL_C_PJRT_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_SHARDCALL_C_PJRT_H_

#include "shardcall/partitioner/bindings/c/shardcall_c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A plugin's devices in this process; not thread-safe. */
typedef struct Shardcall_PjrtEngine Shardcall_PjrtEngine;

/* An option of the plugin's client: `value` is a number, "true", "false" or a text. */
typedef struct Shardcall_PjrtOption {
  size_t struct_size;
  const char* name;
  const char* value;
} Shardcall_PjrtOption;

/* Loads the plugin, which stays loaded until the process ends; its client is made when a
 * program is run, for that program's number of devices. E333, E334. */
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

/* A program compiled once, and arrays that stay on the engine's devices between executions.
 * Both keep alive what they need of the program and the engine, whose handles may be
 * destroyed. Several threads may execute at once. */
typedef struct Shardcall_PjrtExecutable Shardcall_PjrtExecutable;
typedef struct Shardcall_PjrtArray Shardcall_PjrtArray;

SHARDCALL_EXPORT Shardcall_Error* Shardcall_Program_CompileForPjrt(
    const Shardcall_Program* program, Shardcall_PjrtEngine* engine,
    Shardcall_PjrtExecutable** executable);
SHARDCALL_EXPORT void Shardcall_PjrtExecutable_Destroy(Shardcall_PjrtExecutable* executable);
/* Flat leaves of the entry's parameters and results. */
SHARDCALL_EXPORT int32_t
Shardcall_PjrtExecutable_NumInputs(const Shardcall_PjrtExecutable* executable);
SHARDCALL_EXPORT int32_t
Shardcall_PjrtExecutable_NumOutputs(const Shardcall_PjrtExecutable* executable);
/* Shards a global array and puts it on the devices, as one of the inputs. E313. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_PjrtExecutable_Put(
    const Shardcall_PjrtExecutable* executable, int32_t input, const Shardcall_Buffer* buffer,
    Shardcall_PjrtArray** array);
/* `inputs` are arrays of programs of the same engine with the shardings that this program
 * requires, else E313. `outputs` has space for all outputs of the program, which stay on the
 * devices. Unless `donate` is 0, donated inputs are consumed: the program overwrites them, and
 * their handles are destroyed and set to null in the list once the execution has begun, even
 * if it then fails. A consumed handle may be in the list only once. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_PjrtExecutable_Execute(
    const Shardcall_PjrtExecutable* executable, Shardcall_PjrtArray** inputs, int32_t num_inputs,
    int32_t donate, Shardcall_PjrtArray** outputs, int32_t num_outputs);
/* The global array, as one buffer. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_PjrtArray_ToHost(const Shardcall_PjrtArray* array,
                                                             Shardcall_Buffers** buffer);
SHARDCALL_EXPORT void Shardcall_PjrtArray_Destroy(Shardcall_PjrtArray* array);

/* Converts StableHLO, as text or bytecode, by the plugin to a binary HloModuleProto, which
 * Shardcall_Module_Read accepts. E333, E334, E340. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_StablehloToHlo(const char* plugin, const char* data,
                                                           size_t size, Shardcall_Text** hlo);

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_PJRT_SHARDCALL_C_PJRT_H_ */
