// SPDX-License-Identifier: Apache-2.0
#include "partitioner/api/pjrt_partitioner.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

// PJRT's C API, as far as it is needed.
struct Error;
struct Extension {
  size_t struct_size;
  int32_t type;
  Extension* next;
};
struct ErrorDestroyArgs {
  size_t struct_size;
  void* extension_start;
  Error* error;
};
struct ErrorMessageArgs {
  size_t struct_size;
  void* extension_start;
  const Error* error;
  const char* message;  // out
  size_t message_size;  // out
};
struct ErrorGetCodeArgs {
  size_t struct_size;
  void* extension_start;
  const Error* error;
  int32_t code;  // out
};
struct Api {
  size_t struct_size;
  Extension* extension_start;
  struct {
    size_t struct_size;
    void* extension_start;
    int32_t major, minor;
  } version;
  void (*error_destroy)(ErrorDestroyArgs*);
  void (*error_message)(ErrorMessageArgs*);
  Error* (*error_get_code)(ErrorGetCodeArgs*);
};
struct RegisterPartitionerArgs {
  size_t struct_size;
  const char* name;
  size_t name_size;
  Shardcall_PjrtCallbacks* callbacks;
};
struct RegisterBatchArgs {
  size_t struct_size;
  const char* name;
  size_t name_size;
};
struct PartitionerExtension {
  Extension base;
  Error* (*register_partitioner)(RegisterPartitionerArgs*);
  Error* (*register_batch_partitionable)(RegisterBatchArgs*);
};
constexpr int32_t kPartitionerExtension = 2;
constexpr int kMostExtensions = 1000;  // a chain that goes round is none

static_assert(sizeof(Extension) == 24 && offsetof(Extension, next) == 16);
static_assert(offsetof(Api, error_destroy) == 40 && offsetof(Api, error_get_code) == 56);
static_assert(sizeof(ErrorDestroyArgs) == 24 && sizeof(ErrorMessageArgs) == 40 &&
              sizeof(ErrorGetCodeArgs) == 32);
static_assert(sizeof(PartitionerExtension) == 40 && sizeof(RegisterPartitionerArgs) == 32 &&
              sizeof(RegisterBatchArgs) == 24);
static_assert(sizeof(Shardcall_PjrtCallbacks) == 56 && sizeof(Shardcall_PjrtAval) == 40 &&
              sizeof(Shardcall_PjrtHeader) == 48);
static_assert(offsetof(Shardcall_PjrtHeader, has_error) == 24 &&
              offsetof(Shardcall_PjrtHeader, code) == 28 &&
              offsetof(Shardcall_PjrtHeader, error) == 32);
static_assert(sizeof(Shardcall_PjrtPartitionArgs) == 160 &&
              offsetof(Shardcall_PjrtPartitionArgs, op_result) == 64 &&
              offsetof(Shardcall_PjrtPartitionArgs, mlir_module) == 120 &&
              offsetof(Shardcall_PjrtPartitionArgs, result_sharding) == 144);
static_assert(sizeof(Shardcall_PjrtInferArgs) == 120 &&
              offsetof(Shardcall_PjrtInferArgs, has_result_sharding) == 96);
static_assert(sizeof(Shardcall_PjrtPropagateArgs) == 96 &&
              offsetof(Shardcall_PjrtPropagateArgs, result_sharding) == 80);

absl::Status Refused(absl::string_view name, std::string expected, std::string found,
                     absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  return ToStatus({.code = "E148",
                   .message = absl::StrCat("target \"", name,
                                           "\" cannot be registered with a "
                                           "PJRT plugin"),
                   .expected = std::move(expected),
                   .found = std::move(found)},
                  code);
}

absl::StatusOr<const PartitionerExtension*> FindExtension(const Api* api, absl::string_view name) {
  if (name.empty()) return Refused(name, "a name", "none");
  if (api == nullptr || api->struct_size < sizeof(Api)) {
    return Refused(name, "a PJRT_Api",
                   api == nullptr ? "null" : absl::StrCat("struct_size ", api->struct_size));
  }
  const Extension* e = api->extension_start;
  for (int k = 0; e != nullptr && k < kMostExtensions; ++k, e = e->next) {
    if (e->type != kPartitionerExtension) continue;
    const auto* found = reinterpret_cast<const PartitionerExtension*>(e);
    if (e->struct_size >= sizeof(PartitionerExtension) && found->register_partitioner != nullptr &&
        found->register_batch_partitionable != nullptr) {
      return found;
    }
    return Refused(name, absl::StrCat("an extension of ", sizeof(PartitionerExtension), " bytes"),
                   absl::StrCat("struct_size ", e->struct_size));
  }
  return Refused(name, "a plugin with the custom-partitioner extension (type 2)",
                 absl::StrCat("PJRT ", api->version.major, ".", api->version.minor, " without it"),
                 absl::StatusCode::kUnimplemented);
}

absl::Status TakeError(const Api* api, absl::string_view name, Error* error) {
  if (error == nullptr) return absl::OkStatus();
  ErrorMessageArgs message = {sizeof(ErrorMessageArgs), nullptr, error, nullptr, 0};
  ErrorGetCodeArgs code = {sizeof(ErrorGetCodeArgs), nullptr, error, 2};
  ErrorDestroyArgs destroy = {sizeof(ErrorDestroyArgs), nullptr, error};
  api->error_message(&message);
  api->error_get_code(&code);
  absl::Status status =
      Refused(name, "",
              message.message == nullptr ? "an error without a message"
                                         : std::string(message.message, message.message_size),
              code.code > 0 && code.code <= 16 ? static_cast<absl::StatusCode>(code.code)
                                               : absl::StatusCode::kUnknown);
  api->error_destroy(&destroy);
  return status;
}

}  // namespace

absl::Status RegisterBatchPartitionableWithPjrt(const void* c_api, absl::string_view name) {
  const auto* api = static_cast<const Api*>(c_api);
  SHARDCALL_ASSIGN_OR_RETURN(const PartitionerExtension* extension, FindExtension(api, name));
  RegisterBatchArgs args = {sizeof(RegisterBatchArgs), name.data(), name.size()};
  return TakeError(api, name, extension->register_batch_partitionable(&args));
}

absl::Status RegisterPartitionerWithPjrt(const void* c_api, absl::string_view name,
                                         Shardcall_PjrtCallbacks* callbacks) {
  const auto* api = static_cast<const Api*>(c_api);
  if (callbacks == nullptr || callbacks->dtor == nullptr || callbacks->partition == nullptr ||
      callbacks->infer_sharding == nullptr || callbacks->propagate_user_sharding == nullptr) {
    return Refused(name,
                   "callbacks with dtor, partition, infer_sharding and "
                   "propagate_user_sharding",
                   callbacks == nullptr ? "null" : "one of them null");
  }
  SHARDCALL_ASSIGN_OR_RETURN(const PartitionerExtension* extension, FindExtension(api, name));
  RegisterPartitionerArgs args = {sizeof(RegisterPartitionerArgs), name.data(), name.size(),
                                  callbacks};
  return TakeError(api, name, extension->register_partitioner(&args));
}

}  // namespace shardcall
