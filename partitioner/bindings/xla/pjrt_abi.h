// SPDX-License-Identifier: Apache-2.0
// The part of PJRT's C API that is used here, declared without XLA's headers: layouts and numbers
// are those of XLA's pjrt_c_api.h, versions 0.81 to 0.112 (LP64, little endian).
// tests/partitioner/bindings/pjrt asserts them against that header if it is found.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_ABI_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_ABI_H_

#include <cstddef>
#include <cstdint>

struct Shardcall_PjrtCallbacks;  // pjrt_partitioner.h

namespace shardcall {
inline namespace internal {
namespace pjrt::abi {

struct Error;
struct Event;
struct Client;
struct Device;
struct Buffer;
struct Executable;
struct LoadedExecutable;
struct Topology;

struct Extension {
  size_t struct_size;
  int32_t type;
  Extension* next;
};
// Types of extensions.
inline constexpr int32_t kGpuCustomCallExtension = 0;
inline constexpr int32_t kPartitionerExtension = 2;
inline constexpr int32_t kFfiExtension = 5;

// The first member of every struct of arguments.
struct Header {
  size_t struct_size;
  Extension* extension_start;
};
struct Version {
  Header header;
  int32_t major, minor;
};

// Positions in the table of functions.
enum class Function : int {
  kErrorDestroy = 0,
  kErrorMessage = 1,
  kErrorGetCode = 2,
  kPluginInitialize = 3,
  kEventDestroy = 5,
  kEventAwait = 8,
  kClientCreate = 10,
  kClientDestroy = 11,
  kClientPlatformName = 12,
  kClientPlatformVersion = 14,
  kClientAddressableDevices = 16,
  kClientCompile = 20,
  kClientBufferFromHostBuffer = 22,
  kDeviceDescriptionId = 23,
  kDeviceGetDescription = 29,
  kExecutableDestroy = 40,
  kExecutableNumOutputs = 44,
  kExecutableOptimizedProgram = 48,
  kExecutableSerialize = 49,
  kLoadedExecutableDestroy = 50,
  kLoadedExecutableGetExecutable = 51,
  kLoadedExecutableExecute = 55,
  kBufferDestroy = 58,
  kBufferDimensions = 60,
  kBufferToHostBuffer = 70,
  kTopologyCreate = 82,
  kTopologyDestroy = 83,
  kTopologyPlatformName = 84,
  kTopologyPlatformVersion = 85,
  kTopologyDevices = 86,
  kCompile = 89,
  kClientTopology = 95,
  kExecutableMemory = 96,
};
const char* FunctionName(Function function);  // "PJRT_Client_Compile"

struct Api {
  Header header;
  Version version;
  const void* functions[1];  // as many as header.struct_size has room for
};
inline constexpr int kMajorVersion = 0;
inline constexpr int kOldestMinorVersion = 81;
// From this version on collectives may give their groups as iotas.
inline constexpr int kIotaGroupsMinorVersion = 100;

struct ErrorArgs {  // of kErrorDestroy
  Header header;
  const Error* error;
};
struct ErrorMessageArgs {
  Header header;
  const Error* error;
  const char* message;  // out
  size_t message_size;  // out
};
struct ErrorCodeArgs {
  Header header;
  const Error* error;
  int32_t code;  // out: of absl::StatusCode
};
struct NoArgs {  // of kPluginInitialize
  Header header;
};
struct EventArgs {  // of kEventDestroy, kEventAwait
  Header header;
  Event* event;
};

enum class ValueType : int32_t { kString = 0, kInt64, kInt64List, kFloat, kBool };
struct NamedValue {
  Header header;
  const char* name;
  size_t name_size;
  ValueType type;
  union {
    const char* string_value;
    int64_t int64_value;
    const int64_t* int64_list;
    float float_value;
    bool bool_value;
  };
  size_t value_size;  // of strings and lists; else 1
};
struct ClientCreateArgs {
  Header header;
  const NamedValue* options;
  size_t num_options;
  void* key_value[4];  // two callbacks with their data; null: one process
  Client* client;      // out
  void* try_get[2];
};
struct ClientArgs {  // of kClientDestroy
  Header header;
  Client* client;
};
struct ClientTextArgs {  // of kClientPlatformName, kClientPlatformVersion
  Header header;
  Client* client;
  const char* text;  // out
  size_t size;       // out
};
struct ClientDevicesArgs {
  Header header;
  Client* client;
  Device* const* devices;  // out
  size_t num_devices;      // out
};
struct DeviceDescriptionArgs {
  Header header;
  Device* device;
  void* description;  // out
};
struct DescriptionIdArgs {
  Header header;
  void* description;
  int32_t id;  // out
};

struct Program {
  Header header;
  const char* code;
  size_t code_size;
  const char* format;  // "hlo": a serialised HloModuleProto
  size_t format_size;
};
struct CompileArgs {
  Header header;
  Client* client;
  const Program* program;
  const char* options;  // a serialised CompileOptionsProto
  size_t options_size;
  LoadedExecutable* executable;  // out
};
struct ExecutableArgs {  // of kExecutableDestroy
  Header header;
  Executable* executable;
};
struct LoadedExecutableArgs {  // of kLoadedExecutableDestroy
  Header header;
  LoadedExecutable* executable;
};
struct GetExecutableArgs {
  Header header;
  LoadedExecutable* loaded;
  Executable* executable;  // out
};
struct NumOutputsArgs {
  Header header;
  Executable* executable;
  size_t num_outputs;  // out
};

enum class HostBufferSemantics : int32_t { kImmutableOnlyDuringCall = 0, kImmutableZeroCopy = 2 };
struct FromHostArgs {
  Header header;
  Client* client;
  const void* data;
  int32_t type;  // of pjrt_types.h
  const int64_t* dims;
  size_t num_dims;
  const int64_t* byte_strides;  // null: dense, row-major
  size_t num_byte_strides;
  HostBufferSemantics semantics;
  Device* device;
  void* memory;         // null: the device's default
  void* device_layout;  // null: the default
  Event* done;          // out
  Buffer* buffer;       // out
};
struct TiledLayout {
  Header header;
  const int64_t* minor_to_major;
  size_t minor_to_major_size;
  const int64_t* tile_dims;
  const size_t* tile_dim_sizes;
  size_t num_tiles;
};
struct MemoryLayout {
  Header header;
  TiledLayout tiled;
  int32_t type;  // 0: tiled
};
struct ToHostArgs {
  Header header;
  Buffer* buffer;
  MemoryLayout* layout;  // null: that of the buffer
  void* dst;             // null: only dst_size is answered
  size_t dst_size;       // in and out
  Event* event;          // out
};
struct BufferArgs {  // of kBufferDestroy
  Header header;
  Buffer* buffer;
};
struct BufferDimsArgs {
  Header header;
  Buffer* buffer;
  const int64_t* dims;  // out
  size_t num_dims;      // out
};

struct ExecuteOptions {
  Header header;
  void* send_callbacks;
  void* recv_callbacks;
  size_t num_send_ops, num_recv_ops;
  int32_t launch_id;
  const int64_t* non_donatable;  // indices of arguments
  size_t num_non_donatable;
  void* context;
  const char* call_location;
  size_t num_tasks;
  int32_t* task_ids;
  int64_t* incarnation_ids;
};
struct ExecuteArgs {
  Header header;
  LoadedExecutable* executable;
  ExecuteOptions* options;
  Buffer* const* const* arguments;  // [device][argument]
  size_t num_devices;
  size_t num_args;
  Buffer** const* outputs;  // [device][output], filled
  Event** done;             // [device], out; null: not asked for
  Device* execute_device;
};

// Ahead-of-time compilation, for devices that need not exist.
struct TopologyCreateArgs {
  Header header;
  const char* name;
  size_t name_size;
  const NamedValue* options;
  size_t num_options;
  Topology* topology;  // out
};
struct TopologyArgs {  // of kTopologyDestroy
  Header header;
  Topology* topology;
};
struct TopologyTextArgs {  // of kTopologyPlatformName, kTopologyPlatformVersion
  Header header;
  const Topology* topology;
  const char* text;  // out
  size_t size;       // out
};
struct TopologyDevicesArgs {
  Header header;
  const Topology* topology;
  void* const* descriptions;  // out
  size_t num_descriptions;    // out
};
struct CompileAheadArgs {
  Header header;
  const Topology* topology;
  const Program* program;
  const char* options;  // a serialised CompileOptionsProto
  size_t options_size;
  Client* client;          // null: no devices
  Executable* executable;  // out
};
struct ClientTopologyArgs {
  Header header;
  Client* client;
  const Topology* topology;  // out; the client's own
};
struct OptimizedProgramArgs {
  Header header;
  Executable* executable;
  Program* program;  // code null: its size is answered; else it is filled
};
struct MemoryArgs {  // of kExecutableMemory; out, in bytes
  Header header;
  Executable* executable;
  int64_t code, arguments, outputs, aliased, temporaries;
  int64_t host[5];  // the same in host memory
  int64_t peak;     // 0 where the plugin does not say
};
struct SerializeArgs {
  Header header;
  const Executable* executable;
  const char* bytes;                  // out
  size_t size;                        // out
  void* serialized;                   // out: what owns the bytes
  void (*deleter)(void* serialized);  // out
};

// The extensions for registration. Their structs of arguments have no header.
struct RegistrationArgs {  // how they begin
  size_t struct_size;
  const char* name;
  size_t name_size;
};
struct PartitionerArgs {
  size_t struct_size;
  const char* name;
  size_t name_size;
  Shardcall_PjrtCallbacks* callbacks;  // owned by who registers it
};
struct PartitionerExtension {
  Extension base;
  Error* (*partitioner)(PartitionerArgs*);
  Error* (*batch_partitionable)(RegistrationArgs*);
};
struct RegisterHandlerArgs {
  size_t struct_size;
  const char* name;
  size_t name_size;
  const void* handler;
  const char* platform;
  size_t platform_size;
  uint32_t traits;
};
struct FfiExtension {
  Extension base;
  const void *register_type, *add_user_data;
  Error* (*register_handler)(RegisterHandlerArgs*);
};

// A struct of arguments followed by zeros. A plugin refuses a struct_size below its own and
// accepts a larger one, so that one build works with plugins whose structs have grown since.
template <typename Args>
struct Padded {
  Padded() {
    Args* const args = &value;
    reinterpret_cast<Header*>(args)->struct_size = sizeof(*this);
  }
  Args value = {};
  char room[512] = {};
};

}  // namespace pjrt::abi
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_ABI_H_
