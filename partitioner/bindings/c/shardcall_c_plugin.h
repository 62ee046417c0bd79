// SPDX-License-Identifier: Apache-2.0
/* Targets in C, and plugins: shared libraries that register targets, their sharding
 * rules and their handlers with a program that loads them, such as
 * `shardcall run --plugin=libk.so`.
 *
 * A plugin exports one function:
 *
 *   const Shardcall_Plugin* shardcall_plugin(void);
 *
 * The version is that of this header: a program accepts plugins of its own major
 * version whose minor version is not newer than its own. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_PLUGIN_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_PLUGIN_H_

#include "shardcall/partitioner/bindings/c/shardcall_c_base.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_derived.h"
#include "shardcall/partitioner/bindings/c/shardcall_c_partition.h"

#ifdef __cplusplus
extern "C" {
#endif

struct Shardcall_FfiDevice; /* kernels/ffi/shardcall_ffi.h */

/* The argument of a handler. The functions take the call itself. Those that get an
 * attribute return 0 and leave `value` unchanged if there is none of that kind. */
typedef struct Shardcall_Call {
  size_t struct_size;
  const char* target;
  const char* instruction;
  const char* backend_config;
  size_t backend_config_size;
  const Shardcall_Buffer* operands;
  const Shardcall_Buffer* results;
  int32_t num_operands;
  int32_t num_results;
  int32_t device_ordinal;
  int32_t num_devices;
  int64_t run_id;
  int (*get_int)(const struct Shardcall_Call*, const char* name, int64_t* value);
  int (*get_float)(const struct Shardcall_Call*, const char* name, double* value);
  int (*get_bool)(const struct Shardcall_Call*, const char* name, int* value);
  /* Not zero-terminated; valid as long as the call. */
  int (*get_string)(const struct Shardcall_Call*, const char* name, const char** value,
                    size_t* size);
  /* Says why the handler will return an error; the message is copied. */
  void (*set_message)(const struct Shardcall_Call*, const char* message);
  void* reserved; /* of the program that loads the plugin */
  /* Since 0.3. The device that the handler runs on: its coordinates in the mesh,
   * collectives with other devices, and the computations that the call carries, as for
   * handlers of the typed FFI (kernels/ffi/shardcall_ffi.h). Valid until the handler
   * returns. Absent in older programs, whose struct_size is smaller. */
  const struct Shardcall_FfiDevice* (*device)(const struct Shardcall_Call*);
} Shardcall_Call;

/* Returns 0, or a code of absl::StatusCode (3: invalid argument, 13: internal).
 * May be called on several devices' threads at once. */
typedef int Shardcall_Handler(const Shardcall_Call* call, void* data);

typedef struct Shardcall_Factor {
  const char* name;
  const char* op; /* reduction: add, max, min, mul, and, or, xor */
  double value;   /* pad: the identity; size: the number of elements */
} Shardcall_Factor;

/* An attribute of the call that follows its shard, with a formula over the sizes that
 * the rule's factors have there: {"grid_x", "m / 16"}. */
typedef struct Shardcall_Attribute {
  const char* name;
  const char* formula;
} Shardcall_Attribute;

/* One signature of a target, as the fields of the same names below. */
typedef struct Shardcall_Rule {
  size_t struct_size;
  const char* rule;
  /* Element types, such as "T, s32 -> T": then a builder call needs no shape, and a
   * wrong shape in a program is an error; of several rules, this one is for calls of
   * these types alone. Null: not declared. */
  const char* types;
  const char* const* need_replication;
  const char* const* permutation;
  const char* const* blocked;
  const Shardcall_Factor* reduction;
  const Shardcall_Factor* pad;
  const Shardcall_Factor* sizes;
  /* Since 0.6: the attributes that calls with this signature have, in the form of a typed
   * call, "{mode = \"gelu\", axis = 1 : i64}". Null: any. */
  const char* when;
  /* Since 0.6: attributes that follow the shard; the list ends with a null name. */
  const Shardcall_Attribute* attributes;
} Shardcall_Rule;

