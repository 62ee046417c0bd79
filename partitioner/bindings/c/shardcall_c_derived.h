// SPDX-License-Identifier: Apache-2.0
/* Optional parts of a target beside its rule and its handler: shape inference, the
 * target or the HLO that computes its gradients, and its form under vmap. Also
 * lowerings, by which a platform replaces a call that is marked by name with a target
 * of its own. Texts and lists are copied. Since 0.3. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_DERIVED_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_DERIVED_H_

#include "shardcall/partitioner/bindings/c/shardcall_c_base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct Shardcall_Factor; /* shardcall_c_plugin.h */

/* A call whose result shapes are to be inferred: where a builder gives none, and to
 * check those in a program. The functions take the request itself. */
typedef struct Shardcall_ShapeRequest {
  size_t struct_size;
  const char* target;
  const char* backend_config;
  size_t backend_config_size;
  int32_t num_operands;
  const Shardcall_Shape* operands; /* flat leaves */
  int (*get_int)(const struct Shardcall_ShapeRequest*, const char* name, int64_t* value);
  int (*get_float)(const struct Shardcall_ShapeRequest*, const char* name, double* value);
  int (*get_bool)(const struct Shardcall_ShapeRequest*, const char* name, int* value);
  int (*get_string)(const struct Shardcall_ShapeRequest*, const char* name, const char** value,
                    size_t* size);
  /* Says why the function will return an error; the message is copied. */
  void (*set_message)(const struct Shardcall_ShapeRequest*, const char* message);
  /* Adds the next result, an array, or a token (type 17). Returns 0, or a code for
   * `infer` to return. The dims are copied. */
  int (*add_result)(const struct Shardcall_ShapeRequest*, int32_t type, int32_t rank,
                    const int64_t* dims);
  void* reserved;
} Shardcall_ShapeRequest;

typedef struct Shardcall_ShapeFunction {
  size_t struct_size;
  /* Adds the results and returns 0, or a code of absl::StatusCode. May be called on any
   * thread, and must depend on the request only. */
  int (*infer)(const Shardcall_ShapeRequest* request, void* data);
  void* data;    /* lives as long as the registration */
  int32_t tuple; /* one result is in a tuple, too; several always are */
} Shardcall_ShapeFunction;

enum { SHARDCALL_OPERAND = 0, SHARDCALL_RESULT = 1, SHARDCALL_COTANGENT = 2 };
typedef struct Shardcall_VjpArgument {
  int32_t kind;  /* SHARDCALL_OPERAND, .. of the call that is differentiated */
  int32_t index; /* flat */
} Shardcall_VjpArgument;

/* rms_norm(x, gain) -> (y, rstd) has rms_norm_bwd(dy, x, gain, rstd) -> (dx, dgain):
 * arguments {COTANGENT 0, OPERAND 0, OPERAND 1, RESULT 1}, gradients {0, 1}. The
 * VJP's target has the transposed rule unless it has one already. */
typedef struct Shardcall_Vjp {
  size_t struct_size;
  const char* target;      /* or */
  const char* computation; /* HLO text, whose parameters are `arguments` */
  const Shardcall_VjpArgument* arguments;
  int32_t num_arguments;
  int32_t num_gradients;
  const int32_t* gradients;   /* result k is the gradient of operand gradients[k] */
  const char* backend_config; /* of the VJP's call; null: that of the call itself */
  /* By factor of the target's rule: the padding value that adds nothing to gradients
   * which are sums over it; the list ends with a null name. Null: the values that the
   * rule's own pads imply. */
  const struct Shardcall_Factor* pad;
  /* Since 0.6. Not 0: a call that leaves out operands has a VJP, which takes the others
   * and gives their gradients alone. 0: it has none. */
  int32_t skip_absent_operands;
} Shardcall_Vjp;

/* Constraints that every call of a target satisfies beyond its rule, within which checks
 * of the rule make their calls: {factor "g", size "4 h"}; the elements of operand 2 are at
 * least "0" and below "s". Formulas are "4 h", "h + 1", "2 h - 1" or "7". */
typedef struct Shardcall_RelatedSize {
  const char* factor;
  const char* size;
} Shardcall_RelatedSize;
typedef struct Shardcall_Range {
  int32_t operand;
  const char* low; /* null: 0 */
  const char* high;
} Shardcall_Range;
typedef struct Shardcall_CallLimits {
  size_t struct_size;
  const Shardcall_RelatedSize* sizes;
  int32_t num_sizes;
  int32_t num_ranges;
  const Shardcall_Range* ranges;
  /* Results that are scratch memory, whose contents mean nothing: not compared. */
  const int32_t* scratch;
  int32_t num_scratch;
} Shardcall_CallLimits;

enum {
  SHARDCALL_BATCH_LEADING = 0,   /* one more leading dimension on batched operands, and results */
  SHARDCALL_BATCH_BROADCAST = 1, /* likewise, and on every operand */
  SHARDCALL_BATCH_TARGET = 2,    /* `target` does, as LEADING; it has a rule of its own */
  SHARDCALL_BATCH_LOOP = 3       /* one call after another */
};
typedef struct Shardcall_Batching {
  size_t struct_size;
  int32_t kind;
  const char* target;
} Shardcall_Batching;

/* A composite (or a plain call marked by name), or a custom call of a target that no
 * platform implements directly. The functions take the request itself. */
typedef struct Shardcall_LoweringRequest {
  size_t struct_size;
  const char* name;
  const char* version;    /* composite.version, or "" */
  const char* attributes; /* composite.attributes, or the call's backend_config */
  size_t attributes_size;
  const char* platform; /* "Host", "CUDA", .. */
  int32_t is_composite;
  int32_t num_operands;
  int32_t num_results;
  const Shardcall_Shape* operands;
  const Shardcall_Shape* results;
  int (*get_int)(const struct Shardcall_LoweringRequest*, const char* name, int64_t* value);
  int (*get_float)(const struct Shardcall_LoweringRequest*, const char* name, double* value);
  int (*get_bool)(const struct Shardcall_LoweringRequest*, const char* name, int* value);
  int (*get_string)(const struct Shardcall_LoweringRequest*, const char* name, const char** value,
                    size_t* size);
  /* Says why the lowering will return an error; the message is copied. */
  void (*set_message)(const struct Shardcall_LoweringRequest*, const char* message);
  void* reserved;
} Shardcall_LoweringRequest;

/* A custom call that replaces the call. The memory that it points to is read right
 * after the lowering has returned. */
typedef struct Shardcall_LoweredCall {
  size_t struct_size;
  const char* target;           /* null, the initial value: skip; the next lowering is asked */
  int32_t api_version;          /* 1 to 4; 0 counts as 4 */
  int32_t column_major;         /* matrices go and come back column by column */
  const char* backend_config;   /* null: the request's attributes */
  const int32_t* operand_types; /* num_operands element types, converted to; null: as they are */
  /* Results of the target; none: the call's own. Result k of the call is the target's
   * result take[k] (null: k), converted if it has another type. */
  const Shardcall_Shape* results;
  const int32_t* take;
  int32_t num_results;
} Shardcall_LoweredCall;

/* The most specific one is asked first: name and platform, name, platform, any. */
typedef struct Shardcall_Lowering {
  size_t struct_size;
  const char* name;     /* null: any */
  const char* platform; /* null: any */
  /* Returns 0 with an answer or without one, or a code of absl::StatusCode. */
  int (*lower)(const Shardcall_LoweringRequest* request, Shardcall_LoweredCall* answer, void* data);
  void* data; /* lives as long as the registration */
} Shardcall_Lowering;

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_DERIVED_H_ */
