// SPDX-License-Identifier: Apache-2.0
/* Checks a registered target's rule by running its handler, in C. Since 0.4. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_CHECK_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_CHECK_H_

#include "shardcall/partitioner/bindings/c/shardcall_c_program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Shardcall_CheckOptions {
  size_t struct_size;
  Shardcall_Registry* registry;    /* null: that of the process */
  const Shardcall_Module* program; /* whose calls of the target are checked; null: those that
                                    * the rule says. Batch dims and callbacks need one. */
  uint64_t seed;                   /* of the random inputs */
  int32_t vjp;                     /* 1: its VJP, and the rule of that */
  double deadline_s;               /* of each call of the handler; 0: 20 */
} Shardcall_CheckOptions;          /* null in place of options: all of them zero */

/* `*holds` is 1 if the rule holds, and 0 if it does not, which is not an error. `json`
 * is the output of `shardcall check-rule`: verdict, findings with counter-examples,
 * suggestions, and untested parts; the caller owns it. Either may be null. */
SHARDCALL_EXPORT Shardcall_Error* Shardcall_CheckRule(const char* target,
                                                      const Shardcall_CheckOptions* options,
                                                      int32_t* holds, Shardcall_Text** json);

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_CHECK_H_ */
