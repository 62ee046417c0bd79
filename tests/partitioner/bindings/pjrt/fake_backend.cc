// SPDX-License-Identifier: Apache-2.0
#include "tests/partitioner/bindings/pjrt/fake_backend.h"

#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "shardcall/partitioner/bindings/pjrt/pjrt_types.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace abi {

struct Error {};
struct Event {};
struct Device {
  int32_t id;
};
struct Client {
  std::vector<Device> all;
  std::vector<Device*> devices;
};
struct Buffer {
  std::vector<int64_t> dims;
  std::vector<char> bytes;
};
struct Executable {
  size_t results = 0;
};
struct LoadedExecutable {
  size_t results = 0;
};

}  // namespace abi

namespace {

using abi::Function;

FakeBackend* current = nullptr;

abi::Error* Failure(Function function) {
  if (current->fails != function) return nullptr;
  ++current->errors;
  return new abi::Error;
}

template <typename T>
T* Make(std::atomic<int>& alive) {
  ++alive;
  return new T();
}
template <typename T>
void Unmake(T* object, std::atomic<int>& alive) {
  --alive;
  delete object;
}

void ErrorMessage(abi::ErrorMessageArgs* args) {
  args->message = "says the backend";
  args->message_size = std::strlen(args->message);
}
void ErrorDestroy(abi::ErrorArgs* args) {
  Unmake(const_cast<abi::Error*>(args->error), current->errors);
}
abi::Error* ErrorGetCode(abi::ErrorCodeArgs* args) {
  args->code = current->code;
  return nullptr;
}
abi::Error* Initialize(abi::NoArgs*) { return Failure(Function::kPluginInitialize); }
abi::Error* EventDestroy(abi::EventArgs* args) {
  Unmake(args->event, current->events);
  return nullptr;
}
abi::Error* EventAwait(abi::EventArgs*) { return Failure(Function::kEventAwait); }

abi::Error* ClientCreate(abi::ClientCreateArgs* args) {
  if (abi::Error* error = Failure(Function::kClientCreate)) return error;
  auto* client = Make<abi::Client>(current->clients);
  int count = current->devices;
  for (size_t k = 0; k < args->num_options; ++k) {
    const abi::NamedValue& option = args->options[k];
    if (option.type == abi::ValueType::kInt64 &&
        std::string(option.name, option.name_size) == "cpu_device_count") {
      count = static_cast<int>(option.int64_value);
    }
  }
  for (int d = 0; d < count; ++d) client->all.push_back({100 + d});
  for (abi::Device& d : client->all) client->devices.push_back(&d);
  args->client = client;
  return nullptr;
}
abi::Error* ClientDestroy(abi::ClientArgs* args) {
  Unmake(args->client, current->clients);
  return nullptr;
}
abi::Error* PlatformName(abi::ClientTextArgs* args) {
  args->text = current->platform.data();
  args->size = current->platform.size();
  return Failure(Function::kClientPlatformName);
}
abi::Error* Devices(abi::ClientDevicesArgs* args) {
  args->devices = args->client->devices.data();
  args->num_devices = args->client->devices.size();
  return Failure(Function::kClientAddressableDevices);
}
abi::Error* Description(abi::DeviceDescriptionArgs* args) {
  args->description = args->device;
  return Failure(Function::kDeviceGetDescription);
}
abi::Error* DescriptionId(abi::DescriptionIdArgs* args) {
  args->id = static_cast<abi::Device*>(args->description)->id;
  return Failure(Function::kDeviceDescriptionId);
}
abi::Error* Compile(abi::CompileArgs* args) {
  if (current->compiles) current->compiles();
  if (abi::Error* error = Failure(Function::kClientCompile)) return error;
  current->program.assign(args->program->code, args->program->code_size);
  current->options.assign(args->options, args->options_size);
  args->executable = Make<abi::LoadedExecutable>(current->executables);
  args->executable->results = current->results;
  return nullptr;
}
abi::Error* GetExecutable(abi::GetExecutableArgs* args) {
  if (abi::Error* error = Failure(Function::kLoadedExecutableGetExecutable)) return error;
  args->executable = Make<abi::Executable>(current->executables);
  args->executable->results = args->loaded->results;
  return nullptr;
}
abi::Error* NumOutputs(abi::NumOutputsArgs* args) {
  args->num_outputs = args->executable->results;
  return Failure(Function::kExecutableNumOutputs);
}
abi::Error* ExecutableDestroy(abi::ExecutableArgs* args) {
  Unmake(args->executable, current->executables);
  return nullptr;
}
abi::Error* LoadedDestroy(abi::LoadedExecutableArgs* args) {
  Unmake(args->executable, current->executables);
  return nullptr;
}
abi::Error* FromHost(abi::FromHostArgs* args) {
  if (abi::Error* error = Failure(Function::kClientBufferFromHostBuffer)) return error;
  ++current->puts;
  auto* buffer = Make<abi::Buffer>(current->buffers);
  buffer->dims.assign(args->dims, args->dims + args->num_dims);
  int64_t bytes = ElementTypeBytes(kBufferTypes[args->type]);
  for (int64_t d : buffer->dims) bytes *= d;
  const auto* data = static_cast<const char*>(args->data);
  buffer->bytes.assign(data, data + bytes);
  args->buffer = buffer;
  args->done = Make<abi::Event>(current->events);
  return nullptr;
}
abi::Error* Execute(abi::ExecuteArgs* args) {
  if (abi::Error* error = Failure(Function::kLoadedExecutableExecute)) return error;
  const abi::ExecuteOptions& options = *args->options;
  current->lent.assign(options.non_donatable, options.non_donatable + options.num_non_donatable);
  while (current->hangs) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (size_t d = 0; d < args->num_devices; ++d) {
    for (size_t k = 0; k < args->executable->results; ++k) {
      auto* result = Make<abi::Buffer>(current->buffers);
      if (k < args->num_args) *result = *args->arguments[d][k];
      args->outputs[d][k] = result;
    }
    args->done[d] = Make<abi::Event>(current->events);
  }
  return nullptr;
}
abi::Error* BufferDestroy(abi::BufferArgs* args) {
  Unmake(args->buffer, current->buffers);
  return nullptr;
}
abi::Error* Dimensions(abi::BufferDimsArgs* args) {
  args->dims = args->buffer->dims.data();
  args->num_dims = args->buffer->dims.size();
  return Failure(Function::kBufferDimensions);
}
abi::Error* ToHost(abi::ToHostArgs* args) {
  if (abi::Error* error = Failure(Function::kBufferToHostBuffer)) return error;
  ++current->copies;
  std::memcpy(args->dst, args->buffer->bytes.data(), args->dst_size);
  args->event = Make<abi::Event>(current->events);
  return nullptr;
}

// The extension that takes handlers of the typed FFI.
abi::Error* RegisterHandler(abi::RegisterHandlerArgs* args) {
  current->handlers.push_back(std::string(args->name, args->name_size) + " for " +
                              std::string(args->platform, args->platform_size));
  return nullptr;
}
abi::FfiExtension ffi_extension = {
    {sizeof(abi::FfiExtension), abi::kFfiExtension, nullptr}, nullptr, nullptr, RegisterHandler};

}  // namespace

