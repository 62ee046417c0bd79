// SPDX-License-Identifier: Apache-2.0
// Our declarations of the typed FFI against XLA's own header, where one is
// found: every size, every offset, every number. Compiled for every version.
#include <gtest/gtest.h>

#include <cstddef>

#include "absl/status/status.h"
#include "shardcall/kernels/ffi/abi.h"
#include "shardcall/kernels/ffi/abi_table.h"
#include "shardcall/sharding/element_type.h"
#include "xla/ffi/api/c_api.h"

namespace shardcall {
namespace {

// Names that changed.
#if XLA_FFI_API_MINOR < 2
using XLA_FFI_Type_Register_Args = XLA_FFI_TypeId_Register_Args;
#define XLA_FFI_Type_Register XLA_FFI_TypeId_Register
#endif
#if XLA_FFI_API_MINOR >= 4
using XLA_FFI_Extension_Base = XLA_FFI_InternalExtension;
using XLA_FFI_Error_GetMessage_Args = XLA_FFI_Error_GetDetails_Args;
using XLA_FFI_ExecutionContext_Get_Args = XLA_FFI_InvokeContext_Get_Args;
#define XLA_FFI_Error_GetMessage XLA_FFI_Error_GetDetails
#define XLA_FFI_ExecutionContext_Get XLA_FFI_InvokeContext_Get
#endif

#define SIZE(ours, theirs) static_assert(sizeof(abi::ours) == sizeof(XLA_FFI_##theirs))
#define SAME(ours, our_field, theirs, their_field)                                           \
  static_assert(offsetof(abi::ours, our_field) == offsetof(XLA_FFI_##theirs, their_field) && \
                sizeof(abi::ours::our_field) == sizeof(XLA_FFI_##theirs::their_field))
#define MINIMUM(value, theirs) static_assert((value) == XLA_FFI_##theirs##_STRUCT_SIZE)

SIZE(ExtensionBase, Extension_Base);
SAME(ExtensionBase, type, Extension_Base, type);
SAME(ExtensionBase, next, Extension_Base, next);
SIZE(ApiVersion, Api_Version);
SAME(ApiVersion, major, Api_Version, major_version);
SAME(ApiVersion, minor, Api_Version, minor_version);
SIZE(Buffer, Buffer);
MINIMUM(abi::kBufferSize, Buffer);
SAME(Buffer, dtype, Buffer, dtype);
SAME(Buffer, data, Buffer, data);
SAME(Buffer, rank, Buffer, rank);
SAME(Buffer, dims, Buffer, dims);
SIZE(ByteSpan, ByteSpan);
SAME(ByteSpan, len, ByteSpan, len);
SIZE(Scalar, Scalar);
SAME(Scalar, value, Scalar, value);
SIZE(Array, Array);
SAME(Array, size, Array, size);
SAME(Array, data, Array, data);
SIZE(TypeId, TypeId);
#if XLA_FFI_API_MINOR >= 2
SIZE(TypeInfo, TypeInfo);
MINIMUM(abi::kTypeInfoSize, TypeInfo);
SAME(TypeInfo, deleter, TypeInfo, deleter);
#endif
SIZE(Args, Args);
MINIMUM(abi::kArgsSize, Args);
SAME(Args, types, Args, types);
SAME(Args, args, Args, args);
SIZE(Rets, Rets);
MINIMUM(abi::kRetsSize, Rets);
SAME(Rets, rets, Rets, rets);
SIZE(Attrs, Attrs);
MINIMUM(abi::kAttrsSize, Attrs);
SAME(Attrs, types, Attrs, types);
SAME(Attrs, names, Attrs, names);
SAME(Attrs, attrs, Attrs, attrs);
SIZE(CallFrame, CallFrame);
MINIMUM(abi::kCallFrameSize, CallFrame);
SAME(CallFrame, api, CallFrame, api);
SAME(CallFrame, ctx, CallFrame, ctx);
SAME(CallFrame, stage, CallFrame, stage);
SAME(CallFrame, args, CallFrame, args);
SAME(CallFrame, rets, CallFrame, rets);
SAME(CallFrame, attrs, CallFrame, attrs);
SAME(CallFrame, future, CallFrame, future);
MINIMUM(abi::kMetadataSize, Metadata);
SAME(Metadata, api_version, Metadata, api_version);
SAME(Metadata, traits, Metadata, traits);
#if XLA_FFI_API_MINOR >= 2
SIZE(Metadata, Metadata);
SAME(Metadata, state_type, Metadata, state_type_id);
#endif
SIZE(MetadataExtension, Metadata_Extension);
MINIMUM(abi::kMetadataExtensionSize, Metadata_Extension);
SAME(MetadataExtension, metadata, Metadata_Extension, metadata);

SIZE(ErrorCreateArgs, Error_Create_Args);
SAME(ErrorCreateArgs, message, Error_Create_Args, message);
SAME(ErrorCreateArgs, code, Error_Create_Args, errc);
SAME(ErrorGetMessageArgs, error, Error_GetMessage_Args, error);
SAME(ErrorGetMessageArgs, message, Error_GetMessage_Args, message);
#if XLA_FFI_API_MINOR >= 4
SIZE(ErrorGetMessageArgs, Error_GetDetails_Args);
SAME(ErrorGetMessageArgs, code, Error_GetDetails_Args, errc);
MINIMUM(abi::kErrorDetailsSize04, Error_GetDetails_Args);
#endif
SIZE(ErrorDestroyArgs, Error_Destroy_Args);
SAME(ErrorDestroyArgs, error, Error_Destroy_Args, error);
#if XLA_FFI_API_MINOR < 4  // from then on with a stage more
SIZE(HandlerBundle, Handler_Bundle);
SIZE(HandlerRegisterArgs, Handler_Register_Args);
SAME(HandlerRegisterArgs, traits, Handler_Register_Args, traits);
MINIMUM(abi::kHandlerRegisterArgsSize, Handler_Register_Args);
#else
SIZE(HandlerRegisterArgs04, Handler_Register_Args);
SAME(HandlerRegisterArgs04, traits, Handler_Register_Args, traits);
MINIMUM(abi::kHandlerRegisterArgsSize04, Handler_Register_Args);
static_assert(offsetof(abi::HandlerRegisterArgs04, record) ==
              offsetof(XLA_FFI_Handler_Register_Args, bundle) +
                  offsetof(XLA_FFI_Handler_Bundle, record));
#endif
SAME(HandlerBundle, instantiate, Handler_Bundle, instantiate);
SAME(HandlerBundle, prepare, Handler_Bundle, prepare);
SAME(HandlerBundle, initialize, Handler_Bundle, initialize);
SAME(HandlerBundle, execute, Handler_Bundle, execute);
SAME(HandlerRegisterArgs, name, Handler_Register_Args, name);
SAME(HandlerRegisterArgs, platform, Handler_Register_Args, platform);
SIZE(StreamGetArgs, Stream_Get_Args);
SAME(StreamGetArgs, ctx, Stream_Get_Args, ctx);
SAME(StreamGetArgs, stream, Stream_Get_Args, stream);
SAME(TypeRegisterArgs, name, Type_Register_Args, name);
SAME(TypeRegisterArgs, type_id, Type_Register_Args, type_id);
#if XLA_FFI_API_MINOR < 2
MINIMUM(abi::kTypeRegisterArgsSize, TypeId_Register_Args);
#else
MINIMUM(abi::kTypeRegisterArgsSize, Type_Register_Args);
SIZE(TypeRegisterArgs, Type_Register_Args);
SAME(TypeRegisterArgs, type_info, Type_Register_Args, type_info);
#endif
SIZE(ContextGetArgs, ExecutionContext_Get_Args);
SAME(ContextGetArgs, ctx, ExecutionContext_Get_Args, ctx);
SAME(ContextGetArgs, type_id, ExecutionContext_Get_Args, type_id);
SAME(ContextGetArgs, data, ExecutionContext_Get_Args, data);
#if XLA_FFI_API_MINOR >= 3
SIZE(StateArgs, State_Set_Args);
SAME(StateArgs, ctx, State_Set_Args, ctx);
SAME(StateArgs, stage, State_Set_Args, stage);
SAME(StateArgs, type_id, State_Set_Args, type_id);
SAME(StateArgs, state, State_Set_Args, state);
SIZE(StateArgs, State_Get_Args);
SAME(StateArgs, stage, State_Get_Args, stage);
SAME(StateArgs, type_id, State_Get_Args, type_id);
SAME(StateArgs, state, State_Get_Args, state);
#else
SAME(OldStateArgs, ctx, State_Set_Args, ctx);
SAME(OldStateArgs, type_id, State_Set_Args, type_id);
SAME(OldStateArgs, state, State_Set_Args, state);
SAME(OldStateArgs, ctx, State_Get_Args, ctx);
SAME(OldStateArgs, type_id, State_Get_Args, type_id);
SAME(OldStateArgs, state, State_Get_Args, state);
MINIMUM(40, State_Get_Args);
#if XLA_FFI_API_MINOR == 1
SIZE(OldStateArgs, State_Set_Args);
SAME(OldStateArgs, deleter, State_Set_Args, deleter);
#else
MINIMUM(40, State_Set_Args);
#endif
#endif
SIZE(MemoryAllocateArgs, DeviceMemory_Allocate_Args);
SAME(MemoryAllocateArgs, ctx, DeviceMemory_Allocate_Args, ctx);
SAME(MemoryAllocateArgs, size, DeviceMemory_Allocate_Args, size);
SAME(MemoryAllocateArgs, alignment, DeviceMemory_Allocate_Args, alignment);
SAME(MemoryAllocateArgs, data, DeviceMemory_Allocate_Args, data);
SIZE(MemoryFreeArgs, DeviceMemory_Free_Args);
SAME(MemoryFreeArgs, size, DeviceMemory_Free_Args, size);
SAME(MemoryFreeArgs, data, DeviceMemory_Free_Args, data);
SIZE(ScheduleArgs, ThreadPool_Schedule_Args);
SAME(ScheduleArgs, ctx, ThreadPool_Schedule_Args, ctx);
SAME(ScheduleArgs, task, ThreadPool_Schedule_Args, task);
SAME(ScheduleArgs, data, ThreadPool_Schedule_Args, data);
SIZE(NumThreadsArgs, ThreadPool_NumThreads_Args);
SAME(NumThreadsArgs, num_threads, ThreadPool_NumThreads_Args, num_threads);
SIZE(FutureCreateArgs, Future_Create_Args);
SAME(FutureCreateArgs, future, Future_Create_Args, future);
SIZE(FutureSetAvailableArgs, Future_SetAvailable_Args);
SAME(FutureSetAvailableArgs, future, Future_SetAvailable_Args, future);
SIZE(FutureSetErrorArgs, Future_SetError_Args);
SAME(FutureSetErrorArgs, future, Future_SetError_Args, future);
SAME(FutureSetErrorArgs, error, Future_SetError_Args, error);
SIZE(RunIdGetArgs, RunId_Get_Args);
SAME(RunIdGetArgs, ctx, RunId_Get_Args, ctx);
SAME(RunIdGetArgs, run_id, RunId_Get_Args, run_id);
#if XLA_FFI_API_MINOR >= 2
SIZE(DeviceOrdinalGetArgs, DeviceOrdinal_Get_Args);
SAME(DeviceOrdinalGetArgs, ctx, DeviceOrdinal_Get_Args, ctx);
SAME(DeviceOrdinalGetArgs, device_ordinal, DeviceOrdinal_Get_Args, device_ordinal);
SAME(Api, device_ordinal_get, Api, XLA_FFI_DeviceOrdinal_Get);
#endif
#if XLA_FFI_API_MINOR >= 4
SIZE(FindExtensionArgs, InvokeContext_FindExtension_Args);
SAME(FindExtensionArgs, ctx, InvokeContext_FindExtension_Args, ctx);
SAME(FindExtensionArgs, extension_type, InvokeContext_FindExtension_Args, extension_type);
SAME(FindExtensionArgs, extension, InvokeContext_FindExtension_Args, extension);
SAME(Api, find_extension, Api, XLA_FFI_InvokeContext_FindExtension);
#endif
#if XLA_FFI_API_MINOR >= 5
SIZE(CustomOptionsGetArgs, CustomOptions_Get_Args);
SAME(CustomOptionsGetArgs, ctx, CustomOptions_Get_Args, ctx);
SAME(CustomOptionsGetArgs, attrs, CustomOptions_Get_Args, attrs);
SAME(Api, custom_options_get, Api, XLA_FFI_CustomOptions_Get);
static_assert(abi::kApiSize05 == sizeof(XLA_FFI_Api));
#elif XLA_FFI_API_MINOR == 4
static_assert(abi::kApiSize04 == sizeof(XLA_FFI_Api));
#elif XLA_FFI_API_MINOR >= 2
static_assert(abi::kApiSize == sizeof(XLA_FFI_Api));
#else  // some of 0.1 end before device_ordinal_get
static_assert(abi::kApiSize >= sizeof(XLA_FFI_Api));
#endif

SAME(Api, api_version, Api, api_version);
SAME(Api, internal_api, Api, internal_api);
SAME(Api, error_create, Api, XLA_FFI_Error_Create);
SAME(Api, error_get_message, Api, XLA_FFI_Error_GetMessage);
SAME(Api, error_destroy, Api, XLA_FFI_Error_Destroy);
SAME(Api, handler_register, Api, XLA_FFI_Handler_Register);
SAME(Api, stream_get, Api, XLA_FFI_Stream_Get);
SAME(Api, type_register, Api, XLA_FFI_Type_Register);
SAME(Api, context_get, Api, XLA_FFI_ExecutionContext_Get);
SAME(Api, state_set, Api, XLA_FFI_State_Set);
SAME(Api, state_get, Api, XLA_FFI_State_Get);
SAME(Api, memory_allocate, Api, XLA_FFI_DeviceMemory_Allocate);
SAME(Api, memory_free, Api, XLA_FFI_DeviceMemory_Free);
SAME(Api, schedule, Api, XLA_FFI_ThreadPool_Schedule);
SAME(Api, num_threads, Api, XLA_FFI_ThreadPool_NumThreads);
SAME(Api, future_create, Api, XLA_FFI_Future_Create);
SAME(Api, future_set_available, Api, XLA_FFI_Future_SetAvailable);
SAME(Api, future_set_error, Api, XLA_FFI_Future_SetError);
SAME(Api, run_id_get, Api, XLA_FFI_RunId_Get);

#define NUMBER(ours, theirs) EXPECT_EQ(static_cast<int>(ours), static_cast<int>(XLA_FFI_##theirs))

TEST(FfiAbi, NumbersAreThoseOfTheHeader) {
  NUMBER(abi::ExtensionType::kMetadata, Extension_Metadata);
  NUMBER(abi::ArgType::kBuffer, ArgType_BUFFER);
  NUMBER(abi::RetType::kBuffer, RetType_BUFFER);
  NUMBER(abi::AttrType::kArray, AttrType_ARRAY);
  NUMBER(abi::AttrType::kDictionary, AttrType_DICTIONARY);
  NUMBER(abi::AttrType::kScalar, AttrType_SCALAR);
  NUMBER(abi::AttrType::kString, AttrType_STRING);
  NUMBER(abi::Stage::kInstantiate, ExecutionStage_INSTANTIATE);
  NUMBER(abi::Stage::kPrepare, ExecutionStage_PREPARE);
  NUMBER(abi::Stage::kInitialize, ExecutionStage_INITIALIZE);
  NUMBER(abi::Stage::kExecute, ExecutionStage_EXECUTE);
  NUMBER(abi::kCommandBufferCompatible, HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE);
  NUMBER(absl::StatusCode::kUnauthenticated, Error_Code_UNAUTHENTICATED);
  NUMBER(absl::StatusCode::kDeadlineExceeded, Error_Code_DEADLINE_EXCEEDED);
  NUMBER(abi::kMajorVersion, API_MAJOR);
  EXPECT_GE(XLA_FFI_API_MINOR, abi::kOldestMinorVersion);
  EXPECT_LE(XLA_FFI_API_MINOR, abi::kNewestMinorVersion);
}

TEST(FfiAbi, ElementTypesAreThoseOfTheHeader) {
  NUMBER(ElementType::kPred, DataType_PRED);
  NUMBER(ElementType::kS8, DataType_S8);
  NUMBER(ElementType::kS64, DataType_S64);
  NUMBER(ElementType::kU64, DataType_U64);
  NUMBER(ElementType::kF16, DataType_F16);
  NUMBER(ElementType::kF32, DataType_F32);
  NUMBER(ElementType::kF64, DataType_F64);
  NUMBER(ElementType::kBF16, DataType_BF16);
  NUMBER(ElementType::kC64, DataType_C64);
  NUMBER(ElementType::kC128, DataType_C128);
  NUMBER(ElementType::kToken, DataType_TOKEN);
  NUMBER(ElementType::kF8E5M2, DataType_F8E5M2);
  NUMBER(ElementType::kF8E3M4, DataType_F8E3M4);
  NUMBER(ElementType::kF8E4M3, DataType_F8E4M3);
  NUMBER(ElementType::kF8E4M3FN, DataType_F8E4M3FN);
  NUMBER(ElementType::kF8E4M3B11FNUZ, DataType_F8E4M3B11FNUZ);
  NUMBER(ElementType::kF8E5M2FNUZ, DataType_F8E5M2FNUZ);
  NUMBER(ElementType::kF8E4M3FNUZ, DataType_F8E4M3FNUZ);
#if XLA_FFI_API_MINOR >= 2
  NUMBER(ElementType::kS1, DataType_S1);
  NUMBER(ElementType::kS2, DataType_S2);
  NUMBER(ElementType::kS4, DataType_S4);
  NUMBER(ElementType::kU1, DataType_U1);
  NUMBER(ElementType::kU2, DataType_U2);
  NUMBER(ElementType::kU4, DataType_U4);
#endif
  NUMBER(ElementType::kF4E2M1FN, DataType_F4E2M1FN);
  NUMBER(ElementType::kF8E8M0FNU, DataType_F8E8M0FNU);
}

}  // namespace
}  // namespace shardcall
