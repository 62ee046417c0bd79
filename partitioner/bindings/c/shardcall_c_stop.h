// SPDX-License-Identifier: Apache-2.0
/* Ends calls of this library before they are done, in C: when somebody asks for it, or at
 * a time. Since 0.6. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_STOP_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_STOP_H_

#include "shardcall/partitioner/bindings/c/shardcall_c_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A request to stop. The caller owns it; it must outlive the scopes that refer to it. */
typedef struct Shardcall_Stop Shardcall_Stop;
SHARDCALL_EXPORT Shardcall_Error* Shardcall_Stop_Create(Shardcall_Stop** stop);
/* Any thread may call this at any time, and so may a signal handler. It lasts. */
SHARDCALL_EXPORT void Shardcall_Stop_Request(Shardcall_Stop* stop);
SHARDCALL_EXPORT void Shardcall_Stop_Destroy(Shardcall_Stop* stop); /* null: nothing */

/* From here until the scope's end, calls of the library on this thread end with E346 soon
 * after a request (status 1, cancelled), or `limit_s` seconds after this call (status 4,
 * deadline exceeded). `stop` may be null; a `limit_s` of 0 is none. A handler, or an array
 * operation, that is under way is left to its thread, with everything that it uses. Scopes
 * nest, and must end on their thread in the reverse order. */
typedef struct Shardcall_StopScope Shardcall_StopScope;
SHARDCALL_EXPORT Shardcall_Error* Shardcall_StopScope_Begin(const Shardcall_Stop* stop,
                                                            double limit_s,
                                                            Shardcall_StopScope** scope);
SHARDCALL_EXPORT void Shardcall_StopScope_End(Shardcall_StopScope* scope); /* null: nothing */

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_STOP_H_ */
