// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/xla/ffi_table.h"

#include <array>
#include <cstdlib>
#include <exception>
#include <memory>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/thread_pool.h"
#include "shardcall/kernels/ffi/xla/ffi_context.h"
#include "shardcall/kernels/ffi/xla/ffi_error.h"
#include "shardcall/kernels/ffi/xla/ffi_future.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

const char* internal::FfiStageName(abi::Stage stage) {
  switch (stage) {
    case abi::Stage::kInstantiate: return "instantiate";
    case abi::Stage::kPrepare: return "prepare";
    case abi::Stage::kInitialize: return "initialize";
    case abi::Stage::kExecute: return "execute";
    case abi::Stage::kRecord: return "record";
  }
  return "no such stage";
}

abi::ExecutionContext::~ExecutionContext() {
  for (const auto& [data, size] : scratch) FreeScratch(data);
}

void abi::ExecutionContext::FreeScratch(void* data) {
  if (accelerator != nullptr) {
    accelerator->Free(data);
  } else {
    std::free(data);
  }
}

Shardcall_FfiDevice* abi::ExecutionContext::Device() {
  const std::lock_guard<std::mutex> lock(device_mutex);
  if (call == nullptr) return nullptr;
  if (device == nullptr) device = std::make_unique<FfiDevice>(*call);
  return device->c();
}

void abi::ExecutionContext::EndCall() {
  const std::lock_guard<std::mutex> lock(device_mutex);
  call = nullptr;
  if (device != nullptr) device->Close();
}

