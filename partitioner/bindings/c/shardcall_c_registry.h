// SPDX-License-Identifier: Apache-2.0
/* Registration in C, under the names of jaxlib and XLA. A null registry is that of the
 * process, which independent libraries share. Thread-safe. Texts and lists are copied;
 * functions and `data` must stay valid as long as the registry and the programs made
 * with it. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_REGISTRY_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_REGISTRY_H_

#include "shardcall/partitioner/bindings/c/shardcall_c_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Shardcall_Registry Shardcall_Registry;
struct Shardcall_PjrtCallbacks; /* pjrt_partitioner.h */

/* A registry with the shipped targets. The caller owns it. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Registry_Create(Shardcall_Registry** registry);
SHARDCALL_EXPORT void Shardcall_Registry_Destroy(Shardcall_Registry* registry);

/* Registers all parts of a target: rule, batch dims or partitioner, and handler. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterTarget(Shardcall_Registry* registry,
                                                           const Shardcall_Target* target);

/* Since 0.3. Other parts of a target, whose rule must be registered before. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterVjp(Shardcall_Registry* registry,
                                                        const char* target,
                                                        const Shardcall_Vjp* vjp);
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterBatching(Shardcall_Registry* registry,
                                                             const char* target,
                                                             const Shardcall_Batching* batching);
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCallLimits(Shardcall_Registry* registry,
                                                               const char* target,
                                                               const Shardcall_CallLimits* limits);
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterShapeFunction(
    Shardcall_Registry* registry, const char* target, const Shardcall_ShapeFunction* function);
/* Programs made with the registry ask it for composites and marked calls. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterLowering(Shardcall_Registry* registry,
                                                             const Shardcall_Lowering* lowering);

/* A function as jaxlib registers it. */
typedef struct Shardcall_CustomCallTarget {
  size_t struct_size;
  const char* name;
  const char* platform;  /* "cpu", "cuda", .. or "Host", "CUDA"; null: cpu */
  void* function;        /* untyped, or XLA_FFI_Handler* */
  int32_t api_version;   /* 0: untyped, the call determines the ABI; 1: typed FFI */
  uint32_t traits;       /* 0: DEFAULT, 1: COMMAND_BUFFER_COMPATIBLE (typed only) */
  void* ffi_instantiate; /* other stages of a typed handler, or null */
  void* ffi_prepare;
  void* ffi_initialize;
} Shardcall_CustomCallTarget;
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomCallTarget(
    Shardcall_Registry* registry, const Shardcall_CustomCallTarget* target);

/* Called with every target of a platform, the existing ones first; returns 0, or a code
 * of absl::StatusCode, with which the registration then fails. */
typedef int Shardcall_CustomCallHandler(const Shardcall_CustomCallTarget* target, void* data);
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomCallHandler(
    Shardcall_Registry* registry, const char* platform, Shardcall_CustomCallHandler* handler,
    void* data);
/* Calls `visit` for each target of the platform, ordered by name, until it returns a
 * value other than 0. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_CustomCallTargets(Shardcall_Registry* registry,
                                                              const char* platform,
                                                              Shardcall_CustomCallHandler* visit,
                                                              void* data);

SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomCallPartitioner(
    Shardcall_Registry* registry, const char* name, const Shardcall_Partitioner* partitioner);
/* Calls give their batch dims in the frontend attribute num_batch_dims. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomCallAsBatchPartitionable(
    Shardcall_Registry* registry, const char* name);

/* Since 0.3. The same, and also registers with XLA: `pjrt_api` is the PJRT_Api* of its
 * plugin (null: as above). The plugin keeps the functions and `data` until the process
 * ends. If it refuses, nothing is registered. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomCallPartitionerWithApi(
    Shardcall_Registry* registry, const char* name, const Shardcall_Partitioner* partitioner,
    const void* pjrt_api);
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomCallAsBatchPartitionableWithApi(
    Shardcall_Registry* registry, const char* name, const void* pjrt_api);
/* Registers with the plugin a target of this registry, whatever its kind of rule. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_PassToPjrt(Shardcall_Registry* registry,
                                                       const char* name, const void* pjrt_api);
/* Registers with the plugin the typed handler of this registry for the platform (null:
 * cuda), since a plugin has its own registry of handlers. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_PassHandlerToPjrt(Shardcall_Registry* registry,
                                                              const char* name,
                                                              const char* platform,
                                                              const void* pjrt_api);
/* The same three callbacks for code that calls them directly, such as a trampoline for
 * jaxlib's register_custom_call_partitioner. A JAX_CustomCallPartitioner_Callbacks
 * in PJRT's layout; its dtor frees it. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_PjrtCallbacksOf(
    Shardcall_Registry* registry, const char* name, struct Shardcall_PjrtCallbacks** callbacks);

/* *type_id is 0, or the requested number; `deleter` may be null. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomTypeId(Shardcall_Registry* registry,
                                                                 const char* name,
                                                                 const char* platform,
                                                                 int64_t* type_id,
                                                                 void (*deleter)(void* object));
typedef int Shardcall_CustomTypeIdHandler(const char* name, int64_t type_id, void* data);
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomTypeIdHandler(
    Shardcall_Registry* registry, const char* platform, Shardcall_CustomTypeIdHandler* handler,
    void* data);

/* Loads a plugin or a manifest, like --plugin. A manifest of more than 4 GiB is E064. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_LoadPlugin(Shardcall_Registry* registry,
                                                       const char* path);
/* The same with another limit for manifests, in bytes, like --max-input. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_LoadPluginWithin(Shardcall_Registry* registry,
                                                             const char* path, int64_t max_input);
/* The table of `shardcall targets`. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_DescribeTargets(Shardcall_Registry* registry,
                                                            Shardcall_Text** table);

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_REGISTRY_H_ */
