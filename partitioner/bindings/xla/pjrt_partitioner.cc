// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/xla/pjrt_abi.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using pjrt::abi::Error;
using pjrt::abi::ErrorArgs;
using pjrt::abi::ErrorCodeArgs;
using pjrt::abi::ErrorMessageArgs;
using pjrt::abi::Extension;
using pjrt::abi::FfiExtension;
using pjrt::abi::PartitionerArgs;
using pjrt::abi::PartitionerExtension;
using pjrt::abi::RegisterHandlerArgs;
using pjrt::abi::RegistrationArgs;

// How a PJRT_Api begins, which is all that is used here.
struct Api {
  pjrt::abi::Header header;
  pjrt::abi::Version version;
  void (*error_destroy)(ErrorArgs*);
  void (*error_message)(ErrorMessageArgs*);
  Error* (*error_get_code)(ErrorCodeArgs*);
};
constexpr size_t kRegisterHandlerArgsSize = 52;  // up to the end of its last field, as PJRT counts
constexpr int kMostExtensions = 1000;            // a longer chain is taken for a cycle

static_assert(sizeof(Extension) == 24 && offsetof(Extension, next) == 16);
static_assert(offsetof(Api, error_destroy) == 40 && offsetof(Api, error_get_code) == 56);
static_assert(sizeof(ErrorArgs) == 24 && sizeof(ErrorMessageArgs) == 40 &&
              sizeof(ErrorCodeArgs) == 32);
static_assert(sizeof(PartitionerExtension) == 40 && sizeof(PartitionerArgs) == 32 &&
              sizeof(RegistrationArgs) == 24);
static_assert(sizeof(FfiExtension) == 48 && sizeof(RegisterHandlerArgs) == 56 &&
              offsetof(RegisterHandlerArgs, traits) == 48);
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
  return ToStatus(
      {.code = "E148",
       .message = absl::StrCat("target \"", name,
                               "\" cannot be registered with a "
                               "PJRT plugin"),
       .expected = std::move(expected),
       .found = std::move(found),
       .fix = "Give a PJRT_Api with the custom partitioner extension, and all callbacks"},
      code);
}

// Finds the extension of that type, which must have at least `size` bytes.
absl::StatusOr<const Extension*> FindExtension(const Api* api, absl::string_view name, int32_t type,
                                               absl::string_view what, size_t size) {
  if (name.empty()) return Refused(name, "a name", "none");
  if (api == nullptr || api->header.struct_size < sizeof(Api)) {
    return Refused(name, "a PJRT_Api",
                   api == nullptr ? "null" : absl::StrCat("struct_size ", api->header.struct_size));
  }
  const Extension* e = api->header.extension_start;
  for (int k = 0; e != nullptr && k < kMostExtensions; ++k, e = e->next) {
    if (e->type != type) continue;
    if (e->struct_size >= size) return e;
    return Refused(name, absl::StrCat("an extension of ", size, " bytes"),
                   absl::StrCat("struct_size ", e->struct_size));
  }
  return Refused(name, absl::StrCat("a plugin with the ", what, " extension (type ", type, ")"),
                 absl::StrCat("PJRT ", api->version.major, ".", api->version.minor, " without it"),
                 absl::StatusCode::kUnimplemented);
}

absl::StatusOr<const PartitionerExtension*> FindPartitioner(const Api* api,
                                                            absl::string_view name) {
  SHARDCALL_ASSIGN_OR_RETURN(const Extension* found,
                             FindExtension(api, name, pjrt::abi::kPartitionerExtension,
                                           "custom-partitioner", sizeof(PartitionerExtension)));
  const auto* extension = reinterpret_cast<const PartitionerExtension*>(found);
  if (extension->partitioner != nullptr && extension->batch_partitionable != nullptr) {
    return extension;
  }
  return Refused(name, "an extension with both of its functions", "null");
}

absl::Status TakeError(const Api* api, absl::string_view name, Error* error) {
  if (error == nullptr) return absl::OkStatus();
  ErrorMessageArgs message = {{sizeof(ErrorMessageArgs), nullptr}, error, nullptr, 0};
  ErrorCodeArgs code = {{sizeof(ErrorCodeArgs), nullptr}, error, 2};
  ErrorArgs destroy = {{sizeof(ErrorArgs), nullptr}, error};
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
  SHARDCALL_ASSIGN_OR_RETURN(const PartitionerExtension* extension, FindPartitioner(api, name));
  RegistrationArgs args = {sizeof(RegistrationArgs), name.data(), name.size()};
  return TakeError(api, name, extension->batch_partitionable(&args));
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
  SHARDCALL_ASSIGN_OR_RETURN(const PartitionerExtension* extension, FindPartitioner(api, name));
  PartitionerArgs args = {sizeof(PartitionerArgs), name.data(), name.size(), callbacks};
  return TakeError(api, name, extension->partitioner(&args));
}

absl::Status RegisterHandlerWithPjrt(const void* c_api, absl::string_view name,
                                     absl::string_view platform, const void* handler,
                                     uint32_t traits) {
  const auto* api = static_cast<const Api*>(c_api);
  if (handler == nullptr) return Refused(name, "a handler of XLA's typed FFI", "null");
  SHARDCALL_ASSIGN_OR_RETURN(
      const Extension* found,
      FindExtension(api, name, pjrt::abi::kFfiExtension, "FFI", sizeof(FfiExtension)));
  const auto* extension = reinterpret_cast<const FfiExtension*>(found);
  if (extension->register_handler == nullptr) {
    return Refused(name, "an FFI extension that registers handlers", "null");
  }
  RegisterHandlerArgs args = {kRegisterHandlerArgsSize, name.data(),     name.size(), handler,
                              platform.data(),          platform.size(), traits};
  return TakeError(api, name, extension->register_handler(&args));
}

}  // namespace shardcall
