// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/registration.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/kernels/ffi/platform.h"
#include "shardcall/kernels/ffi/typed_handler.h"
#include "shardcall/kernels/ffi/untyped_handler.h"
#include "shardcall/partitioner/bindings/all_or_nothing.h"
#include "shardcall/partitioner/bindings/xla/inspect_sharding.h"
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"
#include "shardcall/partitioner/bindings/xla/pjrt_serving.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/process_lock.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

constexpr absl::string_view kSource = "program";

absl::Status Refused(absl::string_view name, std::string message, std::string expected,
                     std::string found, std::string fix, absl::StatusCode code) {
  return ToStatus({.code = "E147",
                   .message = std::move(message),
                   .where = name.empty() ? "" : absl::StrCat("target \"", name, "\""),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = std::move(fix)},
                  code);
}

absl::Status NullHandler(absl::string_view platform, absl::string_view what) {
  return Refused("", absl::StrCat("the handler of ", what, " for ", platform, " is null"),
                 "a function", "", "give a function", absl::StatusCode::kInvalidArgument);
}

constexpr absl::string_view kCommandBuffer = "COMMAND_BUFFER_COMPATIBLE";

std::string Describe(const CustomCallTarget& t) {
  if (t.function == nullptr) return "a handler of another kind";
  return absl::StrCat(t.api_version == kTypedFfi ? "a typed FFI handler" : "an untyped function",
                      " at 0x", absl::Hex(reinterpret_cast<uintptr_t>(t.function)),
                      t.stages.instantiate == nullptr ? "" : " with instantiate",
                      t.traits == CustomCallTraits::kDefault ? "" : ", COMMAND_BUFFER_COMPATIBLE");
}

// What an entry was registered with: the functions of all stages (MakeTypedEntry), or one function
// (MakeUntypedEntry).
CustomCallTarget TargetOf(const HandlerEntry& entry) {
  CustomCallTarget target;
  target.name = entry.target;
  target.platform = entry.platform;
  target.api_version = entry.api_version == 4 ? kTypedFfi : kUntypedFfi;
  if (std::find(entry.traits.begin(), entry.traits.end(), kCommandBuffer) != entry.traits.end()) {
    target.traits = CustomCallTraits::kCommandBufferCompatible;
  }
  if (!entry.own_version_only) return target;
  if (entry.api_version != 4) {
    if (entry.functions.size() == 1) target.function = entry.functions[0];
    return target;
  }
  if (entry.functions.size() != 4) return target;
  const auto stage = [&](int s) {
    return reinterpret_cast<abi::Handler*>(const_cast<void*>(entry.functions[s]));
  };
  target.stages = {stage(0), stage(1), stage(2), stage(3)};
  target.function = entry.functions[3];
  return target;
}

absl::StatusOr<HandlerEntry> MakeEntry(const CustomCallTarget& target) {
  if (target.api_version == kTypedFfi) {
    SHARDCALL_ASSIGN_OR_RETURN(
        HandlerEntry entry, MakeTypedEntry(target.name, target.platform, target.stages, kSource));
    if (target.traits == CustomCallTraits::kCommandBufferCompatible &&
        std::find(entry.traits.begin(), entry.traits.end(), kCommandBuffer) == entry.traits.end()) {
      entry.traits.emplace_back(kCommandBuffer);
    }
    return entry;
  }
  return MakeUntypedEntry(target.name, target.platform, const_cast<void*>(target.function),
                          /*api_version=*/0, kSource);
}

// Returns the handler's status. Takes a copy of the handler, since it may register more.
absl::Status TellType(CustomTypeIdHandler handler, absl::string_view platform,
                      absl::string_view name, int64_t id) {
  std::string what;
  try {  // an author's function
    return handler(name, id);
  } catch (const std::exception& e) {
    what = absl::StrCat("threw: ", e.what());
  } catch (...) {
    what = "threw";
  }
  return ToStatus({.code = "E121",
                   .message = absl::StrCat("the handler of type ids for ", platform, " ", what),
                   .where = absl::StrCat("type \"", name, "\""),
                   .fix = "Let it return a status"},
                  absl::StatusCode::kInternal);
}

}  // namespace

absl::Status Registry::Add(CustomCallTarget target) {
  SHARDCALL_ASSIGN_OR_RETURN(HandlerEntry entry, MakeEntry(target));
  return handlers.Register(std::move(entry));
}