namespace {

using absl::StatusCode;

constexpr size_t kLargestAlignment = 1 << 20;

abi::Error* Fail(StatusCode code, absl::string_view message) { return NewFfiError(code, message); }

// An error unless the arguments have at least `size` bytes and a context.
template <typename T>
abi::Error* Check(const T* args, size_t size, const char* function) {
  if (args == nullptr || args->header.struct_size < size) {
    return Fail(StatusCode::kInvalidArgument,
                absl::StrCat(function, ": the struct of arguments needs ", size, " bytes, it has ",
                             args == nullptr ? 0 : args->header.struct_size));
  }
  return nullptr;
}
template <typename T>
abi::Error* CheckContext(const T* args, size_t size, const char* function) {
  if (abi::Error* error = Check(args, size, function)) return error;
  if (args->ctx != nullptr) return nullptr;
  return Fail(StatusCode::kInvalidArgument, absl::StrCat(function, ": no execution context"));
}

abi::Error* ErrorCreate(abi::ErrorCreateArgs* args) {
  if (abi::Error* error = Check(args, 28, "Error_Create")) return error;
  return NewFfiError(args->code, args->message == nullptr ? "" : args->message);
}

void ErrorGetMessage(abi::ErrorGetMessageArgs* args) {
  if (args == nullptr || args->header.struct_size < 32) return;
  const abi::Error* error = FindFfiError(args->error);
  args->message = error == nullptr ? "no error of this runtime" : error->message.c_str();
  if (args->header.struct_size >= abi::kErrorDetailsSize04) {
    args->code = static_cast<int>(error == nullptr ? StatusCode::kUnknown : error->code);
  }
}

void ErrorDestroy(abi::ErrorDestroyArgs* args) {
  if (args != nullptr && args->header.struct_size >= 24) DestroyFfiError(args->error);
}

abi::Error* StreamGet(abi::StreamGetArgs* args) {
  if (abi::Error* error = CheckContext(args, 32, "Stream_Get")) return error;
  args->stream = nullptr;
  if (args->ctx->accelerator != nullptr) {
    args->stream = args->ctx->accelerator->stream();
    return nullptr;
  }
  return Fail(StatusCode::kUnimplemented, "platform Host has no stream");
}

abi::Error* TypeRegister(abi::TypeRegisterArgs* args) {
  if (abi::Error* error = Check(args, 40, "Type_Register")) return error;
  if (args->type_id == nullptr || (args->name.ptr == nullptr && args->name.len != 0)) {
    return Fail(StatusCode::kInvalidArgument, "Type_Register: a name and a type id are needed");
  }
  // From 0.2 on the size may be 40 or 48, and type_info is present in both cases.
  const FfiDeleter deleter = args->type_info == nullptr ? nullptr : args->type_info->deleter;
  const absl::StatusOr<int64_t> id =
      RegisterFfiType({args->name.ptr, args->name.len}, args->type_id->id, deleter);
  if (!id.ok()) return Fail(id.status().code(), id.status().message());
  args->type_id->id = *id;
  return nullptr;
}

abi::Error* TypeRegister01(abi::TypeRegisterArgs* args) {
  if (abi::Error* error = Check(args, 40, "TypeId_Register")) return error;
  abi::TypeRegisterArgs full = {{48, nullptr}, args->name, args->type_id, nullptr};
  return TypeRegister(&full);
}

abi::Error* ContextGet(abi::ContextGetArgs* args) {
  if (abi::Error* error = CheckContext(args, 40, "ExecutionContext_Get")) return error;
  args->data = nullptr;
  const int64_t id = args->type_id == nullptr ? 0 : args->type_id->id;
  if (id == SHARDCALL_FFI_DEVICE && (args->data = args->ctx->Device()) != nullptr) return nullptr;
  const auto* data = args->ctx->user_data;
  if (data != nullptr) {
    auto it = data->find(id);
    if (it != data->end()) {
      args->data = it->second;
      return nullptr;
    }
  }
  const FfiType* type = FindFfiType(id);
  return Fail(StatusCode::kNotFound,
              absl::StrCat("no user data of type ", type == nullptr ? "id " : type->name,
                           type == nullptr ? absl::StrCat(id) : ""));
}

std::string TypeName(int64_t id) {
  const FfiType* type = FindFfiType(id);
  return type == nullptr ? absl::StrCat("type id ", id, ", which is not registered")
                         : absl::StrCat("type \"", type->name, "\"");
}

// Takes ownership of the object. On failure it is deleted if its deleter is known.
abi::Error* SetState(abi::ExecutionContext& ctx, abi::Stage stage, const abi::TypeId* type_id,
                     void* object, FfiDeleter deleter) {
  const int64_t id = type_id == nullptr ? 0 : type_id->id;
  const FfiType* type = FindFfiType(id);
  if (deleter == nullptr && type != nullptr) deleter = type->deleter;
  const auto refuse = [&](StatusCode code, absl::string_view message) {
    FfiState doomed;
    doomed.Set(object, id, deleter);
    return Fail(code, message);
  };
  FfiState* const state = ctx.state(ctx.stage);
  if (stage != ctx.stage || state == nullptr) {
    return refuse(StatusCode::kInvalidArgument,
                  absl::StrCat("stage ", FfiStageName(ctx.stage), " cannot set a state of stage ",
                               FfiStageName(stage)));
  }
  if (type == nullptr) {
    return refuse(StatusCode::kFailedPrecondition,
                  absl::StrCat("a state of ", TypeName(id), ": register it before the handler"));
  }
  if (deleter == nullptr) {
    return refuse(StatusCode::kFailedPrecondition,
                  absl::StrCat("a state of ", TypeName(id), " that has no deleter"));
  }
  if (!state->empty()) {
    return refuse(StatusCode::kAlreadyExists,
                  absl::StrCat("stage ", FfiStageName(stage), " has set a state already"));
  }
  state->Set(object, id, deleter);
  return nullptr;
}

abi::Error* GetState(abi::ExecutionContext& ctx, abi::Stage stage, const abi::TypeId* type_id,
                     void** object) {
  *object = nullptr;
  FfiState* const state = ctx.state(stage);
  if (state == nullptr || state->empty()) {
    return Fail(StatusCode::kNotFound,
                absl::StrCat("stage ", FfiStageName(stage), " has left no state for this call"));
  }
  const int64_t id = type_id == nullptr ? 0 : type_id->id;
  if (state->type_id() != id) {
    return Fail(StatusCode::kInvalidArgument,
                absl::StrCat("the state of stage ", FfiStageName(stage), " is of ",
                             TypeName(state->type_id()), ", not of ", TypeName(id)));
  }
  *object = state->object();
  return nullptr;
}

abi::Error* StateSet01(void* raw) {
  auto* args = static_cast<abi::OldStateArgs*>(raw);
  if (abi::Error* error = CheckContext(args, 48, "State_Set")) return error;
  return SetState(*args->ctx, args->ctx->stage, args->type_id, args->state, args->deleter);
}
abi::Error* StateSet02(void* raw) {
  auto* args = static_cast<abi::OldStateArgs*>(raw);
  if (abi::Error* error = CheckContext(args, 40, "State_Set")) return error;
  return SetState(*args->ctx, args->ctx->stage, args->type_id, args->state, nullptr);
}
abi::Error* StateGet02(void* raw) {  // and of 0.1
  auto* args = static_cast<abi::OldStateArgs*>(raw);
  if (abi::Error* error = CheckContext(args, 40, "State_Get")) return error;
  return GetState(*args->ctx, abi::Stage::kInstantiate, args->type_id, &args->state);
}
abi::Error* StateSet(void* raw) {
  auto* args = static_cast<abi::StateArgs*>(raw);
  if (abi::Error* error = CheckContext(args, 48, "State_Set")) return error;
  return SetState(*args->ctx, args->stage, args->type_id, args->state, nullptr);
}
abi::Error* StateGet(void* raw) {
  auto* args = static_cast<abi::StateArgs*>(raw);
  if (abi::Error* error = CheckContext(args, 48, "State_Get")) return error;
  return GetState(*args->ctx, args->stage, args->type_id, &args->state);
}

abi::Error* MemoryAllocate(abi::MemoryAllocateArgs* args) {
  if (abi::Error* error = CheckContext(args, 48, "DeviceMemory_Allocate")) return error;
  args->data = nullptr;
  size_t alignment = args->alignment;
  if (alignment > kLargestAlignment || (alignment & (alignment - 1)) != 0) {
    return Fail(StatusCode::kInvalidArgument, absl::StrCat("scratch memory aligned to ", alignment,
                                                           " bytes: expected a power of "
                                                           "two up to ",
                                                           kLargestAlignment));
  }
  if (args->size == 0) return nullptr;
  alignment = alignment < 64 ? 64 : alignment;  // a cache line
  void* data = nullptr;
  if (args->ctx->accelerator != nullptr) {
    constexpr size_t kDeviceAlignment = 256;
    if (alignment > kDeviceAlignment) {
      return Fail(StatusCode::kInvalidArgument,
                  absl::StrCat("scratch memory aligned to ", alignment,
                               " bytes: device memory is aligned to ", kDeviceAlignment));
    }
    const absl::StatusOr<void*> made =
        args->size > PTRDIFF_MAX
            ? absl::ResourceExhaustedError(absl::StrCat("no ", args->size, " bytes"))
            : args->ctx->accelerator->Allocate(static_cast<int64_t>(args->size));
    if (!made.ok()) {
      return Fail(StatusCode::kResourceExhausted,
                  absl::StrCat("scratch memory: ", made.status().message()));
    }
    data = *made;
  } else if (args->size > PTRDIFF_MAX || posix_memalign(&data, alignment, args->size) != 0) {
    return Fail(StatusCode::kResourceExhausted,
                absl::StrCat("no ", args->size, " bytes of scratch memory"));
  }
  const std::lock_guard<std::mutex> lock(args->ctx->scratch_mutex);
  args->ctx->scratch.emplace_back(data, args->size);
  args->data = data;
  return nullptr;
}

abi::Error* MemoryFree(abi::MemoryFreeArgs* args) {
  if (abi::Error* error = CheckContext(args, 40, "DeviceMemory_Free")) return error;
  if (args->data == nullptr) return nullptr;
  const std::lock_guard<std::mutex> lock(args->ctx->scratch_mutex);
  auto& scratch = args->ctx->scratch;
  for (auto it = scratch.begin(); it != scratch.end(); ++it) {
    if (it->first != args->data) continue;
    args->ctx->FreeScratch(it->first);
    scratch.erase(it);
    return nullptr;
  }
  return Fail(StatusCode::kInvalidArgument, "this is no scratch memory of this call");
}

abi::Error* Schedule(abi::ScheduleArgs* args) {
  if (abi::Error* error = CheckContext(args, 40, "ThreadPool_Schedule")) return error;
  if (args->task == nullptr) return Fail(StatusCode::kInvalidArgument, "no task to schedule");
  const bool scheduled =
      ScheduleOnFfiPool([task = args->task, data = args->data, threw = args->ctx->task_threw] {
        try {
          task(data);
        } catch (...) {
          if (threw != nullptr) *threw = true;
        }
      });
  return scheduled ? nullptr : Fail(StatusCode::kUnavailable, "no thread can be started");
}

abi::Error* NumThreads(abi::NumThreadsArgs* args) {
  if (abi::Error* error = CheckContext(args, 32, "ThreadPool_NumThreads")) return error;
  if (args->num_threads != nullptr) *args->num_threads = FfiPoolThreads();
  return nullptr;
}

abi::Error* FutureCreate(abi::FutureCreateArgs* args) {
  if (abi::Error* error = Check(args, 16, "Future_Create")) return error;
  args->future = NewFfiFuture();
  return nullptr;
}
abi::Error* FutureSetAvailable(abi::FutureSetAvailableArgs* args) {
  if (abi::Error* error = Check(args, 24, "Future_SetAvailable")) return error;
  CompleteFfiFuture(args->future, absl::OkStatus());
  return nullptr;
}
abi::Error* FutureSetError(abi::FutureSetErrorArgs* args) {
  if (abi::Error* error = Check(args, 32, "Future_SetError")) return error;
  absl::Status status = TakeFfiError(args->error);
  if (status.ok()) status = absl::UnknownError("a future was given no error");
  CompleteFfiFuture(args->future, std::move(status));
  return nullptr;
}

abi::Error* RunIdGet(abi::RunIdGetArgs* args) {
  if (abi::Error* error = CheckContext(args, 32, "RunId_Get")) return error;
  args->run_id = args->ctx->run_id;
  return nullptr;
}
abi::Error* DeviceOrdinalGet(abi::DeviceOrdinalGetArgs* args) {
  if (abi::Error* error = CheckContext(args, 28, "DeviceOrdinal_Get")) return error;
  args->device_ordinal = args->ctx->device_ordinal;
  return nullptr;
}
abi::Error* FindExtension(abi::FindExtensionArgs* args) {
  if (abi::Error* error = CheckContext(args, 40, "InvokeContext_FindExtension")) return error;
  args->extension = nullptr;
  if (args->extension_type == SHARDCALL_FFI_DEVICE &&
      (args->extension = args->ctx->Device()) != nullptr) {
    return nullptr;
  }
  return Fail(StatusCode::kNotFound,
              absl::StrCat("this runtime has no context extension ", args->extension_type));
}
abi::Error* CustomOptionsGet(abi::CustomOptionsGetArgs* args) {
  if (abi::Error* error = CheckContext(args, 32, "CustomOptions_Get")) return error;
  static constexpr abi::Attrs kNone = {abi::kAttrsSize, nullptr, 0, nullptr, nullptr, nullptr};
  args->attrs = &kNone;
  return nullptr;
}

abi::Api MakeTable(int minor) {
  abi::Api api = {};
  api.header = {minor >= 5   ? abi::kApiSize05
                : minor >= 4 ? abi::kApiSize04
                             : abi::kApiSize,
                nullptr};
  api.api_version = {abi::kApiVersionSize, nullptr, abi::kMajorVersion, minor};
  api.error_create = ErrorCreate;
  api.error_get_message = ErrorGetMessage;
  api.error_destroy = ErrorDestroy;
  api.handler_register = RegisterHandlerOfLibrary;
  api.stream_get = StreamGet;
  api.type_register = minor == 1 ? TypeRegister01 : TypeRegister;
  api.context_get = ContextGet;
  api.state_set = minor == 1 ? StateSet01 : minor == 2 ? StateSet02 : StateSet;
  api.state_get = minor <= 2 ? StateGet02 : StateGet;
  api.memory_allocate = MemoryAllocate;
  api.memory_free = MemoryFree;
  api.schedule = Schedule;
  api.num_threads = NumThreads;
  api.future_create = FutureCreate;
  api.future_set_available = FutureSetAvailable;
  api.future_set_error = FutureSetError;
  api.run_id_get = RunIdGet;
  api.device_ordinal_get = DeviceOrdinalGet;
  api.find_extension = FindExtension;
  api.custom_options_get = CustomOptionsGet;
  return api;
}

}  // namespace

const abi::Api* internal::FfiTable(int minor) {
  const auto& tables = internal::MadeAtFirstUse([] {
    return new std::array<abi::Api, 5>{MakeTable(1), MakeTable(2), MakeTable(3), MakeTable(4),
                                       MakeTable(5)};
  });
  SHARDCALL_CHECK(minor >= abi::kOldestMinorVersion && minor <= abi::kNewestMinorVersion);
  return &tables[minor - abi::kOldestMinorVersion];
}

}  // namespace shardcall
