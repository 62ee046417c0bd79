// SPDX-License-Identifier: Apache-2.0
// The functions that a typed-FFI handler calls back, in the order of XLA's table, each with one
// struct of arguments. A call frame carries the table, so the table is chosen by the version of
// the handler: see ffi_table.h.
#ifndef SHARDCALL_KERNELS_FFI_ABI_TABLE_H_
#define SHARDCALL_KERNELS_FFI_ABI_TABLE_H_

#include "shardcall/kernels/ffi/abi.h"

namespace shardcall::abi {

// The first member of every struct of arguments.
struct Header {
  size_t struct_size;
  ExtensionBase* extension_start;
};

struct ErrorCreateArgs {
  Header header;
  const char* message;
  ErrorCode code;
};
struct ErrorGetMessageArgs {  // 0.4 calls it GetDetails and reads `code`, too
  Header header;
  Error* error;
  const char* message;  // out
  ErrorCode code;       // out if struct_size is 36 or more
};
struct ErrorDestroyArgs {
  Header header;
  Error* error;
};
struct HandlerBundle {  // 0.4 appends `record`
  Handler* instantiate;
  Handler* prepare;
  Handler* initialize;
  Handler* execute;
};
struct HandlerRegisterArgs {
  Header header;
  ByteSpan name;
  ByteSpan platform;
  HandlerBundle bundle;
  Traits traits;
};
struct HandlerRegisterArgs04 {  // from 0.4
  Header header;
  ByteSpan name;
  ByteSpan platform;
  HandlerBundle bundle;
  Handler* record;
  Traits traits;
};
inline constexpr size_t kHandlerRegisterArgsSize = 84;
inline constexpr size_t kHandlerRegisterArgsSize04 = 92;
struct StreamGetArgs {
  Header header;
  ExecutionContext* ctx;
  void* stream;  // out
};
struct TypeRegisterArgs {
  Header header;
  ByteSpan name;
  TypeId* type_id;            // in and out
  const TypeInfo* type_info;  // from 0.2; beyond struct_size, but read
};
inline constexpr size_t kTypeRegisterArgsSize = 40;
struct ContextGetArgs {
  Header header;
  ExecutionContext* ctx;
  const TypeId* type_id;
  void* data;  // out
};
// State from 0.3 on. Set and get of 0.1 have as many bytes as these.
struct StateArgs {
  Header header;
  ExecutionContext* ctx;
  Stage stage;
  const TypeId* type_id;
  void* state;  // in for set, out for get
};
// The state arguments of 0.2, and of state_get in 0.1. state_set of 0.1 also uses the deleter.
struct OldStateArgs {
  Header header;
  ExecutionContext* ctx;
  const TypeId* type_id;
  void* state;
  void (*deleter)(void* state);  // set of 0.1 only
};
struct MemoryAllocateArgs {
  Header header;
  ExecutionContext* ctx;
  size_t size;
  size_t alignment;
  void* data;  // out
};
struct MemoryFreeArgs {
  Header header;
  ExecutionContext* ctx;
  size_t size;
  void* data;
};
using Task = void(void*);
struct ScheduleArgs {
  Header header;
  ExecutionContext* ctx;
  Task* task;
  void* data;
};
struct NumThreadsArgs {
  Header header;
  ExecutionContext* ctx;
  int64_t* num_threads;  // out
};
struct FutureCreateArgs {
  Header header;
  Future* future;  // out; beyond struct_size, but read
};
struct FutureSetAvailableArgs {
  Header header;
  Future* future;
};
struct FutureSetErrorArgs {
  Header header;
  Future* future;
  Error* error;  // the future takes ownership
};
struct RunIdGetArgs {
  Header header;
  ExecutionContext* ctx;
  int64_t run_id;  // out
};
struct DeviceOrdinalGetArgs {
  Header header;
  ExecutionContext* ctx;
  int32_t device_ordinal;  // out
};
// From 0.4.
struct FindExtensionArgs {
  Header header;
  ExecutionContext* ctx;
  int64_t extension_type;
  void* extension;  // out
};
// From 0.5: options of one execution, apart from the attributes of the call.
struct CustomOptionsGetArgs {
  Header header;
  ExecutionContext* ctx;
  const Attrs* attrs;  // out; empty where there are none
};

struct Api {
  Header header;
  ApiVersion api_version;
  const void* internal_api;  // null is fine
  Error* (*error_create)(ErrorCreateArgs*);
  void (*error_get_message)(ErrorGetMessageArgs*);
  void (*error_destroy)(ErrorDestroyArgs*);
  Error* (*handler_register)(HandlerRegisterArgs*);
  Error* (*stream_get)(StreamGetArgs*);
  Error* (*type_register)(TypeRegisterArgs*);
  Error* (*context_get)(ContextGetArgs*);
  Error* (*state_set)(void*);  // StateArgs or OldStateArgs, by the version
  Error* (*state_get)(void*);
  Error* (*memory_allocate)(MemoryAllocateArgs*);
  Error* (*memory_free)(MemoryFreeArgs*);
  Error* (*schedule)(ScheduleArgs*);
  Error* (*num_threads)(NumThreadsArgs*);
  Error* (*future_create)(FutureCreateArgs*);
  Error* (*future_set_available)(FutureSetAvailableArgs*);
  Error* (*future_set_error)(FutureSetErrorArgs*);
  Error* (*run_id_get)(RunIdGetArgs*);
  Error* (*device_ordinal_get)(DeviceOrdinalGetArgs*);
  Error* (*find_extension)(FindExtensionArgs*);         // from 0.4
  Error* (*custom_options_get)(CustomOptionsGetArgs*);  // from 0.5
};

inline constexpr size_t kApiSize = 192;  // up to 0.3
inline constexpr size_t kApiSize04 = 200;
inline constexpr size_t kApiSize05 = 208;
inline constexpr size_t kErrorDetailsSize04 = 36;

}  // namespace shardcall::abi

#endif  // SHARDCALL_KERNELS_FFI_ABI_TABLE_H_
