// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/pjrt_plugin.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shardcall/kernels/ffi/guard/crash_guard.h"
#include "shardcall/kernels/ffi/load/library.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

namespace abi {

const char* FunctionName(Function function) {
  switch (function) {
    case Function::kErrorDestroy: return "PJRT_Error_Destroy";
    case Function::kErrorMessage: return "PJRT_Error_Message";
    case Function::kErrorGetCode: return "PJRT_Error_GetCode";
    case Function::kPluginInitialize: return "PJRT_Plugin_Initialize";
    case Function::kEventDestroy: return "PJRT_Event_Destroy";
    case Function::kEventAwait: return "PJRT_Event_Await";
    case Function::kClientCreate: return "PJRT_Client_Create";
    case Function::kClientDestroy: return "PJRT_Client_Destroy";
    case Function::kClientPlatformName: return "PJRT_Client_PlatformName";
    case Function::kClientPlatformVersion: return "PJRT_Client_PlatformVersion";
    case Function::kClientAddressableDevices: return "PJRT_Client_AddressableDevices";
    case Function::kClientCompile: return "PJRT_Client_Compile";
    case Function::kClientBufferFromHostBuffer: return "PJRT_Client_BufferFromHostBuffer";
    case Function::kDeviceDescriptionId: return "PJRT_DeviceDescription_Id";
    case Function::kDeviceGetDescription: return "PJRT_Device_GetDescription";
    case Function::kExecutableDestroy: return "PJRT_Executable_Destroy";
    case Function::kExecutableNumOutputs: return "PJRT_Executable_NumOutputs";
    case Function::kLoadedExecutableDestroy: return "PJRT_LoadedExecutable_Destroy";
    case Function::kLoadedExecutableGetExecutable: return "PJRT_LoadedExecutable_GetExecutable";
    case Function::kLoadedExecutableExecute: return "PJRT_LoadedExecutable_Execute";
    case Function::kBufferDestroy: return "PJRT_Buffer_Destroy";
    case Function::kBufferDimensions: return "PJRT_Buffer_Dimensions";
    case Function::kBufferToHostBuffer: return "PJRT_Buffer_ToHostBuffer";
    case Function::kExecutableOptimizedProgram: return "PJRT_Executable_OptimizedProgram";
    case Function::kExecutableSerialize: return "PJRT_Executable_Serialize";
    case Function::kTopologyCreate: return "PJRT_TopologyDescription_Create";
    case Function::kTopologyDestroy: return "PJRT_TopologyDescription_Destroy";
    case Function::kTopologyPlatformName: return "PJRT_TopologyDescription_PlatformName";
    case Function::kTopologyPlatformVersion: return "PJRT_TopologyDescription_PlatformVersion";
    case Function::kTopologyDevices: return "PJRT_TopologyDescription_GetDeviceDescriptions";
    case Function::kClientTopology: return "PJRT_Client_TopologyDescription";
    case Function::kCompile: return "PJRT_Compile";
    case Function::kExecutableMemory: return "PJRT_Executable_GetCompiledMemoryStats";
  }
  return "?";
}

}  // namespace abi

namespace {

using abi::Api;
using abi::Error;
using abi::Function;
using abi::Padded;

absl::Status NoPlugin(absl::string_view name, std::string message, std::string expected,
                      std::string found) {
  return ToStatus({.code = "E333",
                   .message = absl::StrCat("\"", name, "\" ", message),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "Give the PJRT plugin of a backend, such as that of the wheel "
                          "xla-cpu-pjrt or jax-cuda13-pjrt"},
                  absl::StatusCode::kFailedPrecondition);
}

constexpr size_t kTable = offsetof(Api, functions);

}  // namespace

absl::StatusOr<std::shared_ptr<const Plugin>> Plugin::Open(const std::string& path) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const Library> library, Library::Open(path));
  void* const entry = library->Find("GetPjrtApi");
  if (entry == nullptr) {
    return NoPlugin(path, "is no PJRT plugin", "a library that exports GetPjrtApi", "");
  }
  const void* api = nullptr;
  if (!CallCatchingSignals([&] { api = reinterpret_cast<const void* (*)()>(entry)(); })) {
    return NoPlugin(path, "crashed in GetPjrtApi", "", "");
  }
  return FromApi(api, path);
}