absl::Status Registry::RegisterCustomCallTarget(absl::string_view name, const void* function,
                                                absl::string_view platform, int api_version,
                                                CustomCallTraits traits) {
  if (api_version != kUntypedFfi && api_version != kTypedFfi) {
    return Refused(
        name,
        absl::StrCat("API version ", api_version, " is not supported by RegisterCustomCallTarget"),
        "0 (untyped) or 1 (typed FFI)", absl::StrCat(api_version),
        "register API versions 1 to 3 of HLO as 0, and 4 as 1", absl::StatusCode::kUnimplemented);
  }
  if (api_version == kTypedFfi) {
    abi::HandlerBundle stages = {};
    stages.execute = reinterpret_cast<abi::Handler*>(const_cast<void*>(function));
    return RegisterCustomCallTarget(name, stages, platform, traits);
  }
  if (traits != CustomCallTraits::kDefault) {
    return Refused(name, "an untyped function has no traits", "traits DEFAULT",
                   traits == CustomCallTraits::kCommandBufferCompatible
                       ? "COMMAND_BUFFER_COMPATIBLE"
                       : absl::StrCat(static_cast<uint32_t>(traits)),
                   "register it as a typed FFI handler (api version 1), or without traits",
                   absl::StatusCode::kInvalidArgument);
  }
  CustomCallTarget target;
  target.name = std::string(name);
  SHARDCALL_ASSIGN_OR_RETURN(target.platform, PlatformFromName(platform));
  target.function = function;
  return Add(std::move(target));
}

absl::Status Registry::RegisterCustomCallTarget(absl::string_view name,
                                                const abi::HandlerBundle& stages,
                                                absl::string_view platform,
                                                CustomCallTraits traits) {
  if (traits != CustomCallTraits::kDefault &&
      traits != CustomCallTraits::kCommandBufferCompatible) {
    return Refused(name, "there are no such traits", "DEFAULT or COMMAND_BUFFER_COMPATIBLE",
                   absl::StrCat(static_cast<uint32_t>(traits)), "give 0 or 1",
                   absl::StatusCode::kInvalidArgument);
  }
  CustomCallTarget target;
  target.name = std::string(name);
  SHARDCALL_ASSIGN_OR_RETURN(target.platform, PlatformFromName(platform));
  target.api_version = kTypedFfi;
  target.traits = traits;
  target.function = reinterpret_cast<const void*>(stages.execute);
  target.stages = stages;
  return Add(std::move(target));
}

absl::Status Registry::RegisterCustomCallHandler(absl::string_view platform,
                                                 CustomCallHandler handler) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::string name, PlatformFromName(platform));
  if (handler == nullptr) return NullHandler(name, "targets");
  return handlers.Watch(name, [handler = std::move(handler)](const HandlerEntry& entry) {
    return handler(TargetOf(entry));
  });
}

absl::StatusOr<std::map<std::string, CustomCallTarget>> Registry::CustomCallTargets(
    absl::string_view platform) const {
  SHARDCALL_RETURN_IF_ERROR(PlatformFromName(platform).status());
  const std::string key = PlatformKey(platform);
  std::map<std::string, CustomCallTarget> out;
  // If a name has several entries, the first is the one for every backend_config.
  for (const HandlerEntry* entry : handlers.List()) {
    if (PlatformKey(entry->platform) == key) out.emplace(entry->target, TargetOf(*entry));
  }
  return out;
}

absl::StatusOr<Shardcall_PjrtCallbacks*> Registry::Serve(const TargetRegistry& from,
                                                         absl::string_view name) const {
  PjrtTarget target;
  target.name = std::string(name);
  target.rules = std::make_shared<const TargetRegistry>(from);
  for (const HandlerEntry* entry : handlers.List()) {
    if (entry->target == name && entry->api_version != 0) target.api_version = entry->api_version;
  }
  return NewPjrtCallbacks(std::move(target));
}

absl::StatusOr<Shardcall_PjrtCallbacks*> Registry::MakePjrtCallbacks(absl::string_view name) const {
  return Serve(rules, name);
}

