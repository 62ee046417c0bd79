// SPDX-License-Identifier: Apache-2.0
#include "partitioner/bindings/pjrt/pjrt_handlers.h"

#include <map>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "kernels/ffi/exported_handler.h"
#include "kernels/ffi/typed_handler.h"
#include "partitioner/api/pjrt_partitioner.h"
#include "sharding/status.h"

namespace shardcall::pjrt {
namespace {

constexpr int64_t kTypedFfi = 4;
constexpr absl::string_view kHostHandlers = "Host";

// The function that was registered, where the entry is that and nothing more, since a
// plugin is given one for execution; and where the plugin takes it. A plugin does not say
// which versions of the FFI it takes, and forgets a handler of a newer one without a word.
// All take the oldest. Handlers of devices need the plugin's own stream, so that theirs
// is the only way.
const void* OwnFunction(const HandlerEntry& entry) {
  if (entry.api_version != kTypedFfi || entry.functions.size() != 4) return nullptr;
  for (int stage = 0; stage < 3; ++stage) {
    if (entry.functions[stage] != nullptr) return nullptr;
  }
  const void* const execute = entry.functions[3];
  if (entry.platform != kHostHandlers) return execute;
  const absl::StatusOr<FfiMetadata> metadata = QueryFfiMetadata(
      reinterpret_cast<shardcall::abi::Handler*>(const_cast<void*>(execute)), entry.target,
      shardcall::abi::Stage::kExecute);
  const bool oldest =
      metadata.ok() && metadata->minor == shardcall::abi::kOldestMinorVersion;
  return oldest ? execute : nullptr;
}

// Registers what runs one call; gives the target that it is to name.
absl::StatusOr<std::string> RegisterCall(const Plugin& plugin, const HandlerEntry& entry,
                                         ExportedCall call) {
  std::string name = entry.target;
  const void* function = nullptr;
  if (call.api_version == kTypedFfi && entry.backend_config.empty()) {
    call.backend_config.clear();  // its attributes stand in the frame
    function = OwnFunction(entry);
  }
  if (function == nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(const ExportedFunction exported, ExportHandler(entry, call));
    function = reinterpret_cast<const void*>(exported.function);
    if (call.api_version != kTypedFfi || !entry.backend_config.empty()) {
      absl::StrAppend(&name, "@", exported.number);
    }
  }
  SHARDCALL_RETURN_IF_ERROR(
      RegisterHandlerWithPjrt(plugin.c_api(), name, entry.platform, function));
  return name;
}

}  // namespace

absl::StatusOr<absl::flat_hash_map<uint32_t, std::string>> RegisterHandlers(
    const Plugin& plugin, absl::string_view platform, const Module& local, int num_devices,
    const HandlerRegistry& handlers, const absl::flat_hash_set<std::string>& known_targets) {
  absl::flat_hash_map<uint32_t, std::string> renamed;
  // Target, version and text of what is registered, and the target to name.
  std::map<std::tuple<std::string, int64_t, std::string>, std::string> done;
  for (int k = 0; k < local.num_instructions(); ++k) {
    const Instruction& instr = local.instr(InstrId(k));
    if (instr.opcode != Opcode::kCustomCall) continue;
    const auto& attrs = instr.as<CustomCallAttrs>();
    if (known_targets.contains(attrs.target)) continue;
    const absl::StatusOr<const HandlerEntry*> entry =
        handlers.Find(attrs.target, platform, instr.backend_config);
    if (!entry.ok()) continue;
    const bool plain = attrs.api_version == kTypedFfi && (*entry)->backend_config.empty();
    const auto [known, fresh] = done.try_emplace(
        {std::string(attrs.target), attrs.api_version,
         plain ? std::string() : std::string(instr.backend_config)});
    if (fresh) {
      SHARDCALL_ASSIGN_OR_RETURN(
          known->second,
          RegisterCall(plugin, **entry,
                       {num_devices, static_cast<int>(attrs.api_version),
                        std::string(instr.backend_config)}));
    }
    if (!plain) renamed.emplace(k, known->second);
  }
  return renamed;
}

}  // namespace shardcall::pjrt