FakeBackend::FakeBackend() {
  constexpr size_t kFunctions = 118;
  table_.assign(offsetof(abi::Api, functions) / sizeof(size_t) + kFunctions, 0);
  auto* api = reinterpret_cast<abi::Api*>(table_.data());
  api->header.struct_size = table_.size() * sizeof(size_t);
  api->header.extension_start = &ffi_extension.base;
  api->version = {{sizeof(abi::Version), nullptr}, abi::kMajorVersion, abi::kOldestMinorVersion};
  const auto set = [&](Function f, auto* function) {
    api->functions[static_cast<int>(f)] = reinterpret_cast<const void*>(function);
  };
  set(Function::kErrorDestroy, ErrorDestroy);
  set(Function::kErrorMessage, ErrorMessage);
  set(Function::kErrorGetCode, ErrorGetCode);
  set(Function::kPluginInitialize, Initialize);
  set(Function::kEventDestroy, EventDestroy);
  set(Function::kEventAwait, EventAwait);
  set(Function::kClientCreate, ClientCreate);
  set(Function::kClientDestroy, ClientDestroy);
  set(Function::kClientPlatformName, PlatformName);
  set(Function::kClientAddressableDevices, Devices);
  set(Function::kClientCompile, Compile);
  set(Function::kClientBufferFromHostBuffer, FromHost);
  set(Function::kDeviceDescriptionId, DescriptionId);
  set(Function::kDeviceGetDescription, Description);
  set(Function::kExecutableDestroy, ExecutableDestroy);
  set(Function::kExecutableNumOutputs, NumOutputs);
  set(Function::kLoadedExecutableDestroy, LoadedDestroy);
  set(Function::kLoadedExecutableGetExecutable, GetExecutable);
  set(Function::kLoadedExecutableExecute, Execute);
  set(Function::kBufferDestroy, BufferDestroy);
  set(Function::kBufferDimensions, Dimensions);
  set(Function::kBufferToHostBuffer, ToHost);
  current = this;
}

FakeBackend::~FakeBackend() { current = nullptr; }

void FakeBackend::Truncate(abi::Function after) {
  reinterpret_cast<abi::Api*>(table_.data())->header.struct_size =
      offsetof(abi::Api, functions) + (static_cast<size_t>(after) + 1) * sizeof(void*);
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