/* A target. Set one of rule, batch_dims and partitioner, or a handler of one kind, or
 * both. Texts and lists are copied. */
typedef struct Shardcall_Target {
  size_t struct_size;
  const char* name;
  const char* platform;       /* null: Host */
  const char* backend_config; /* null: the rule is for every call */

  /* The rule, e.g. "b k -> b", with the factors that are not pass-through. */
  const char* rule;
  int32_t has_batch_dims;
  int32_t batch_dims;
  const char* const* need_replication; /* lists of names end with null */
  const char* const* permutation;
  const char* const* blocked;
  const Shardcall_Factor* reduction; /* lists of factors end with a null name */
  const Shardcall_Factor* pad;
  const Shardcall_Factor* sizes;

  /* A handler of this interface, for calls of every API version. */
  Shardcall_Handler* handler;
  void* handler_data;
  /* Or a handler of XLA's typed FFI (XLA_FFI_Handler*), by stages. */
  void* ffi_instantiate;
  void* ffi_prepare;
  void* ffi_initialize;
  void* ffi_execute;
  /* Or an untyped function, with its API version 1 to 3; 0: that of the call. */
  void* untyped;
  int32_t untyped_api_version;

  /* Since 0.2: or a partitioner in place of rule and batch_dims. */
  const Shardcall_Partitioner* partitioner;
  /* The calls give their number of batch dimensions in num_batch_dims. */
  int32_t batch_dims_of_call;

  /* Since 0.3: the target needs a rule for them, too. */
  const Shardcall_Vjp* vjp;
  const Shardcall_Batching* batching;
  /* Since 0.3: HLO text that defines what the target computes, instead of a rule: rule
   * and shapes are derived from it (partition_like), and check-rule compares with it. */
  const char* reference;
  /* Since 0.3: shape inference; takes precedence over that by a rule. */
  const Shardcall_ShapeFunction* shapes;
  /* Since 0.3: several signatures instead of `rule`; a call uses the one that has its
   * numbers of operands, results and dimensions, its types and its attributes, and the
   * narrowest if several do. Two that fit some call equally well are refused. The list
   * ends with null. */
  const Shardcall_Rule* const* rules;
  /* Since 0.3: sizes that follow from others, ranges of indices. */
  const Shardcall_CallLimits* limits;
  /* Since 0.6: of `rule`: attributes that follow the shard; ends with a null name. */
  const Shardcall_Attribute* attributes;
} Shardcall_Target;

/* The functions that the loading program offers to the plugin. */
typedef struct Shardcall_Registrar {
  size_t struct_size;
  int32_t version_major;
  int32_t version_minor;
  /* Returns 0, or a code of absl::StatusCode; the first failure is also kept,
   * with its message, and fails the loading of the plugin. */
  int (*register_target)(const struct Shardcall_Registrar*, const Shardcall_Target* target);
  /* The number of a type of XLA's typed FFI; *type_id is 0, or the requested number. */
  int (*register_ffi_type)(const struct Shardcall_Registrar*, const char* name, int64_t* type_id,
                           void (*deleter)(void* object));
  void* reserved;
  /* Since 0.3; absent in older programs, whose struct_size is smaller. */
  int (*register_lowering)(const struct Shardcall_Registrar*, const Shardcall_Lowering* lowering);
} Shardcall_Registrar;

typedef struct Shardcall_Plugin {
  size_t struct_size;
  int32_t version_major; /* SHARDCALL_C_MAJOR and _MINOR of the plugin's header */
  int32_t version_minor;
  const char* name;
  /* Registers the targets; returns 0 or a code of absl::StatusCode. */
  int (*register_targets)(const Shardcall_Registrar* registrar);
} Shardcall_Plugin;

#define SHARDCALL_PLUGIN_EXPORT SHARDCALL_EXPORT
SHARDCALL_PLUGIN_EXPORT const Shardcall_Plugin* shardcall_plugin(void);

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_PLUGIN_H_ */
