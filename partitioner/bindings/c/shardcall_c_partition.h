// SPDX-License-Identifier: Apache-2.0
/* Partitioning a custom call by three callbacks in C. They see the call and its
 * mesh, not the engine, and build the local program through functions in their
 * argument, so that a plugin links nothing.
 *
 * Functions that return int return 0, or a code of absl::StatusCode. The first failure
 * is kept, and fails the callback whatever the callback returns. Misuse is such an error,
 * never a crash. Everything that a callback is given is valid until it returns. The
 * first two callbacks may be called on any thread, and must depend on their arguments
 * only. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_PARTITION_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_PARTITION_H_

#include "shardcall/partitioner/bindings/c/shardcall_c_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How an array is sharded on the mesh. */
typedef struct Shardcall_Sharding Shardcall_Sharding;

typedef struct Shardcall_Axis {
  size_t struct_size;
  const char* name; /* the program's, or x0, x1, .. */
  int64_t size;
  int32_t is_manual; /* manual at the call: the callback must not shard over it */
} Shardcall_Axis;

typedef struct Shardcall_KeyValue {
  size_t struct_size;
  const char* key;
  const char* value;
} Shardcall_KeyValue;

typedef struct Shardcall_Alias {
  size_t struct_size;
  int32_t result; /* this result shares the buffer of this operand */
  int32_t operand;
} Shardcall_Alias;

/* The call: global shapes of flat leaves, its attributes, its mesh. Lists of
 * axis names end with null; null itself is the empty list. */
typedef struct Shardcall_CallView {
  size_t struct_size;
  const char* target;
  const char* instruction;
  const char* backend_config;
  size_t backend_config_size;
  int32_t api_version; /* 1 to 4; 0: unknown */
  int32_t has_side_effect;
  int32_t num_operands;
  int32_t num_results;
  int32_t num_operand_layouts; /* 0 if the call requires none */
  int32_t num_axes;
  int32_t num_frontend_attributes;
  int32_t num_aliases;
  const Shardcall_Shape* operands;
  const Shardcall_Shape* results;
  const Shardcall_Shape* operand_layouts;
  const Shardcall_Axis* axes;
  const Shardcall_KeyValue* frontend_attributes;
  const Shardcall_Alias* aliases;

  /* Attributes of a typed call; 0, and `value` unchanged, if there is none. */
  int (*get_int)(const struct Shardcall_CallView*, const char* name, int64_t* value);
  int (*get_float)(const struct Shardcall_CallView*, const char* name, double* value);
  int (*get_bool)(const struct Shardcall_CallView*, const char* name, int* value);
  int (*get_string)(const struct Shardcall_CallView*, const char* name, const char** value,
                    size_t* size);

  /* Shardings; null, with the reason kept, if one is invalid. Texts are such as
   * [{"data"}, {}] or {devices=[4,2]<=[8]}. */
  const Shardcall_Sharding* (*parse_sharding)(const struct Shardcall_CallView*, const char* text,
                                              int32_t rank);
  const Shardcall_Sharding* (*replicated)(const struct Shardcall_CallView*, int32_t rank);
  /* `sharding` with dimension `dim` over these axes, major to minor. */
  const Shardcall_Sharding* (*with_dim)(const struct Shardcall_CallView*,
                                        const Shardcall_Sharding* sharding, int32_t dim,
                                        const char* const* axes);
  /* `sharding` with the dims of its own and partial sums over these axes. */
  const Shardcall_Sharding* (*with_partial)(const struct Shardcall_CallView*,
                                            const Shardcall_Sharding* sharding, const char* op,
                                            const char* const* axes);
  const char* (*sharding_text)(const struct Shardcall_CallView*, const Shardcall_Sharding*);
  int32_t (*sharding_rank)(const struct Shardcall_CallView*, const Shardcall_Sharding*);
  int64_t (*num_shards)(const struct Shardcall_CallView*, const Shardcall_Sharding*, int32_t dim);

  /* Says why the callback will return an error; the message is copied. */
  void (*set_message)(const struct Shardcall_CallView*, const char* message);
  void* reserved;
} Shardcall_CallView;

/* A value of the local program. */
typedef struct Shardcall_Value {
  uint32_t id;
} Shardcall_Value;

/* With this `partition` builds the local program, the same for every device. `op` is
 * one of add, max, min, mul, and, or, xor. */
