// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/exported_handler.h"

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/abi_table.h"
#include "shardcall/kernels/ffi/packed_buffers.h"
#include "shardcall/kernels/ffi/xla/ffi_attributes.h"
#include "shardcall/kernels/ffi/xla/frame_device.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/process_lock.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kMostExported = 512;

struct Exported {
  HandlerEntry entry;
  ExportedCall call;
};

// The calls behind the functions. Never destroyed, since they may be called at any time.
struct Table {
  // By target, platform, API version and text.
  std::map<std::tuple<std::string, std::string, int, std::string>, int> slots;
  std::array<std::shared_ptr<const Exported>, kMostExported> exported;
  std::map<int64_t, std::shared_ptr<const ExportedSite>> sites;
};
Table& TheTable() {
  return MadeAtFirstUse([] { return new Table; });
}

BufferView View(const void* at) {
  const auto& b = *static_cast<const abi::Buffer*>(at);
  const auto type = static_cast<ElementType>(b.dtype);
  return {type, std::vector<int64_t>(b.dims, b.dims + b.rank), b.data, IsPackedType(type)};
}

// Takes the number of the call's site out of its attributes. Null: it has none.
absl::StatusOr<std::shared_ptr<const ExportedSite>> TakeSite(Attribute::Dictionary* attributes) {
  const auto at = std::find_if(attributes->begin(), attributes->end(),
                               [](const auto& entry) { return entry.first == kSiteAttribute; });
  if (at == attributes->end()) return std::shared_ptr<const ExportedSite>();
  const auto* const scalar = absl::get_if<AttributeScalar>(&at->second.value);
  const int64_t number = scalar == nullptr ? -1 : scalar->i;
  attributes->erase(at);
  Table& table = TheTable();
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  const auto found = table.sites.find(number);
  if (found != table.sites.end()) return found->second;
  return ToStatus({.code = "E312",
                   .message = "a call of another process: its devices are not known here",
                   .fix = "Compile the program in the process that runs it"});
}

// The device that runs the call, as its site numbers them.
absl::StatusOr<SiteDevices::Device> EnterSite(const ExportedSite& site, const abi::CallFrame& frame,
                                              int64_t* run_id) {
  abi::DeviceOrdinalGetArgs device = {{sizeof(abi::DeviceOrdinalGetArgs), nullptr}, frame.ctx, 0};
  abi::RunIdGetArgs run = {{sizeof(abi::RunIdGetArgs), nullptr}, frame.ctx, 0};
  if (!Done(frame, frame.api->device_ordinal_get(&device)) ||
      !Done(frame, frame.api->run_id_get(&run))) {
    return ToStatus({.code = "E312",
                     .message = "the runtime does not tell which of its devices runs a call",
                     .where = absl::StrCat("%", site.instruction),
                     .fix = "Run the program with shardcall.run"},
                    absl::StatusCode::kUnimplemented);
  }
  *run_id = run.run_id;
  return site.devices->Enter(device.device_ordinal, run.run_id);
}

