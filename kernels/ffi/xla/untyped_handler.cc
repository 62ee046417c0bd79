// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/untyped_handler.h"

#include <exception>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/fault.h"
#include "shardcall/kernels/ffi/packed_buffers.h"
#include "shardcall/kernels/ffi/platform.h"
#include "shardcall/sharding/base/status.h"

struct XlaCustomCallStatus_ {
  bool failed = false;
  std::string message;
};

extern "C" void XlaCustomCallStatusSetSuccess(XlaCustomCallStatus* status) {
  if (status != nullptr) status->failed = false;
}

extern "C" void XlaCustomCallStatusSetFailure(XlaCustomCallStatus* status, const char* message,
                                              size_t message_len) {
  if (status == nullptr) return;
  constexpr size_t kLongest = 1 << 20;  // a larger length is taken for uninitialised
  status->failed = true;
  status->message = message == nullptr
                        ? std::string()
                        : std::string(message, message_len < kLongest ? message_len : kLongest);
}

namespace shardcall {
namespace {

using Original = void (*)(void* out, const void** in);
using StatusReturning = void (*)(void* out, const void** in, XlaCustomCallStatus* status);
using OnStream = void (*)(void* stream, void** buffers, const char* opaque, size_t opaque_len);
using OnStreamWithStatus = void (*)(void* stream, void** buffers, const char* opaque,
                                    size_t opaque_len, XlaCustomCallStatus* status);
using Unified = void (*)(void* out, const void** in, const char* opaque, size_t opaque_len,
                         XlaCustomCallStatus* status);

void CallOnHost(void* function, const HandlerContext& context,
                absl::Span<const BufferView> operands, absl::Span<const BufferView> results,
                XlaCustomCallStatus* status) {
  absl::InlinedVector<const void*, 8> in;
  absl::InlinedVector<void*, 8> out;
  for (const BufferView& b : operands) in.push_back(b.data);
  for (const BufferView& b : results) out.push_back(b.data);
  in.push_back(nullptr);  // so that the tables are not null, even if empty
  out.push_back(nullptr);
  void* const to = context.tuple_result ? static_cast<void*>(out.data()) : out[0];
  const absl::string_view opaque = context.backend_config;
  switch (context.api_version) {
    case 1: return reinterpret_cast<Original>(function)(to, in.data());
    case 2: return reinterpret_cast<StatusReturning>(function)(to, in.data(), status);
    default:
      return reinterpret_cast<Unified>(function)(to, in.data(), opaque.data(), opaque.size(),
                                                 status);
  }
}

void CallOnStream(void* function, const HandlerContext& context,
                  absl::Span<const BufferView> operands, absl::Span<const BufferView> results,
                  XlaCustomCallStatus* status) {
  absl::InlinedVector<void*, 8> buffers;
  for (const BufferView& b : operands) buffers.push_back(b.data);
  for (const BufferView& b : results) buffers.push_back(b.data);
  buffers.push_back(nullptr);
  void* const stream = context.device->stream();
  const absl::string_view opaque = context.backend_config;
  if (context.api_version == 1) {
    return reinterpret_cast<OnStream>(function)(stream, buffers.data(), opaque.data(),
                                                opaque.size());
  }
  reinterpret_cast<OnStreamWithStatus>(function)(stream, buffers.data(), opaque.data(),
                                                 opaque.size(), status);
}

absl::Status RunUntyped(void* function, int registered, bool on_device,
                        const HandlerContext& context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results) {
  const int version = context.api_version;
  if (version == 4 || (registered != 0 && registered != version)) {
    return HandlerFault(
        context, "E140",
        absl::StrCat("target \"", context.target, "\" is registered with ",
                     registered == 0 ? "an untyped ABI" : ApiVersionName(registered),
                     ", and this call has ", ApiVersionName(version)),
        absl::StatusCode::kInvalidArgument, "Register the target with the version of the call");
  }
  if (on_device && context.device == nullptr) {
    return HandlerFault(context, "E140",
                        absl::StrCat("target \"", context.target,
                                     "\" is registered for CUDA, and the "
                                     "call is not on a device"),
                        absl::StatusCode::kFailedPrecondition, "Call it with CallStaged");
  }
  const std::string who = absl::StrCat("the handler of \"", context.target, "\"");
  XlaCustomCallStatus_ status;
  try {
    if (on_device) {
      CallOnStream(function, context, operands, results, &status);
    } else {
      CallOnHost(function, context, operands, results, &status);
    }
  } catch (const std::exception& e) {
    return HandlerFault(context, "E317", absl::StrCat(who, " threw: ", e.what()),
                        absl::StatusCode::kInternal, kThrewFix);
  } catch (...) {
    return HandlerFault(context, "E317", absl::StrCat(who, " threw"), absl::StatusCode::kInternal,
                        kThrewFix);
  }
  if (!status.failed) return absl::OkStatus();
  return HandlerFault(context, "E317", absl::StrCat(who, " ", FailedText(status.message)),
                      absl::StatusCode::kInternal, kFailedFix);
}

}  // namespace

absl::string_view ApiVersionName(int api_version) {
  switch (api_version) {
    case 1: return "API_VERSION_ORIGINAL";
    case 2: return "API_VERSION_STATUS_RETURNING";
    case 3: return "API_VERSION_STATUS_RETURNING_UNIFIED";
    case 4: return "API_VERSION_TYPED_FFI";
    default: return "no API version";
  }
}

absl::StatusOr<HandlerEntry> MakeUntypedEntry(absl::string_view target, absl::string_view platform,
                                              void* function, int api_version,
                                              absl::string_view source,
                                              std::shared_ptr<const void> library) {
  if (function == nullptr || api_version < 0 || api_version > 3) {
    return ToStatus(
        {.code = "E144",
         .message = absl::StrCat("the untyped handler of \"", target, "\" cannot be registered"),
         .expected = "a function of API version 1, 2 or 3",
         .found = function == nullptr ? "no function" : absl::StrCat("API version ", api_version),
         .fix = function == nullptr ? "Pass the address of the function"
                : api_version == 4  ? "Register it as a handler of the typed FFI"
                                    : "Pass 0 where the ABI is what the call says"},
        absl::StatusCode::kFailedPrecondition);
  }
  HandlerEntry entry;
  entry.target = std::string(target);
  entry.platform = std::string(platform);
  entry.api_version = api_version;
  entry.own_version_only = true;
  entry.source = std::string(source);
  entry.functions = {function};
  entry.packed = true;
  entry.host = [function, api_version, on_device = PlatformKey(platform) != "host",
                library = std::move(library)](const HandlerContext& context,
                                              absl::Span<const BufferView> operands,
                                              absl::Span<const BufferView> results) {
    return CallConverted(true, context, operands, results,
                         [&](const HandlerContext& own, absl::Span<const BufferView> in,
                             absl::Span<const BufferView> out) {
                           return RunUntyped(function, api_version, on_device, own, in, out);
                         });
  };
  return entry;
}

}  // namespace shardcall
