// SPDX-License-Identifier: Apache-2.0
// Asserts the layouts of the ABI: every offset and every size.
#include "shardcall/kernels/ffi/abi.h"

#include "shardcall/kernels/ffi/abi_table.h"

namespace shardcall::abi {
namespace {

#define SHARDCALL_AT(type, field, offset) \
  static_assert(offsetof(type, field) == (offset), #type "." #field)
#define SHARDCALL_SIZE(type, size) static_assert(sizeof(type) == (size), #type)

static_assert(sizeof(void*) == 8 && sizeof(size_t) == 8 && sizeof(int) == 4);

SHARDCALL_SIZE(ExtensionBase, 24);
SHARDCALL_AT(ExtensionBase, type, 8);
SHARDCALL_AT(ExtensionBase, next, 16);
SHARDCALL_SIZE(ApiVersion, 24);
SHARDCALL_AT(ApiVersion, major, 16);
SHARDCALL_AT(ApiVersion, minor, 20);
SHARDCALL_SIZE(Buffer, 48);
SHARDCALL_AT(Buffer, dtype, 16);
SHARDCALL_AT(Buffer, data, 24);
SHARDCALL_AT(Buffer, rank, 32);
SHARDCALL_AT(Buffer, dims, 40);
SHARDCALL_SIZE(ByteSpan, 16);
SHARDCALL_AT(ByteSpan, len, 8);
SHARDCALL_SIZE(Scalar, 16);
SHARDCALL_AT(Scalar, value, 8);
SHARDCALL_SIZE(Array, 24);
SHARDCALL_AT(Array, size, 8);
SHARDCALL_AT(Array, data, 16);
SHARDCALL_SIZE(TypeId, 8);
SHARDCALL_SIZE(TypeInfo, 24);
SHARDCALL_AT(TypeInfo, deleter, 16);
SHARDCALL_SIZE(Args, 40);
SHARDCALL_AT(Args, size, 16);
SHARDCALL_AT(Args, types, 24);
SHARDCALL_AT(Args, args, 32);
SHARDCALL_SIZE(Rets, 40);
SHARDCALL_AT(Rets, size, 16);
SHARDCALL_AT(Rets, types, 24);
SHARDCALL_AT(Rets, rets, 32);
SHARDCALL_SIZE(Attrs, 48);
SHARDCALL_AT(Attrs, size, 16);
SHARDCALL_AT(Attrs, types, 24);
SHARDCALL_AT(Attrs, names, 32);
SHARDCALL_AT(Attrs, attrs, 40);
SHARDCALL_SIZE(CallFrame, 176);
SHARDCALL_AT(CallFrame, api, 16);
SHARDCALL_AT(CallFrame, ctx, 24);
SHARDCALL_AT(CallFrame, stage, 32);
SHARDCALL_AT(CallFrame, args, 40);
SHARDCALL_AT(CallFrame, rets, 80);
SHARDCALL_AT(CallFrame, attrs, 120);
SHARDCALL_AT(CallFrame, future, kCallFrameSize);
SHARDCALL_SIZE(Metadata, 48);
SHARDCALL_AT(Metadata, api_version, 8);
SHARDCALL_AT(Metadata, traits, 32);
SHARDCALL_AT(Metadata, state_type, 40);
SHARDCALL_SIZE(MetadataExtension, 32);
SHARDCALL_AT(MetadataExtension, metadata, 24);

SHARDCALL_SIZE(Header, 16);
SHARDCALL_SIZE(ErrorCreateArgs, 32);
SHARDCALL_AT(ErrorCreateArgs, message, 16);
SHARDCALL_AT(ErrorCreateArgs, code, 24);
SHARDCALL_SIZE(ErrorGetMessageArgs, 40);
SHARDCALL_AT(ErrorGetMessageArgs, error, 16);
SHARDCALL_AT(ErrorGetMessageArgs, message, 24);
SHARDCALL_AT(ErrorGetMessageArgs, code, 32);
SHARDCALL_SIZE(ErrorDestroyArgs, 24);
SHARDCALL_AT(ErrorDestroyArgs, error, 16);
SHARDCALL_SIZE(HandlerBundle, 32);
SHARDCALL_AT(HandlerBundle, prepare, 8);
SHARDCALL_AT(HandlerBundle, initialize, 16);
SHARDCALL_AT(HandlerBundle, execute, 24);
SHARDCALL_SIZE(HandlerRegisterArgs, 88);
SHARDCALL_AT(HandlerRegisterArgs, name, 16);
SHARDCALL_AT(HandlerRegisterArgs, platform, 32);
SHARDCALL_AT(HandlerRegisterArgs, bundle, 48);
SHARDCALL_AT(HandlerRegisterArgs, traits, 80);
SHARDCALL_SIZE(HandlerRegisterArgs04, 96);
SHARDCALL_AT(HandlerRegisterArgs04, bundle, 48);
SHARDCALL_AT(HandlerRegisterArgs04, record, 80);
SHARDCALL_AT(HandlerRegisterArgs04, traits, 88);
SHARDCALL_SIZE(StreamGetArgs, 32);
SHARDCALL_AT(StreamGetArgs, ctx, 16);
SHARDCALL_AT(StreamGetArgs, stream, 24);
SHARDCALL_SIZE(TypeRegisterArgs, 48);
SHARDCALL_AT(TypeRegisterArgs, name, 16);
SHARDCALL_AT(TypeRegisterArgs, type_id, 32);
SHARDCALL_AT(TypeRegisterArgs, type_info, 40);
SHARDCALL_SIZE(ContextGetArgs, 40);
SHARDCALL_AT(ContextGetArgs, ctx, 16);
SHARDCALL_AT(ContextGetArgs, type_id, 24);
SHARDCALL_AT(ContextGetArgs, data, 32);
SHARDCALL_SIZE(StateArgs, 48);
SHARDCALL_AT(StateArgs, ctx, 16);
SHARDCALL_AT(StateArgs, stage, 24);
SHARDCALL_AT(StateArgs, type_id, 32);
SHARDCALL_AT(StateArgs, state, 40);
SHARDCALL_SIZE(OldStateArgs, 48);
SHARDCALL_AT(OldStateArgs, ctx, 16);
SHARDCALL_AT(OldStateArgs, type_id, 24);
SHARDCALL_AT(OldStateArgs, state, 32);
SHARDCALL_AT(OldStateArgs, deleter, 40);
SHARDCALL_SIZE(MemoryAllocateArgs, 48);
SHARDCALL_AT(MemoryAllocateArgs, ctx, 16);
SHARDCALL_AT(MemoryAllocateArgs, size, 24);
SHARDCALL_AT(MemoryAllocateArgs, alignment, 32);
SHARDCALL_AT(MemoryAllocateArgs, data, 40);
SHARDCALL_SIZE(MemoryFreeArgs, 40);
SHARDCALL_AT(MemoryFreeArgs, ctx, 16);
SHARDCALL_AT(MemoryFreeArgs, size, 24);
SHARDCALL_AT(MemoryFreeArgs, data, 32);
SHARDCALL_SIZE(ScheduleArgs, 40);
SHARDCALL_AT(ScheduleArgs, ctx, 16);
SHARDCALL_AT(ScheduleArgs, task, 24);
SHARDCALL_AT(ScheduleArgs, data, 32);
SHARDCALL_SIZE(NumThreadsArgs, 32);
SHARDCALL_AT(NumThreadsArgs, ctx, 16);
SHARDCALL_AT(NumThreadsArgs, num_threads, 24);
SHARDCALL_SIZE(FutureCreateArgs, 24);
SHARDCALL_AT(FutureCreateArgs, future, 16);
SHARDCALL_SIZE(FutureSetAvailableArgs, 24);
SHARDCALL_AT(FutureSetAvailableArgs, future, 16);
SHARDCALL_SIZE(FutureSetErrorArgs, 32);
SHARDCALL_AT(FutureSetErrorArgs, future, 16);
SHARDCALL_AT(FutureSetErrorArgs, error, 24);
SHARDCALL_SIZE(RunIdGetArgs, 32);
SHARDCALL_AT(RunIdGetArgs, ctx, 16);
SHARDCALL_AT(RunIdGetArgs, run_id, 24);
SHARDCALL_SIZE(DeviceOrdinalGetArgs, 32);
SHARDCALL_AT(DeviceOrdinalGetArgs, ctx, 16);
SHARDCALL_AT(DeviceOrdinalGetArgs, device_ordinal, 24);
SHARDCALL_SIZE(FindExtensionArgs, 40);
SHARDCALL_AT(FindExtensionArgs, ctx, 16);
SHARDCALL_AT(FindExtensionArgs, extension_type, 24);
SHARDCALL_AT(FindExtensionArgs, extension, 32);
SHARDCALL_SIZE(CustomOptionsGetArgs, 32);
SHARDCALL_AT(CustomOptionsGetArgs, ctx, 16);
SHARDCALL_AT(CustomOptionsGetArgs, attrs, 24);

SHARDCALL_SIZE(Api, kApiSize05);
SHARDCALL_AT(Api, api_version, 16);
SHARDCALL_AT(Api, internal_api, 40);
SHARDCALL_AT(Api, error_create, 48);
SHARDCALL_AT(Api, error_get_message, 56);
SHARDCALL_AT(Api, error_destroy, 64);
SHARDCALL_AT(Api, handler_register, 72);
SHARDCALL_AT(Api, stream_get, 80);
SHARDCALL_AT(Api, type_register, 88);
SHARDCALL_AT(Api, context_get, 96);
SHARDCALL_AT(Api, state_set, 104);
SHARDCALL_AT(Api, state_get, 112);
SHARDCALL_AT(Api, memory_allocate, 120);
SHARDCALL_AT(Api, memory_free, 128);
SHARDCALL_AT(Api, schedule, 136);
SHARDCALL_AT(Api, num_threads, 144);
SHARDCALL_AT(Api, future_create, 152);
SHARDCALL_AT(Api, future_set_available, 160);
SHARDCALL_AT(Api, future_set_error, 168);
SHARDCALL_AT(Api, run_id_get, 176);
SHARDCALL_AT(Api, device_ordinal_get, 184);
SHARDCALL_AT(Api, find_extension, kApiSize);
SHARDCALL_AT(Api, custom_options_get, kApiSize04);

#undef SHARDCALL_AT
#undef SHARDCALL_SIZE

}  // namespace
}  // namespace shardcall::abi