absl::StatusOr<std::shared_ptr<const Plugin>> Plugin::FromApi(const void* api, std::string name,
                                                              bool initialize) {
  const auto* const table = static_cast<const Api*>(api);
  if (table == nullptr || table->header.struct_size < kTable) {
    return NoPlugin(name, "gives no PJRT_Api", "a table of functions",
                    table == nullptr ? "null" : absl::StrCat(table->header.struct_size, " bytes"));
  }
  const abi::Version& version = table->version;
  if (version.major != abi::kMajorVersion || version.minor < abi::kOldestMinorVersion) {
    return NoPlugin(name, "is of a version of PJRT that is not supported",
                    absl::StrCat(abi::kMajorVersion, ".", abi::kOldestMinorVersion, " or newer"),
                    absl::StrCat(version.major, ".", version.minor));
  }
  std::shared_ptr<const Plugin> plugin(new Plugin(table, std::move(name)));
  Padded<abi::NoArgs> args;
  if (initialize) {
    SHARDCALL_RETURN_IF_ERROR(plugin->Call(Function::kPluginInitialize, &args));
  }
  return plugin;
}

abi::Padded<abi::Program> ProgramOf(absl::string_view format, absl::string_view code) {
  Padded<abi::Program> program;
  program.value.code = code.data();
  program.value.code_size = code.size();
  program.value.format = format.data();
  program.value.format_size = format.size();
  return program;
}

void Plugin::Destroy(abi::Executable* executable) const {
  Padded<abi::ExecutableArgs> args;
  args.value.executable = executable;
  Call(Function::kExecutableDestroy, &args).IgnoreError();
}
void Plugin::Destroy(abi::LoadedExecutable* executable) const {
  Padded<abi::LoadedExecutableArgs> args;
  args.value.executable = executable;
  Call(Function::kLoadedExecutableDestroy, &args).IgnoreError();
}

const void* Plugin::Find(Function function) const {
  const size_t place = kTable + static_cast<size_t>(function) * sizeof(void*);
  if (place + sizeof(void*) > api_->header.struct_size) return nullptr;
  return *(api_->functions + static_cast<size_t>(function));
}

absl::Status Plugin::CallAny(Function function, void* args) const {
  const void* const found = Find(function);
  if (found == nullptr) {
    return ToStatus(
        {.code = "E334",
         .message = absl::StrCat("the PJRT plugin \"", name_, "\" has no ", FunctionName(function)),
         .fix = "Use a plugin that has it"},
        absl::StatusCode::kUnimplemented);
  }
  const Error* const error = reinterpret_cast<const Error* (*)(void*)>(found)(args);
  return error == nullptr ? absl::OkStatus() : Take(error, function);
}

// Errors of these three functions are ignored, since there is no way to handle them.
absl::Status Plugin::Take(const Error* error, Function function) const {
  const auto ask = [&](Function f, void* args) {
    const void* const found = Find(f);
    if (found == nullptr) return;
    if (f == Function::kErrorGetCode) {
      reinterpret_cast<const Error* (*)(void*)>(found)(args);
    } else {
      reinterpret_cast<void (*)(void*)>(found)(args);
    }
  };
  Padded<abi::ErrorMessageArgs> message;
  message.value.error = error;
  ask(Function::kErrorMessage, &message);
  Padded<abi::ErrorCodeArgs> code;
  code.value.error = error;
  ask(Function::kErrorGetCode, &code);
  absl::string_view said(message.value.message == nullptr ? "" : message.value.message,
                         message.value.message == nullptr ? 0 : message.value.message_size);
  absl::ConsumeSuffix(&said, ".");
  const bool known = code.value.code > 0 && code.value.code <= 16;
  absl::Status status =
      ToStatus({.code = "E334",
                .message = absl::StrCat(FunctionName(function), " of the PJRT plugin \"", name_,
                                        "\" failed: ", said.empty() ? "it does not say why" : said),
                .fix = "See what the plugin says"},
               known ? static_cast<absl::StatusCode>(code.value.code) : absl::StatusCode::kUnknown);
  Padded<abi::ErrorArgs> destroy;
  destroy.value.error = error;
  ask(Function::kErrorDestroy, &destroy);
  return status;
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
