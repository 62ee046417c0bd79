// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/exported_calls.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/exported_handler.h"
#include "shardcall/kernels/ffi/typed_handler.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

constexpr absl::string_view kHostHandlers = "Host";

// The function that was registered, if the entry has nothing else (a runtime gets only the function
// for execution) and if the runtime accepts it. A plugin does not report the FFI versions that it
// accepts, and silently drops a handler of a newer version; all accept the oldest. Device handlers
// need the runtime's own stream, so they are always passed directly.
const void* OwnFunction(const HandlerEntry& entry) {
  if (entry.api_version != kTypedFfiCall || entry.functions.size() != 4) return nullptr;
  for (int stage = 0; stage < 3; ++stage) {
    if (entry.functions[stage] != nullptr) return nullptr;
  }
  const void* const execute = entry.functions[3];
  if (entry.platform != kHostHandlers) return execute;
  const absl::StatusOr<FfiMetadata> metadata =
      QueryFfiMetadata(reinterpret_cast<abi::Handler*>(const_cast<void*>(execute)), entry.target,
                       abi::Stage::kExecute);
  const bool oldest = metadata.ok() && metadata->minor == abi::kOldestMinorVersion;
  return oldest ? execute : nullptr;
}

// Makes the function that runs one call, and the name that the call gets.
absl::StatusOr<ExportedTarget> ExportCall(const HandlerEntry& entry, ExportedCall call) {
  ExportedTarget out{.name = entry.target, .platform = entry.platform};
  if (call.api_version == kTypedFfiCall && entry.backend_config.empty()) {
    call.backend_config.clear();  // its attributes are in the call frame
    out.function = OwnFunction(entry);
  }
  if (out.function != nullptr) return out;
  SHARDCALL_ASSIGN_OR_RETURN(const ExportedFunction exported, ExportHandler(entry, call));
  out.function = reinterpret_cast<const void*>(exported.function);
  if (call.api_version != kTypedFfiCall || !entry.backend_config.empty()) {
    absl::StrAppend(&out.name, "@", exported.number);
  }
  return out;
}

}  // namespace

absl::StatusOr<ExportedCalls> ExportCalls(const Module& local, absl::string_view platform,
                                          int num_devices, const HandlerRegistry& handlers,
                                          const absl::flat_hash_set<std::string>& known) {
  ExportedCalls out;
  // Index in out.targets, by target, version and text of the exported call.
  std::map<std::tuple<std::string, int64_t, std::string>, size_t> done;
  for (int k = 0; k < local.num_instructions(); ++k) {
    const Instruction& instr = local.instr(InstrId(k));
    if (instr.opcode != Opcode::kCustomCall) continue;
    // What the compiler itself knows has no handler, except kernels that frameworks compile.
    const KnownTarget own = KnownTargetOf(instr);
    if (own != KnownTarget::kNone && !HasTrait(own, kStatesGrid)) continue;
    const auto& attrs = instr.as<CustomCallAttrs>();
    if (known.contains(attrs.target)) continue;
    const absl::StatusOr<const HandlerEntry*> entry =
        handlers.Find(attrs.target, platform, instr.backend_config);
    if (!entry.ok()) continue;
    const bool plain = attrs.api_version == kTypedFfiCall && (*entry)->backend_config.empty();
    const auto [at, fresh] =
        done.try_emplace({std::string(attrs.target), attrs.api_version,
                          plain ? std::string() : std::string(instr.backend_config)},
                         out.targets.size());
    if (fresh) {
      SHARDCALL_ASSIGN_OR_RETURN(
          ExportedTarget target,
          ExportCall(**entry,
                     {num_devices, static_cast<int>(attrs.api_version),
                      std::string(instr.backend_config), handlers.Devices((*entry)->platform)}));
      out.targets.push_back(std::move(target));
    }
    if (!plain) out.renamed.emplace(k, out.targets[at->second].name);
  }
  return out;
}

std::vector<RenamedTarget> RenamePartitioned(const absl::flat_hash_set<std::string>& asked,
                                             const absl::flat_hash_set<std::string>& known,
                                             Module* module, ExportedCalls* calls) {
  std::map<std::string, std::string> names;
  std::vector<RenamedTarget> out;
  const auto own = [&](const std::string& target) {
    return std::find_if(calls->targets.begin(), calls->targets.end(),
                        [&](const ExportedTarget& t) { return t.name == target; });
  };
  for (int k = 0; k < module->num_instructions(); ++k) {
    const Instruction& instr = module->instr(InstrId(k));
    if (instr.opcode != Opcode::kCustomCall || calls->renamed.contains(k)) continue;
    CustomCallAttrs attrs = instr.as<CustomCallAttrs>();
    const std::string target(attrs.target);
    if (!asked.contains(target)) continue;
    const auto [name, fresh] = names.try_emplace(target);
    if (fresh) {
      const auto exported = own(target);
      if (exported == calls->targets.end() && !known.contains(target)) {
        name->second = target;
      } else {
        name->second = absl::StrCat(target, "@shard");
        if (exported != calls->targets.end()) {
          exported->name = name->second;
        } else {
          out.push_back({target, name->second});
        }
      }
    }
    if (name->second == target) continue;
    attrs.target = name->second;
    module->mutable_instr(InstrId(k)).attrs = InternAttributes(module->context(), attrs);
  }
  return out;
}

}  // namespace shardcall