absl::Status Registry::Pass(const TargetRegistry& from, absl::string_view name,
                            const void* c_api) const {
  const TargetRule* rule = from.Find(name, "");
  if (rule != nullptr && rule->level == RuleLevel::kBatchDims &&
      rule->batch_dims == kBatchDimsOfCall) {
    return RegisterBatchPartitionableWithPjrt(c_api, name);
  }
  SHARDCALL_ASSIGN_OR_RETURN(Shardcall_PjrtCallbacks * callbacks, Serve(from, name));
  const absl::Status status = RegisterPartitionerWithPjrt(c_api, name, callbacks);
  if (!status.ok()) callbacks->dtor(callbacks);
  return status;
}

absl::Status Registry::PassToPjrt(absl::string_view name, const void* c_api) const {
  return Pass(rules, name, c_api);
}

absl::Status Registry::PassHandlerToPjrt(absl::string_view name, absl::string_view platform,
                                         const void* c_api) const {
  SHARDCALL_ASSIGN_OR_RETURN(const std::string on, PlatformFromName(platform));
  SHARDCALL_ASSIGN_OR_RETURN(const HandlerEntry* const entry, handlers.Find(name, on));
  const CustomCallTarget target = TargetOf(*entry);
  const bool one_stage = target.stages.instantiate == nullptr && target.stages.prepare == nullptr &&
                         target.stages.initialize == nullptr;
  if (target.api_version != kTypedFfi || !one_stage) {
    return ToStatus({.code = "E148",
                     .message = absl::StrCat("the function of target \"", name,
                                             "\" cannot be registered with a PJRT plugin"),
                     .expected = "a typed FFI handler of the execute stage alone",
                     .found = Describe(target),
                     .fix = "register such a handler for the plugin"});
  }
  return RegisterHandlerWithPjrt(c_api, name, on, target.function,
                                 static_cast<uint32_t>(target.traits));
}

absl::Status Registry::RegisterCustomCallPartitioner(
    absl::string_view name, PartitionerCallbacks callbacks,
    bool can_side_effecting_have_replicated_sharding, const void* c_api) {
  callbacks.can_side_effecting_have_replicated_sharding |=
      can_side_effecting_have_replicated_sharding;
  if (c_api == nullptr) {
    return rules.RegisterCustomCallPartitioner(std::string(name), std::move(callbacks));
  }
  return AllOrNothing(&rules, nullptr, nullptr, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(
        rules.RegisterCustomCallPartitioner(std::string(name), std::move(callbacks)));
    return Pass(rules, name, c_api);
  });
}

absl::Status Registry::RegisterCustomCallAsBatchPartitionable(absl::string_view name,
                                                              const void* c_api) {
  if (c_api == nullptr) {
    return rules.RegisterBatchPartitionable(std::string(name), kBatchDimsOfCall);
  }
  return AllOrNothing(&rules, nullptr, nullptr, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(
        rules.RegisterBatchPartitionable(std::string(name), kBatchDimsOfCall));
    return Pass(rules, name, c_api);
  });
}

absl::Status Registry::RegisterCustomTypeId(absl::string_view name, int64_t* type_id,
                                            absl::string_view platform, FfiDeleter deleter) {
  if (type_id == nullptr) {
    return Refused(name, "a type id is registered without a place for it",
                   "a pointer to 0, or to the id wanted", "null", "give the address of a variable",
                   absl::StatusCode::kInvalidArgument);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::string on, PlatformFromName(platform));
  SHARDCALL_ASSIGN_OR_RETURN(*type_id, RegisterFfiType(name, *type_id, deleter));
  const auto key = std::make_pair(PlatformKey(on), std::string(name));
  CustomTypeIdHandler handler;
  {
    const auto types = types_.Lock();
    if (!types->ids.emplace(key, *type_id).second) return absl::OkStatus();
    const auto found = types->handlers.find(key.first);
    if (found == types->handlers.end()) return absl::OkStatus();
    handler = found->second;
  }
  // An author's function: not under the lock, since it may wait for other threads.
  const absl::Status told = TellType(handler, on, name, *type_id);
  if (!told.ok()) types_.Lock()->ids.erase(key);
  return told;
}

