// SPDX-License-Identifier: Apache-2.0
/* Used by every part of the C interface: the version, initialisation of structs,
 * errors, texts, buffers. */
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_BASE_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_BASE_H_

#include <stddef.h>
#include <stdint.h>

#define SHARDCALL_C_MAJOR 0
#define SHARDCALL_C_MINOR 6

/* Every struct has its size in its first field, and new versions only append fields.
 * Initialise it with SHARDCALL_INIT(Type), which sets all other fields to zero. */
#ifdef __cplusplus
template <typename T>
inline T ShardcallInit() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}
#define SHARDCALL_INIT(type) ShardcallInit<type>()
extern "C" {
#else
#define SHARDCALL_INIT(type) {.struct_size = sizeof(type)}
#endif

#define SHARDCALL_EXPORT __attribute__((visibility("default")))

/* The version of the library, which may be newer than this header. */
SHARDCALL_EXPORT void Shardcall_Version(int32_t* major, int32_t* minor);

/* An error; null means success. The caller owns it. Its texts live as long as it
 * does. */
typedef struct Shardcall_Error Shardcall_Error;
/* The whole diagnostic: code, message, where, expected, found, fix. */
SHARDCALL_EXPORT const char* Shardcall_Error_Text(const Shardcall_Error* error);
/* "E101", or "" for an error without such a code. */
SHARDCALL_EXPORT const char* Shardcall_Error_Code(const Shardcall_Error* error);
/* What is wrong, without code and fix. */
SHARDCALL_EXPORT const char* Shardcall_Error_Message(const Shardcall_Error* error);
/* What to do about it, or "". */
SHARDCALL_EXPORT const char* Shardcall_Error_Fix(const Shardcall_Error* error);
/* A code of absl::StatusCode: 3 invalid argument, 12 unimplemented, 14 something
 * the environment lacks; 0 for null. */
SHARDCALL_EXPORT int32_t Shardcall_Error_Status(const Shardcall_Error* error);
SHARDCALL_EXPORT void Shardcall_Error_Destroy(Shardcall_Error* error); /* null: nothing */

/* Text or bytes that the caller owns; a zero byte follows the last one. */
typedef struct Shardcall_Text Shardcall_Text;
SHARDCALL_EXPORT const char* Shardcall_Text_Data(const Shardcall_Text* text);
SHARDCALL_EXPORT size_t Shardcall_Text_Size(const Shardcall_Text* text);
SHARDCALL_EXPORT void Shardcall_Text_Destroy(Shardcall_Text* text);

/* A dense array in row-major order. `type` is an xla.PrimitiveType (11 is f32);
 * a token has type 17 and no data. Types narrower than a byte take one byte per
 * element where programs are run. The operands and results of a handler's call have
 * elements of 1, 2 and 4 bits packed, as under XLA: the first in the lowest bits of
 * a byte, u4[3] = {1, 2, 3} is 0x21 0x03. */
typedef struct Shardcall_Buffer {
  size_t struct_size;
  int32_t type;
  int32_t rank;
  const int64_t* dims;
  void* data;
} Shardcall_Buffer;

/* The type and dimensions of an array, with its layout (`rank` numbers; null:
 * none is stated). */
typedef struct Shardcall_Shape {
  size_t struct_size;
  int32_t type;
  int32_t rank;
  const int64_t* dims;
  const int64_t* minor_to_major;
} Shardcall_Shape;

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_PARTITIONER_BINDINGS_C_SHARDCALL_C_BASE_H_ */