typedef struct Shardcall_PartitionContext {
  size_t struct_size;
  const Shardcall_CallView* call;
  /* As propagation decided; null for tokens and wrong indices. */
  const Shardcall_Sharding* (*operand_sharding)(const struct Shardcall_PartitionContext*,
                                                int32_t i);
  const Shardcall_Sharding* (*result_sharding)(const struct Shardcall_PartitionContext*, int32_t i);
  /* Operand i resharded; for tokens `sharding` is null. Tiles have ceil(D/n) elements;
   * those past the end of the dimension are undefined. */
  int (*operand)(const struct Shardcall_PartitionContext*, int32_t i,
                 const Shardcall_Sharding* sharding, Shardcall_Value* value);
  int (*shape)(const struct Shardcall_PartitionContext*, Shardcall_Value value,
               Shardcall_Shape* shape);
  /* The same call (its attributes, side effects, aliases and layouts) on local
   * operands; result k has the local shape of shardings[k], one for each of num_results. */
  int (*call_target)(const struct Shardcall_PartitionContext*, const Shardcall_Value* operands,
                     const Shardcall_Sharding* const* shardings, Shardcall_Value* results);
  /* An HLO module as text, whose entry takes the operands as its parameters; the
   * flat leaves of its root are the results. */
  int (*add_program)(const struct Shardcall_PartitionContext*, const char* hlo, size_t size,
                     const Shardcall_Value* operands, int32_t num_operands,
                     Shardcall_Value* results, int32_t num_results);
  int (*partition_id)(const struct Shardcall_PartitionContext*, Shardcall_Value* id); /* u32[] */
  int (*axis_index)(const struct Shardcall_PartitionContext*, const char* const* axes,
                    Shardcall_Value* index); /* s32[] */
  int (*all_reduce)(const struct Shardcall_PartitionContext*, Shardcall_Value x, const char* op,
                    const char* const* axes, Shardcall_Value* result);
  int (*all_gather)(const struct Shardcall_PartitionContext*, Shardcall_Value x, int32_t dim,
                    const char* const* axes, Shardcall_Value* result);
  int (*reduce_scatter)(const struct Shardcall_PartitionContext*, Shardcall_Value x, int32_t dim,
                        const char* op, const char* const* axes, Shardcall_Value* result);
  /* Dimension `split` is cut into one part per device of the group; the received parts
   * are concatenated along `join`. */
  int (*all_to_all)(const struct Shardcall_PartitionContext*, Shardcall_Value x, int32_t split,
                    int32_t join, const char* const* axes, Shardcall_Value* result);
  /* Coordinates along the axes; a device that is not a target gets zeros. */
  int (*collective_permute)(const struct Shardcall_PartitionContext*, Shardcall_Value x,
                            const char* const* axes, const int64_t* sources, const int64_t* targets,
                            int32_t num_pairs, Shardcall_Value* result);
  /* x is a shard under `from` of an array with the dims of `global`. */
  int (*reshard)(const struct Shardcall_PartitionContext*, Shardcall_Value x,
                 const Shardcall_Shape* global, const Shardcall_Sharding* from,
                 const Shardcall_Sharding* to, Shardcall_Value* result);
  int (*set_result)(const struct Shardcall_PartitionContext*, int32_t i, Shardcall_Value value,
                    const Shardcall_Sharding* sharding);
  void* reserved;
  /* Since 0.3. As call_target, with another backend_config: a dictionary "{..}" for a
   * typed call, any bytes for others; null: that of the call. */
  int (*call_target_with)(const struct Shardcall_PartitionContext*, const char* backend_config,
                          size_t backend_config_size, const Shardcall_Value* operands,
                          const Shardcall_Sharding* const* shardings, Shardcall_Value* results);
} Shardcall_PartitionContext;

/* A partitioner of a target; a callback may be null. */
typedef struct Shardcall_Partitioner {
  size_t struct_size;
  int32_t version; /* of the callbacks' behaviour, part of cache keys; 0 counts as 1 */
  int32_t can_side_effecting_have_replicated_sharding;
  /* A user wants `result` sharded as `user`; sets *answer to the sharding it can have, or null. */
  int (*propagate_user_sharding)(const Shardcall_CallView* call, int32_t result,
                                 const Shardcall_Sharding* user, const Shardcall_Sharding** answer,
                                 void* data);
  /* Sets results[k], for each of num_results; they are null initially. */
  int (*infer_sharding_from_operands)(const Shardcall_CallView* call,
                                      const Shardcall_Sharding* const* operands,
                                      const Shardcall_Sharding** results, void* data);
  int (*partition)(const Shardcall_PartitionContext* context, void* data);
  void* data; /* lives as long as the registration */
  /* Since 0.3: propagate_user_sharding reads only results and backend_config, so
   * XLA, which passes no more, may call it (see pjrt_api in
   * shardcall_c_registry.h). */
  int32_t propagate_reads_result_alone;
} Shardcall_Partitioner;

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_PARTITION_H_ */
