// SPDX-License-Identifier: Apache-2.0
// Our declarations of PJRT's C API against XLA's own header. Compiled only where that
// is found; there is nothing to run.
#include <pjrt_c_api.h>

#include <cstddef>

#include "shardcall/partitioner/bindings/pjrt/pjrt_types.h"
#include "shardcall/partitioner/bindings/xla/pjrt_abi.h"

namespace shardcall {
inline namespace internal {
namespace pjrt::abi {
namespace {

// Our struct is no longer than theirs, and this field lies where theirs does.
#define SAME(ours, our_field, theirs, their_field)                           \
  static_assert(sizeof(ours) <= sizeof(theirs));                             \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field)); \
  static_assert(sizeof(ours::our_field) == sizeof(theirs::their_field))

#define PLACE(ours, theirs)                   \
  static_assert(offsetof(PJRT_Api, theirs) == \
                offsetof(Api, functions) + static_cast<size_t>(Function::ours) * sizeof(void*))

SAME(Version, minor, PJRT_Api_Version, minor_version);
SAME(ErrorArgs, error, PJRT_Error_Destroy_Args, error);
SAME(ErrorMessageArgs, message_size, PJRT_Error_Message_Args, message_size);
SAME(ErrorCodeArgs, code, PJRT_Error_GetCode_Args, code);
SAME(EventArgs, event, PJRT_Event_Await_Args, event);
SAME(EventArgs, event, PJRT_Event_Destroy_Args, event);
SAME(NamedValue, type, PJRT_NamedValue, type);
SAME(NamedValue, int64_value, PJRT_NamedValue, int64_value);
SAME(NamedValue, value_size, PJRT_NamedValue, value_size);
static_assert(sizeof(NamedValue) == sizeof(PJRT_NamedValue));  // they stand in arrays
SAME(ClientCreateArgs, num_options, PJRT_Client_Create_Args, num_options);
SAME(ClientCreateArgs, client, PJRT_Client_Create_Args, client);
SAME(ClientArgs, client, PJRT_Client_Destroy_Args, client);
SAME(ClientTextArgs, size, PJRT_Client_PlatformName_Args, platform_name_size);
SAME(ClientTextArgs, size, PJRT_Client_PlatformVersion_Args, platform_version_size);
SAME(ClientDevicesArgs, num_devices, PJRT_Client_AddressableDevices_Args, num_addressable_devices);
SAME(DeviceDescriptionArgs, description, PJRT_Device_GetDescription_Args, device_description);
SAME(DescriptionIdArgs, id, PJRT_DeviceDescription_Id_Args, id);
SAME(Program, format_size, PJRT_Program, format_size);
SAME(CompileArgs, options_size, PJRT_Client_Compile_Args, compile_options_size);
SAME(CompileArgs, executable, PJRT_Client_Compile_Args, executable);
SAME(ExecutableArgs, executable, PJRT_Executable_Destroy_Args, executable);
SAME(LoadedExecutableArgs, executable, PJRT_LoadedExecutable_Destroy_Args, executable);
SAME(GetExecutableArgs, executable, PJRT_LoadedExecutable_GetExecutable_Args, executable);
SAME(NumOutputsArgs, num_outputs, PJRT_Executable_NumOutputs_Args, num_outputs);
SAME(FromHostArgs, type, PJRT_Client_BufferFromHostBuffer_Args, type);
SAME(FromHostArgs, semantics, PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics);
SAME(FromHostArgs, device_layout, PJRT_Client_BufferFromHostBuffer_Args, device_layout);
SAME(FromHostArgs, buffer, PJRT_Client_BufferFromHostBuffer_Args, buffer);
SAME(TiledLayout, num_tiles, PJRT_Buffer_MemoryLayout_Tiled, num_tiles);
SAME(MemoryLayout, tiled, PJRT_Buffer_MemoryLayout, tiled);
SAME(MemoryLayout, type, PJRT_Buffer_MemoryLayout, type);
SAME(ToHostArgs, dst_size, PJRT_Buffer_ToHostBuffer_Args, dst_size);
SAME(ToHostArgs, event, PJRT_Buffer_ToHostBuffer_Args, event);
SAME(BufferArgs, buffer, PJRT_Buffer_Destroy_Args, buffer);
SAME(BufferDimsArgs, num_dims, PJRT_Buffer_Dimensions_Args, num_dims);
SAME(ExecuteOptions, launch_id, PJRT_ExecuteOptions, launch_id);
SAME(ExecuteOptions, num_non_donatable, PJRT_ExecuteOptions, num_non_donatable_input_indices);
SAME(ExecuteOptions, incarnation_ids, PJRT_ExecuteOptions, incarnation_ids);
SAME(ExecuteArgs, num_args, PJRT_LoadedExecutable_Execute_Args, num_args);
SAME(ExecuteArgs, execute_device, PJRT_LoadedExecutable_Execute_Args, execute_device);

SAME(TopologyCreateArgs, num_options, PJRT_TopologyDescription_Create_Args, num_options);
SAME(TopologyCreateArgs, topology, PJRT_TopologyDescription_Create_Args, topology);
SAME(TopologyArgs, topology, PJRT_TopologyDescription_Destroy_Args, topology);
SAME(TopologyTextArgs, size, PJRT_TopologyDescription_PlatformName_Args, platform_name_size);
SAME(TopologyDevicesArgs, num_descriptions, PJRT_TopologyDescription_GetDeviceDescriptions_Args,
     num_descriptions);
SAME(CompileAheadArgs, options_size, PJRT_Compile_Args, compile_options_size);
SAME(CompileAheadArgs, executable, PJRT_Compile_Args, executable);
SAME(CompileAheadArgs, client, PJRT_Compile_Args, client);
SAME(ClientTopologyArgs, topology, PJRT_Client_TopologyDescription_Args, topology);
SAME(OptimizedProgramArgs, program, PJRT_Executable_OptimizedProgram_Args, program);
SAME(MemoryArgs, code, PJRT_Executable_GetCompiledMemoryStats_Args, generated_code_size_in_bytes);
SAME(MemoryArgs, temporaries, PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes);
SAME(MemoryArgs, peak, PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes);
SAME(SerializeArgs, size, PJRT_Executable_Serialize_Args, serialized_bytes_size);
SAME(SerializeArgs, deleter, PJRT_Executable_Serialize_Args, serialized_executable_deleter);

PLACE(kErrorDestroy, PJRT_Error_Destroy);
PLACE(kErrorMessage, PJRT_Error_Message);
PLACE(kErrorGetCode, PJRT_Error_GetCode);
PLACE(kPluginInitialize, PJRT_Plugin_Initialize);
PLACE(kEventDestroy, PJRT_Event_Destroy);
PLACE(kEventAwait, PJRT_Event_Await);
PLACE(kClientCreate, PJRT_Client_Create);
PLACE(kClientDestroy, PJRT_Client_Destroy);
PLACE(kClientPlatformName, PJRT_Client_PlatformName);
PLACE(kClientPlatformVersion, PJRT_Client_PlatformVersion);
PLACE(kClientAddressableDevices, PJRT_Client_AddressableDevices);
PLACE(kClientCompile, PJRT_Client_Compile);
PLACE(kClientBufferFromHostBuffer, PJRT_Client_BufferFromHostBuffer);
PLACE(kDeviceDescriptionId, PJRT_DeviceDescription_Id);
PLACE(kDeviceGetDescription, PJRT_Device_GetDescription);
PLACE(kExecutableDestroy, PJRT_Executable_Destroy);
PLACE(kExecutableNumOutputs, PJRT_Executable_NumOutputs);
PLACE(kLoadedExecutableDestroy, PJRT_LoadedExecutable_Destroy);
PLACE(kLoadedExecutableGetExecutable, PJRT_LoadedExecutable_GetExecutable);
PLACE(kLoadedExecutableExecute, PJRT_LoadedExecutable_Execute);
PLACE(kBufferDestroy, PJRT_Buffer_Destroy);
PLACE(kBufferDimensions, PJRT_Buffer_Dimensions);
PLACE(kBufferToHostBuffer, PJRT_Buffer_ToHostBuffer);
PLACE(kExecutableSerialize, PJRT_Executable_Serialize);
PLACE(kTopologyCreate, PJRT_TopologyDescription_Create);
PLACE(kTopologyDestroy, PJRT_TopologyDescription_Destroy);
PLACE(kTopologyPlatformName, PJRT_TopologyDescription_PlatformName);
PLACE(kTopologyDevices, PJRT_TopologyDescription_GetDeviceDescriptions);
PLACE(kCompile, PJRT_Compile);
PLACE(kClientTopology, PJRT_Client_TopologyDescription);
PLACE(kExecutableOptimizedProgram, PJRT_Executable_OptimizedProgram);
PLACE(kTopologyPlatformVersion, PJRT_TopologyDescription_PlatformVersion);
PLACE(kExecutableMemory, PJRT_Executable_GetCompiledMemoryStats);

static_assert(static_cast<int>(HostBufferSemantics::kImmutableZeroCopy) ==
              PJRT_HostBufferSemantics_kImmutableZeroCopy);
static_assert(static_cast<int>(ValueType::kBool) == PJRT_NamedValue_kBool);
static_assert(kBufferTypes[PJRT_Buffer_Type_PRED] == ElementType::kPred &&
              kBufferTypes[PJRT_Buffer_Type_BF16] == ElementType::kBF16 &&
              kBufferTypes[PJRT_Buffer_Type_C128] == ElementType::kC128 &&
              kBufferTypes[PJRT_Buffer_Type_F8E4M3FNUZ] == ElementType::kF8E4M3FNUZ &&
              kBufferTypes[PJRT_Buffer_Type_TOKEN] == ElementType::kToken &&
              kBufferTypes[PJRT_Buffer_Type_F4E2M1FN] == ElementType::kF4E2M1FN);

}  // namespace
}  // namespace pjrt::abi
}  // namespace internal
}  // namespace shardcall