absl::Status Run(const Exported& exported, const abi::CallFrame& frame) {
  Attribute::Dictionary entries = DecodeAttributes(frame.attrs);
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const ExportedSite> site, TakeSite(&entries));
  const AttributeMapView attributes(std::move(entries));
  HandlerContext context;
  context.target = exported.entry.target;
  context.instruction = "a call of another runtime";
  context.attributes = &attributes;
  context.num_devices = exported.call.num_devices;
  context.api_version = exported.call.api_version;
  context.backend_config = exported.call.backend_config;
  context.tuple_result = frame.rets.size != 1;
  SiteDevices::Device device;
  if (site != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(device, EnterSite(*site, frame, &context.run_id));
    context.instruction = site->instruction;
    context.num_devices = site->num_devices;
    context.mesh = site->mesh.get();
    context.device_ordinal = device.partition;
    context.communicator = device.communicator;
  }
  std::vector<BufferView> operands, results;
  for (int64_t k = 0; k < frame.args.size; ++k) operands.push_back(View(frame.args.args[k]));
  for (int64_t k = 0; k < frame.rets.size; ++k) results.push_back(View(frame.rets.rets[k]));
  if (exported.entry.platform != "Host") {
    if (ConvertedBuffers::Needed(exported.entry.packed, operands, results)) {
      return ToStatus({.code = "E140",
                       .message = absl::StrCat("the kernel of \"", exported.entry.target,
                                               "\" takes one element in a byte, and the runtime's "
                                               "device memory has several"),
                       .expected = "elements of 8 bits or more",
                       .fix = "Register a kernel of the typed FFI, which gets them as they are"},
                      absl::StatusCode::kUnimplemented);
    }
    SHARDCALL_ASSIGN_OR_RETURN(context.device,
                               DeviceOfFrame(frame, exported.entry.platform, exported.call.opener));
  }
  absl::Status status;
  try {
    status = CallConverted(exported.entry.packed, context, operands, results, exported.entry.host);
  } catch (const std::exception& e) {
    status = absl::InternalError(absl::StrCat("the handler threw: ", e.what()));
  } catch (...) {
    status = absl::InternalError("the handler threw");
  }
  // The others need not wait for this device.
  if (!status.ok() && device.communicator != nullptr) device.communicator->Abort(status);
  return status;
}

abi::Error* Handle(int slot, abi::CallFrame* frame) {
  if (frame->extension_start != nullptr &&
      frame->extension_start->type == abi::ExtensionType::kMetadata) {
    auto* const asked = reinterpret_cast<abi::MetadataExtension*>(frame->extension_start);
    asked->metadata->api_version = {abi::kApiVersionSize, nullptr, abi::kMajorVersion,
                                    abi::kOldestMinorVersion};
    return nullptr;
  }
  std::shared_ptr<const Exported> exported;
  {
    Table& table = TheTable();
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    exported = table.exported[slot];
  }
  const absl::Status status = Run(*exported, *frame);
  if (status.ok()) return nullptr;
  const std::string message(status.message());
  abi::ErrorCreateArgs error = {{sizeof(abi::ErrorCreateArgs), nullptr},
                                message.c_str(),
                                static_cast<abi::ErrorCode>(status.code())};
  return frame->api->error_create(&error);
}

template <size_t kSlot>
abi::Error* Slot(abi::CallFrame* frame) {
  return Handle(static_cast<int>(kSlot), frame);
}

template <size_t... kNumbers>
constexpr std::array<abi::Handler*, sizeof...(kNumbers)> AllSlots(
    std::index_sequence<kNumbers...>) {
  return {&Slot<kNumbers>...};
}

}  // namespace

void AddExportedSite(ExportedSite site) {
  Table& table = TheTable();
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  const int64_t number = site.number;
  table.sites.try_emplace(number, std::make_shared<const ExportedSite>(std::move(site)));
}

absl::StatusOr<ExportedFunction> ExportHandler(const HandlerEntry& entry,
                                               const ExportedCall& call) {
  static constexpr auto kFunctions = AllSlots(std::make_index_sequence<kMostExported>());
  Table& table = TheTable();
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  const auto next = static_cast<int>(table.slots.size());
  const auto [found, fresh] = table.slots.try_emplace(
      {entry.target, entry.platform, call.api_version, call.backend_config}, next);
  if (fresh && next >= kMostExported) {
    table.slots.erase(found);
    return ToStatus({.code = "E140",
                     .message = absl::StrCat("target \"", entry.target,
                                             "\" cannot be given to another runtime"),
                     .expected = absl::StrCat("at most ", kMostExported, " targets in a process"),
                     .fix = "Register its own function of the typed FFI there"},
                    absl::StatusCode::kResourceExhausted);
  }
  table.exported[found->second] = std::make_shared<const Exported>(Exported{entry, call});
  return ExportedFunction{kFunctions[found->second], found->second};
}

}  // namespace internal
}  // namespace shardcall
