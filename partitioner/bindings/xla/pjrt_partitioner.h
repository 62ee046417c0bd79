// SPDX-License-Identifier: Apache-2.0
// Registers targets with a PJRT plugin: its partitioner extension (type 2) takes names of
// batch-partitionable targets, and partitioners as three functions in C; its FFI extension (type
// 5) takes handlers. XLA:GPU's plugin has both; it needs no GPU and no client for that.
//
// Names and layouts are those of PJRT's C API, declared here without its headers.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_PARTITIONER_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_PARTITIONER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"

extern "C" {

typedef struct Shardcall_PjrtString {
  const char* data;
  size_t size;
} Shardcall_PjrtString;

// An operand or result: serialised xla.ShapeProto and xla.OpSharding.
typedef struct Shardcall_PjrtAval {
  Shardcall_PjrtString shape;
  bool has_sharding;
  Shardcall_PjrtString sharding;
} Shardcall_PjrtAval;

// The head of each struct of arguments. The callee must always set has_error and cleanup_fn:
// cleanup_fn(data) is called when the answer has been read.
typedef struct Shardcall_PjrtHeader {
  int64_t api_version;
  void* data;                  // out
  void (*cleanup_fn)(void*);   // out
  bool has_error;              // out
  int32_t code;                // out: a code of absl::StatusCode
  Shardcall_PjrtString error;  // out
} Shardcall_PjrtHeader;

typedef struct Shardcall_PjrtPartitionArgs {
  Shardcall_PjrtHeader header;
  size_t num_args;
  Shardcall_PjrtAval* op_args;
  Shardcall_PjrtAval op_result;
  Shardcall_PjrtString backend_config;
  Shardcall_PjrtString mlir_module;      // out: the local computation
  Shardcall_PjrtString* args_sharding;   // out: the answer's own array of num_args
  Shardcall_PjrtString result_sharding;  // out
} Shardcall_PjrtPartitionArgs;

typedef struct Shardcall_PjrtInferArgs {
  Shardcall_PjrtHeader header;
  size_t num_args;
  Shardcall_PjrtAval* op_args;
  Shardcall_PjrtString result_shape;
  Shardcall_PjrtString backend_config;
  bool has_result_sharding;              // out
  Shardcall_PjrtString result_sharding;  // out
} Shardcall_PjrtInferArgs;

typedef struct Shardcall_PjrtPropagateArgs {
  Shardcall_PjrtHeader header;
  Shardcall_PjrtString backend_config;
  Shardcall_PjrtString result_shape;
  Shardcall_PjrtString result_sharding;  // in and out
} Shardcall_PjrtPropagateArgs;

// An error from infer_sharding or propagate_user_sharding aborts XLA's process: answer "none", or
// the given sharding, and let partition report the error.
typedef struct Shardcall_PjrtCallbacks {
  int64_t version;  // 0
  void* private_data;
  void (*dtor)(struct Shardcall_PjrtCallbacks*);  // called when the plugin releases it
  void (*partition)(struct Shardcall_PjrtCallbacks*, Shardcall_PjrtPartitionArgs*);
  void (*infer_sharding)(struct Shardcall_PjrtCallbacks*, Shardcall_PjrtInferArgs*);
  void (*propagate_user_sharding)(struct Shardcall_PjrtCallbacks*, Shardcall_PjrtPropagateArgs*);
  bool can_side_effecting_have_replicated_sharding;
} Shardcall_PjrtCallbacks;

}  // extern "C"

namespace shardcall SHARDCALL_PUBLIC {

// Empty for a null text.
inline absl::string_view View(const Shardcall_PjrtString& s) {
  return s.data == nullptr ? absl::string_view() : absl::string_view(s.data, s.size);
}

// `c_api` is a PJRT_Api*. E148: kInvalidArgument for a null or invalid one, for an empty name and
// null callbacks; kUnimplemented for a plugin without that extension (XLA itself then silently
// does nothing); else the plugin's error.
absl::Status RegisterBatchPartitionableWithPjrt(const void* c_api, absl::string_view name);
// The plugin takes ownership of `callbacks` and calls their dtor; on failure the caller keeps it.
// A second registration of a name replaces the first.
absl::Status RegisterPartitionerWithPjrt(const void* c_api, absl::string_view name,
                                         Shardcall_PjrtCallbacks* callbacks);

// An execute handler of XLA's typed FFI for the plugin's platform, such as "CUDA": plugins have
// their own registry of handlers. Uses the FFI extension (type 5); E148 as above.
absl::Status RegisterHandlerWithPjrt(const void* c_api, absl::string_view name,
                                     absl::string_view platform, const void* handler,
                                     uint32_t traits = 0);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_PARTITIONER_H_