absl::Status Registry::RegisterCustomTypeIdHandler(absl::string_view platform,
                                                   CustomTypeIdHandler handler) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::string name, PlatformFromName(platform));
  if (handler == nullptr) return NullHandler(name, "type ids");
  const std::string key = PlatformKey(name);
  const auto all = [&] {
    const auto types = types_.Lock();
    const bool added = types->handlers.emplace(key, handler).second;
    return std::make_pair(added, added ? types->ids : decltype(types->ids)());
  }();
  if (!all.first) {
    return ToStatus(
        {.code = "E141",
         .message = absl::StrCat("platform ", name, " has a handler of type ids already"),
         .fix = "register one handler per platform, and pass on from it"},
        absl::StatusCode::kAlreadyExists);
  }
  for (const auto& [type, id] : all.second) {
    if (type.first != key) continue;
    const absl::Status told = TellType(handler, name, type.second, id);
    if (told.ok()) continue;
    types_.Lock()->handlers.erase(key);
    return told;
  }
  return absl::OkStatus();
}

absl::Status RegisterBuiltins(TargetRegistry& targets, HandlerRegistry& handlers,
                              LoweringRegistry& lowerings) {
  SHARDCALL_RETURN_IF_ERROR(RegisterBuiltinTargets(targets));
  SHARDCALL_RETURN_IF_ERROR(RegisterBuiltinHandlers(handlers));
  return RegisterBuiltinLowerings(lowerings);
}

SharedRegistry::SharedRegistry() {
  SHARDCALL_CHECK(RegisterBuiltins(registry_.rules, registry_.handlers, registry_.lowerings).ok());
  SHARDCALL_CHECK(RegisterInspectSharding(registry_.rules).ok());
}

struct SharedRegistry::Turn {
  const int64_t forks = ProcessLock::forks();
  std::recursive_mutex mutex;
};

std::shared_ptr<SharedRegistry::Turn> SharedRegistry::ForThisProcess() {
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  if (turn_ == nullptr || turn_->forks != ProcessLock::forks()) turn_ = std::make_shared<Turn>();
  return turn_;
}

std::shared_ptr<const Registry> SharedRegistry::Snapshot() {
  const std::shared_ptr<Turn> turn = ForThisProcess();
  const std::lock_guard<std::recursive_mutex> lock(turn->mutex);
  if (snapshot_ == nullptr) snapshot_ = std::make_shared<const Registry>(registry_);
  return snapshot_;
}

absl::Status SharedRegistry::Change(const std::function<absl::Status(Registry&)>& change) {
  const std::shared_ptr<Turn> turn = ForThisProcess();
  const std::lock_guard<std::recursive_mutex> lock(turn->mutex);
  const absl::Status status = change(registry_);
  snapshot_ = nullptr;
  return status;
}

SharedRegistry& ProcessRegistry() {
  return internal::MadeAtFirstUse([] { return new SharedRegistry; });
}

absl::Status RegisterCustomCallHandler(absl::string_view platform, CustomCallHandler handler) {
  return ProcessRegistry().Change(
      [&](Registry& r) { return r.RegisterCustomCallHandler(platform, std::move(handler)); });
}

absl::StatusOr<std::map<std::string, CustomCallTarget>> CustomCallTargets(
    absl::string_view platform) {
  return DefaultRegistry()->CustomCallTargets(platform);
}

absl::Status RegisterCustomCallPartitioner(absl::string_view name, PartitionerCallbacks callbacks,
                                           bool can_side_effecting_have_replicated_sharding,
                                           const void* c_api) {
  return ProcessRegistry().Change([&](Registry& r) {
    return r.RegisterCustomCallPartitioner(name, std::move(callbacks),
                                           can_side_effecting_have_replicated_sharding, c_api);
  });
}

absl::Status RegisterCustomCallAsBatchPartitionable(absl::string_view name, const void* c_api) {
  return ProcessRegistry().Change(
      [&](Registry& r) { return r.RegisterCustomCallAsBatchPartitionable(name, c_api); });
}

absl::Status PassToPjrt(absl::string_view name, const void* c_api) {
  return ProcessRegistry().Change([&](Registry& r) { return r.PassToPjrt(name, c_api); });
}

absl::Status RegisterCustomTypeId(absl::string_view name, int64_t* type_id,
                                  absl::string_view platform, FfiDeleter deleter) {
  return ProcessRegistry().Change(
      [&](Registry& r) { return r.RegisterCustomTypeId(name, type_id, platform, deleter); });
}

absl::Status RegisterCustomTypeIdHandler(absl::string_view platform, CustomTypeIdHandler handler) {
  return ProcessRegistry().Change(
      [&](Registry& r) { return r.RegisterCustomTypeIdHandler(platform, std::move(handler)); });
}

}  // namespace shardcall
