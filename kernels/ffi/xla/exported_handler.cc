// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/exported_handler.h"

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
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {
namespace {

constexpr int kMostExported = 512;

struct Exported {
  HandlerEntry entry;
  ExportedCall call;
};

// The calls behind the functions. Never destroyed, since they may be called at any time.
struct Table {
  std::mutex mutex;
  // By target, platform, API version and text.
  std::map<std::tuple<std::string, std::string, int, std::string>, int> slots;
  std::array<std::shared_ptr<const Exported>, kMostExported> exported;
};
Table& TheTable() {
  static auto* const kTable = new Table;
  return *kTable;
}

BufferView View(const void* at) {
  const auto& b = *static_cast<const abi::Buffer*>(at);
  const auto type = static_cast<ElementType>(b.dtype);
  return {type, std::vector<int64_t>(b.dims, b.dims + b.rank), b.data, IsPackedType(type)};
}

absl::Status Run(const Exported& exported, const abi::CallFrame& frame) {
  const AttributeMapView attributes(DecodeAttributes(frame.attrs));
  HandlerContext context;
  context.target = exported.entry.target;
  context.instruction = "a call of another runtime";
  context.attributes = &attributes;
  context.num_devices = exported.call.num_devices;
  context.api_version = exported.call.api_version;
  context.backend_config = exported.call.backend_config;
  context.tuple_result = frame.rets.size != 1;
  std::vector<BufferView> operands, results;
  for (int64_t k = 0; k < frame.args.size; ++k) operands.push_back(View(frame.args.args[k]));
  for (int64_t k = 0; k < frame.rets.size; ++k) results.push_back(View(frame.rets.rets[k]));
  try {
    return CallConverted(exported.entry.packed, context, operands, results, exported.entry.host);
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("the handler threw: ", e.what()));
  } catch (...) {
    return absl::InternalError("the handler threw");
  }
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
    const std::lock_guard<std::mutex> lock(table.mutex);
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

absl::StatusOr<ExportedFunction> ExportHandler(const HandlerEntry& entry,
                                               const ExportedCall& call) {
  static constexpr auto kFunctions = AllSlots(std::make_index_sequence<kMostExported>());
  Table& table = TheTable();
  const std::lock_guard<std::mutex> lock(table.mutex);
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

}  // namespace shardcall::inline internal
