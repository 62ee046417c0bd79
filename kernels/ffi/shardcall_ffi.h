// SPDX-License-Identifier: Apache-2.0
/* Services of this runtime for handlers of XLA's typed FFI, beyond XLA's own
 * contexts: the device's coordinates in the mesh, collectives with other devices,
 * and the computations that the call carries. Plain C without dependencies; the
 * same on every backend.
 *
 * With XLA's C++ headers, of any version:
 *
 *   struct Device : Shardcall_FfiDevice { static ffi::TypeId id; };
 *   ffi::TypeId Device::id = {SHARDCALL_FFI_DEVICE};
 *   ... ffi::Ffi::Bind().Ctx<ffi::UserData<Device>>() ...      // gives Device*
 *
 * With the C header: XLA_FFI_ExecutionContext_Get (InvokeContext_Get) with that
 * type id, or from 0.4 XLA_FFI_InvokeContext_FindExtension with that extension
 * type: the struct begins as an XLA_FFI_Extension does. Other runtimes return
 * NOT_FOUND.
 *
 * The struct is valid, on any thread, until the call and a future that it returned
 * have ended. The functions return 0 or a code of absl::StatusCode, whose reason
 * `message` then gives; if the handler fails after that, this reason is reported.
 * Collectives synchronise like instructions: all devices of the group call with
 * equal arguments, in the same order as their other collectives, and wait no
 * longer than the deadline of the run.
 */
#ifndef SHARDCALL_KERNELS_FFI_SHARDCALL_FFI_H_
#define SHARDCALL_KERNELS_FFI_SHARDCALL_FFI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHARDCALL_FFI_DEVICE INT64_C(0x53484152444341) /* "SHARDCA" */
#define SHARDCALL_FFI_DEVICE_MAJOR 1
#define SHARDCALL_FFI_DEVICE_MINOR 0

enum {
  SHARDCALL_FFI_SUM = 0,
  SHARDCALL_FFI_PRODUCT = 1,
  SHARDCALL_FFI_MAX = 2,
  SHARDCALL_FFI_MIN = 3,
  SHARDCALL_FFI_AND = 4,
  SHARDCALL_FFI_OR = 5,
  SHARDCALL_FFI_XOR = 6
};

/* A dense row-major operand or result of a called computation. Elements of 1, 2
 * and 4 bits are packed, as in the handler's buffers. */
typedef struct Shardcall_FfiBuffer {
  int32_t type; /* xla.PrimitiveType: 11 is f32 */
  int32_t rank;
  const int64_t* dims;
  void* data;
} Shardcall_FfiBuffer;

typedef struct Shardcall_FfiDevice Shardcall_FfiDevice;
struct Shardcall_FfiDevice {
  /* As XLA_FFI_Extension: */
  size_t struct_size;
  int64_t extension_type; /* SHARDCALL_FFI_DEVICE */
  int32_t version_major;
  int32_t version_minor; /* grows with fields at the end */
  const void* next;      /* null */

  int32_t device; /* partition id, 0 .. num_devices - 1 */
  int32_t num_devices;
  /* The program's mesh, axes major to minor, and this device's coordinates. There are no
   * axes if the program names none and shards nothing, or if it runs on one device. */
  int32_t num_axes;
  int32_t num_computations;
  const char* const* axis_names;
  const int64_t* axis_sizes;
  const int64_t* axis_coordinates;
  /* The devices that differ from this one only along that axis, including itself,
   * in the order of the axis. Writes at most `capacity` of them; returns their
   * number, or -1 if there is no such axis. */
  int32_t (*devices_along)(const Shardcall_FfiDevice*, const char* axis, int32_t* devices,
                           int32_t capacity);

  /* Collectives. `group` lists the devices of a group, this one among them, in
   * the order of concatenation and summation; null: all devices. `type` is an
   * xla.PrimitiveType, `count` counts elements, `bytes` is of one block. Elements
   * of 1, 2 and 4 bits are packed, as in the handler's buffers. Buffers may not
   * overlap unless in == out. */
  int32_t (*barrier)(const Shardcall_FfiDevice*, const int32_t* group, int32_t group_size);
  int32_t (*all_reduce)(const Shardcall_FfiDevice*, const int32_t* group, int32_t group_size,
                        int32_t reduction, int32_t type, const void* in, void* out, int64_t count);
  /* in: group_size * count elements; out: count. */
  int32_t (*reduce_scatter)(const Shardcall_FfiDevice*, const int32_t* group, int32_t group_size,
                            int32_t reduction, int32_t type, const void* in, void* out,
                            int64_t count);
  /* out: group_size * bytes. */
  int32_t (*all_gather)(const Shardcall_FfiDevice*, const int32_t* group, int32_t group_size,
                        const void* in, void* out, int64_t bytes);
  /* in and out: group_size blocks. */
  int32_t (*all_to_all)(const Shardcall_FfiDevice*, const int32_t* group, int32_t group_size,
                        const void* in, void* out, int64_t bytes);
  /* `root` is an index into the group. */
  int32_t (*broadcast)(const Shardcall_FfiDevice*, const int32_t* group, int32_t group_size,
                       int32_t root, void* buffer, int64_t bytes);
  int32_t (*send)(const Shardcall_FfiDevice*, int32_t to, const void* data, int64_t bytes);
  int32_t (*recv)(const Shardcall_FfiDevice*, int32_t from, void* data, int64_t bytes);

  /* Runs computation `index` of the call's called_computations on this device. */
  int32_t (*call_computation)(const Shardcall_FfiDevice*, int32_t index,
                              const Shardcall_FfiBuffer* operands, int32_t num_operands,
                              const Shardcall_FfiBuffer* results, int32_t num_results);

  /* The reason of the last failure; valid until the next function is called. */
  const char* (*message)(const Shardcall_FfiDevice*);
  void* reserved;
};

#ifdef __cplusplus
}
#endif

#endif /* SHARDCALL_KERNELS_FFI_SHARDCALL_FFI_H_ */
