// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/c/c_handler.h"

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/fault.h"
#include "shardcall/kernels/ffi/packed_buffers.h"
#include "shardcall/kernels/ffi/xla/ffi_device.h"
#include "shardcall/partitioner/bindings/c/c_attributes.h"
#include "shardcall/partitioner/bindings/c/c_internal.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

struct Behind {  // Shardcall_Call::reserved
  const HandlerContext* context;
  const AttributeMapView* attributes;
  std::string message;
  std::optional<FfiDevice> device;  // made at first use
};

Behind& Of(const Shardcall_Call* call) { return *static_cast<Behind*>(call->reserved); }

const AttributeMapView& AttributesOf(const Shardcall_Call* call) { return *Of(call).attributes; }

const Shardcall_FfiDevice* Device(const Shardcall_Call* call) {
  if (call == nullptr) return nullptr;
  Behind& behind = Of(call);
  if (!behind.device.has_value()) behind.device.emplace(*behind.context);
  return behind.device->c();
}
void SetMessage(const Shardcall_Call* call, const char* message) {
  if (call != nullptr) Of(call).message = message == nullptr ? "" : message;
}

absl::Status Failed(const HandlerContext& context, absl::string_view how, absl::string_view message,
                    absl::StatusCode code) {
  return HandlerFault(context, "E317",
                      absl::StrCat("the handler of \"", context.target, "\" ", how,
                                   message.empty() ? "" : ": ", message),
                      code, how == "threw" ? kThrewFix : kFailedFix);
}

absl::Status Run(Shardcall_Handler* handler, void* data, const HandlerContext& context,
                 absl::Span<const BufferView> operands, absl::Span<const BufferView> results) {
  absl::InlinedVector<Shardcall_Buffer, 8> buffers;
  for (absl::Span<const BufferView> views : {operands, results}) {
    for (const BufferView& b : views) {
      buffers.push_back({sizeof(Shardcall_Buffer), static_cast<int32_t>(b.type), b.rank(),
                         b.dims.data(), b.data});
    }
  }
  Behind behind{&context, &context.attribute_map(), "", std::nullopt};
  const std::string target(context.target), instruction(context.instruction);
  Shardcall_Call call = SHARDCALL_INIT(Shardcall_Call);
  call.target = target.c_str();
  call.instruction = instruction.c_str();
  call.backend_config = context.backend_config.data();
  call.backend_config_size = context.backend_config.size();
  call.operands = buffers.data();
  call.results = buffers.data() + operands.size();
  call.num_operands = static_cast<int32_t>(operands.size());
  call.num_results = static_cast<int32_t>(results.size());
  call.device_ordinal = context.device_ordinal;
  call.num_devices = context.num_devices;
  call.run_id = context.run_id;
  CAttributes<Shardcall_Call, AttributesOf>::Fill(&call);
  call.set_message = SetMessage;
  call.reserved = &behind;
  call.device = Device;
  int code = 0;
  try {
    code = handler(&call, data);
  } catch (const std::exception& e) {
    return Failed(context, "threw", e.what(), absl::StatusCode::kInternal);
  } catch (...) {
    return Failed(context, "threw", "", absl::StatusCode::kInternal);
  }
  const absl::Status of_device = behind.device ? behind.device->first_error() : absl::OkStatus();
  if (behind.device) behind.device->Close();
  if (code == 0) return absl::OkStatus();
  // If a collective or a computation failed without a message of the handler, return that error, as
  // for typed FFI handlers.
  if (!of_device.ok() && behind.message.empty()) return of_device;
  const absl::Status said = StatusOfC(code, behind.message);
  return Failed(context, "failed", said.message(), said.code());
}

}  // namespace

HandlerEntry MakeCEntry(absl::string_view target, absl::string_view platform,
                        Shardcall_Handler* handler, void* data, absl::string_view source,
                        std::shared_ptr<const void> library) {
  HandlerEntry entry;
  entry.target = std::string(target);
  entry.platform = std::string(platform);
  entry.source = std::string(source);
  entry.functions = {reinterpret_cast<const void*>(handler), data};
  entry.packed = true;
  entry.host = [handler, data, library = std::move(library)](const HandlerContext& context,
                                                             absl::Span<const BufferView> operands,
                                                             absl::Span<const BufferView> results) {
    return CallConverted(
        true, context, operands, results,
        [&](const HandlerContext& own, absl::Span<const BufferView> in,
            absl::Span<const BufferView> out) { return Run(handler, data, own, in, out); });
  };
  return entry;
}

}  // namespace internal
}  // namespace shardcall
