// SPDX-License-Identifier: Apache-2.0
/* Registration in C, under the names that jaxlib and XLA have for it. A null
 * registry is that of the process, which libraries share that know nothing of
 * each other. Any thread may call. Texts and lists are copied; functions and
 * `data` live as long as the registry and the programs made with it. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_REGISTRY_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_REGISTRY_H_

#include "shardcall/partitioner/bindings/c/shardcall_c_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Shardcall_Registry Shardcall_Registry;
struct Shardcall_PjrtCallbacks; /* pjrt_partitioner.h */

/* With the shipped targets. The caller owns it. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Registry_Create(Shardcall_Registry** registry);
SHARDCALL_EXPORT void Shardcall_Registry_Destroy(Shardcall_Registry* registry);

/* A target with all it has: rule, batch dims or partitioner, and handler. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterTarget(Shardcall_Registry* registry,
                                                           const Shardcall_Target* target);

/* Since 0.3. What such a target has besides; its rule is registered before. */
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
  int32_t api_version;   /* 0: untyped, the ABI is what the call says; 1: typed FFI */
  uint32_t traits;       /* 0: DEFAULT, 1: COMMAND_BUFFER_COMPATIBLE (typed only) */
  void* ffi_instantiate; /* other stages of a typed handler, or null */
  void* ffi_prepare;
  void* ffi_initialize;
} Shardcall_CustomCallTarget;
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomCallTarget(
    Shardcall_Registry* registry, const Shardcall_CustomCallTarget* target);

/* Is given every target of a platform, those registered before it came first;
 * returns 0, or a code of absl::StatusCode that the registration then has. */
typedef int Shardcall_CustomCallHandler(const Shardcall_CustomCallTarget* target, void* data);
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomCallHandler(
    Shardcall_Registry* registry, const char* platform, Shardcall_CustomCallHandler* handler,
    void* data);
/* Calls `visit` for each target of the platform, by name, until it returns other
 * than 0. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_CustomCallTargets(Shardcall_Registry* registry,
                                                              const char* platform,
                                                              Shardcall_CustomCallHandler* visit,
                                                              void* data);

SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomCallPartitioner(
    Shardcall_Registry* registry, const char* name, const Shardcall_Partitioner* partitioner);
/* Calls say their batch dims in the frontend attribute num_batch_dims. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomCallAsBatchPartitionable(
    Shardcall_Registry* registry, const char* name);

/* Since 0.3. The same, and a live XLA has the registration too: `pjrt_api` is the
 * PJRT_Api* of its plugin (null: as above). The plugin keeps the functions and
 * `data` for the life of the process. Where it refuses, nothing is registered. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomCallPartitionerWithApi(
    Shardcall_Registry* registry, const char* name, const Shardcall_Partitioner* partitioner,
    const void* pjrt_api);
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomCallAsBatchPartitionableWithApi(
    Shardcall_Registry* registry, const char* name, const void* pjrt_api);
/* Gives the plugin a target that has any rule here. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_PassToPjrt(Shardcall_Registry* registry,
                                                       const char* name, const void* pjrt_api);
/* Gives the plugin the typed handler that is registered here for the platform (null:
 * cuda): a plugin has handlers of its own. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_PassHandlerToPjrt(Shardcall_Registry* registry,
                                                              const char* name,
                                                              const char* platform,
                                                              const void* pjrt_api);
/* The same three callbacks for whoever calls them himself, such as a trampoline of
 * jaxlib's register_custom_call_partitioner. A JAX_CustomCallPartitioner_Callbacks
 * in PJRT's layout; its dtor frees it. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_PjrtCallbacksOf(
    Shardcall_Registry* registry, const char* name, struct Shardcall_PjrtCallbacks** callbacks);

/* *type_id is 0, or the number wanted; `deleter` may be null. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomTypeId(Shardcall_Registry* registry,
                                                                 const char* name,
                                                                 const char* platform,
                                                                 int64_t* type_id,
                                                                 void (*deleter)(void* object));
typedef int Shardcall_CustomTypeIdHandler(const char* name, int64_t type_id, void* data);
SHARDCALL_EXPORT Shardcall_Error* Shardcall_RegisterCustomTypeIdHandler(
    Shardcall_Registry* registry, const char* platform, Shardcall_CustomTypeIdHandler* handler,
    void* data);

/* A plugin or a manifest, as --plugin takes it. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_LoadPlugin(Shardcall_Registry* registry,
                                                       const char* path);
/* The table of `shardcall targets`. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_DescribeTargets(Shardcall_Registry* registry,
                                                            Shardcall_Text** table);

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_REGISTRY_H_ */
