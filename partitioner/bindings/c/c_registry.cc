// SPDX-License-Identifier: Apache-2.0
// Registration in C.
#include <cstring>

#include "shardcall/partitioner/api/targets.h"
#include "shardcall/partitioner/bindings/c/c_callbacks.h"
#include "shardcall/partitioner/bindings/c/c_facts.h"
#include "shardcall/partitioner/bindings/c/c_internal.h"
#include "shardcall/partitioner/bindings/c/c_shapes.h"
#include "shardcall/partitioner/bindings/c/c_target.h"
#include "shardcall/partitioner/bindings/c/plugin.h"
#include "shardcall/partitioner/bindings/xla/inspect_sharding.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr char kSource[] = "program";

const char* Or(const char* text, const char* otherwise) {
  return text == nullptr ? otherwise : text;
}

absl::Status FromCode(absl::string_view who, int code) {
  if (code == 0) return absl::OkStatus();
  return ToStatus({.code = "E121",
                   .message = absl::StrCat(who, " returned ", code),
                   .fix = "Register what it takes, or leave the handler out"},
                  StatusOfC(code, "").code());
}

Shardcall_CustomCallTarget ToC(const CustomCallTarget& t) {
  Shardcall_CustomCallTarget c = SHARDCALL_INIT(Shardcall_CustomCallTarget);
  c.name = t.name.c_str();
  c.platform = t.platform.c_str();
  c.function = const_cast<void*>(t.function);
  c.api_version = t.api_version;
  c.traits = static_cast<uint32_t>(t.traits);
  c.ffi_instantiate = reinterpret_cast<void*>(t.stages.instantiate);
  c.ffi_prepare = reinterpret_cast<void*>(t.stages.prepare);
  c.ffi_initialize = reinterpret_cast<void*>(t.stages.initialize);
  return c;
}

absl::Status RegisterFunction(Registry& r, const Shardcall_CustomCallTarget& t) {
  const auto traits = static_cast<CustomCallTraits>(t.traits);
  const char* platform = Or(t.platform, "cpu");
  if (t.ffi_instantiate == nullptr && t.ffi_prepare == nullptr && t.ffi_initialize == nullptr) {
    return r.RegisterCustomCallTarget(t.name, t.function, platform, t.api_version, traits);
  }
  if (t.api_version != kTypedFfi) {
    return BadArgument("Shardcall_RegisterCustomCallTarget", "stages of a typed handler alone",
                       absl::StrCat("stages with api_version ", t.api_version));
  }
  const auto stage = [](void* f) { return reinterpret_cast<abi::Handler*>(f); };
  return r.RegisterCustomCallTarget(
      t.name,
      {stage(t.ffi_instantiate), stage(t.ffi_prepare), stage(t.ffi_initialize), stage(t.function)},
      platform, traits);
}

// Registers a property of a target other than its rule.
template <typename Change>
Shardcall_Error* OfTarget(const char* function, Shardcall_Registry* registry, const char* target,
                          const Change& change) {
  return Guarded(function, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(function, "target", target));
    return RegistryOf(registry).Change(change);
  });
}

Shardcall_Error* LoadWithin(const char* name, Shardcall_Registry* registry, const char* path,
                            int64_t max_input) {
  return Guarded(name, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(name, "path", path));
    return RegistryOf(registry).Change([&](Registry& r) {
      return LoadPlugin(path, &r.rules, &r.handlers, &r.lowerings, kLoadDeadline, max_input);
    });
  });
}

}  // namespace
}  // namespace internal
}  // namespace shardcall

using namespace shardcall;  // NOLINT: definitions of C functions

extern "C" {

Shardcall_Error* Shardcall_Registry_Create(Shardcall_Registry** registry) {
  return Guarded(__func__, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull("Shardcall_Registry_Create", "registry", registry));
    *registry = new Shardcall_Registry;
    return absl::OkStatus();
  });
}
void Shardcall_Registry_Destroy(Shardcall_Registry* registry) { delete registry; }

Shardcall_Error* Shardcall_RegisterTarget(Shardcall_Registry* registry,
                                          const Shardcall_Target* target) {
  return Guarded(__func__, [&] {
    return RegistryOf(registry).Change([&](Registry& r) {
      return RegisterCTarget(target, kSource, &r.rules, &r.handlers, nullptr);
    });
  });
}

Shardcall_Error* Shardcall_RegisterVjp(Shardcall_Registry* registry, const char* target,
                                       const Shardcall_Vjp* vjp) {
  return OfTarget(__func__, registry, target,
                  [&](Registry& r) { return RegisterCVjp(target, vjp, &r.rules); });
}

Shardcall_Error* Shardcall_RegisterShapeFunction(Shardcall_Registry* registry, const char* target,
                                                 const Shardcall_ShapeFunction* function) {
  return OfTarget(__func__, registry, target, [&](Registry& r) {
    return RegisterCShapes(target, function, &r.rules, kSource, nullptr);
  });
}

Shardcall_Error* Shardcall_RegisterBatching(Shardcall_Registry* registry, const char* target,
                                            const Shardcall_Batching* batching) {
  return OfTarget(__func__, registry, target,
                  [&](Registry& r) { return RegisterCBatching(target, batching, &r.rules); });
}

Shardcall_Error* Shardcall_RegisterCallLimits(Shardcall_Registry* registry, const char* target,
                                              const Shardcall_CallLimits* limits) {
  return OfTarget(__func__, registry, target,
                  [&](Registry& r) { return RegisterCLimits(target, limits, &r.rules); });
}

Shardcall_Error* Shardcall_RegisterLowering(Shardcall_Registry* registry,
                                            const Shardcall_Lowering* lowering) {
  return Guarded(__func__, [&] {
    return RegistryOf(registry).Change(
        [&](Registry& r) { return RegisterCLowering(lowering, kSource, &r.lowerings, nullptr); });
  });
}

Shardcall_Error* Shardcall_RegisterCustomCallTarget(Shardcall_Registry* registry,
                                                    const Shardcall_CustomCallTarget* target) {
  static constexpr char kName[] = "Shardcall_RegisterCustomCallTarget";
  return Guarded(kName, [&] {
    Shardcall_CustomCallTarget t;
    SHARDCALL_RETURN_IF_ERROR(ReadStruct(kName, target, sizeof(t), &t));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "name", t.name));
    return RegistryOf(registry).Change([&](Registry& r) { return RegisterFunction(r, t); });
  });
}

Shardcall_Error* Shardcall_RegisterCustomCallHandler(Shardcall_Registry* registry,
                                                     const char* platform,
                                                     Shardcall_CustomCallHandler* handler,
                                                     void* data) {
  static constexpr char kName[] = "Shardcall_RegisterCustomCallHandler";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "handler", reinterpret_cast<const void*>(handler)));
    return RegistryOf(registry).Change([&](Registry& r) {
      return r.RegisterCustomCallHandler(
          Or(platform, "cpu"), [handler, data](const CustomCallTarget& target) {
            const Shardcall_CustomCallTarget c = ToC(target);
            return FromCode("the handler of custom calls", handler(&c, data));
          });
    });
  });
}

Shardcall_Error* Shardcall_CustomCallTargets(Shardcall_Registry* registry, const char* platform,
                                             Shardcall_CustomCallHandler* visit, void* data) {
  static constexpr char kName[] = "Shardcall_CustomCallTargets";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "visit", reinterpret_cast<const void*>(visit)));
    SHARDCALL_ASSIGN_OR_RETURN(
        const auto targets,
        RegistryOf(registry).Snapshot()->CustomCallTargets(Or(platform, "cpu")));
    for (const auto& [name, target] : targets) {
      const Shardcall_CustomCallTarget c = ToC(target);
      if (visit(&c, data) != 0) break;
    }
    return absl::OkStatus();
  });
}

Shardcall_Error* Shardcall_RegisterCustomCallPartitioner(Shardcall_Registry* registry,
                                                         const char* name,
                                                         const Shardcall_Partitioner* partitioner) {
  static constexpr char kName[] = "Shardcall_RegisterCustomCallPartitioner";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "name", name));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "partitioner", partitioner));
    SHARDCALL_ASSIGN_OR_RETURN(const PartitionerCallbacks callbacks, MakeCCallbacks(*partitioner));
    return RegistryOf(registry).Change(
        [&](Registry& r) { return r.RegisterCustomCallPartitioner(name, callbacks); });
  });
}

Shardcall_Error* Shardcall_RegisterCustomCallAsBatchPartitionable(Shardcall_Registry* registry,
                                                                  const char* name) {
  static constexpr char kName[] = "Shardcall_RegisterCustomCallAsBatchPartitionable";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "name", name));
    return RegistryOf(registry).Change(
        [&](Registry& r) { return r.RegisterCustomCallAsBatchPartitionable(name); });
  });
}

Shardcall_Error* Shardcall_RegisterCustomCallPartitionerWithApi(
    Shardcall_Registry* registry, const char* name, const Shardcall_Partitioner* partitioner,
    const void* pjrt_api) {
  static constexpr char kName[] = "Shardcall_RegisterCustomCallPartitionerWithApi";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "name", name));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "partitioner", partitioner));
    SHARDCALL_ASSIGN_OR_RETURN(const PartitionerCallbacks callbacks, MakeCCallbacks(*partitioner));
    return RegistryOf(registry).Change([&](Registry& r) {
      return r.RegisterCustomCallPartitioner(
          name, callbacks, /*can_side_effecting_have_replicated_sharding=*/false, pjrt_api);
    });
  });
}

Shardcall_Error* Shardcall_RegisterCustomCallAsBatchPartitionableWithApi(
    Shardcall_Registry* registry, const char* name, const void* pjrt_api) {
  static constexpr char kName[] = "Shardcall_RegisterCustomCallAsBatchPartitionableWithApi";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "name", name));
    return RegistryOf(registry).Change(
        [&](Registry& r) { return r.RegisterCustomCallAsBatchPartitionable(name, pjrt_api); });
  });
}

Shardcall_Error* Shardcall_PassToPjrt(Shardcall_Registry* registry, const char* name,
                                      const void* pjrt_api) {
  static constexpr char kName[] = "Shardcall_PassToPjrt";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "name", name));
    return RegistryOf(registry).Snapshot()->PassToPjrt(name, pjrt_api);
  });
}

Shardcall_Error* Shardcall_PassHandlerToPjrt(Shardcall_Registry* registry, const char* name,
                                             const char* platform, const void* pjrt_api) {
  static constexpr char kName[] = "Shardcall_PassHandlerToPjrt";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "name", name));
    return RegistryOf(registry).Snapshot()->PassHandlerToPjrt(name, Or(platform, "cuda"), pjrt_api);
  });
}

Shardcall_Error* Shardcall_PjrtCallbacksOf(Shardcall_Registry* registry, const char* name,
                                           Shardcall_PjrtCallbacks** callbacks) {
  static constexpr char kName[] = "Shardcall_PjrtCallbacksOf";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "name", name));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "callbacks", callbacks));
    SHARDCALL_ASSIGN_OR_RETURN(*callbacks,
                               RegistryOf(registry).Snapshot()->MakePjrtCallbacks(name));
    return absl::OkStatus();
  });
}

Shardcall_Error* Shardcall_RegisterCustomTypeId(Shardcall_Registry* registry, const char* name,
                                                const char* platform, int64_t* type_id,
                                                void (*deleter)(void* object)) {
  static constexpr char kName[] = "Shardcall_RegisterCustomTypeId";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "name", name));
    return RegistryOf(registry).Change([&](Registry& r) {
      return r.RegisterCustomTypeId(name, type_id, Or(platform, "cpu"), deleter);
    });
  });
}

Shardcall_Error* Shardcall_RegisterCustomTypeIdHandler(Shardcall_Registry* registry,
                                                       const char* platform,
                                                       Shardcall_CustomTypeIdHandler* handler,
                                                       void* data) {
  static constexpr char kName[] = "Shardcall_RegisterCustomTypeIdHandler";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "handler", reinterpret_cast<const void*>(handler)));
    return RegistryOf(registry).Change([&](Registry& r) {
      return r.RegisterCustomTypeIdHandler(
          Or(platform, "cpu"), [handler, data](absl::string_view name, int64_t id) {
            return FromCode("the handler of type ids",
                            handler(std::string(name).c_str(), id, data));
          });
    });
  });
}

Shardcall_Error* Shardcall_EncodeInspectShardingCallback(Shardcall_InspectSharding* function,
                                                         void* data, char backend_config[16]) {
  static constexpr char kName[] = "Shardcall_EncodeInspectShardingCallback";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "function", reinterpret_cast<const void*>(function)));
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "backend_config", backend_config));
    const std::string bytes = EncodeInspectShardingCallback(function, data);
    std::memcpy(backend_config, bytes.data(), bytes.size());
    return absl::OkStatus();
  });
}

Shardcall_Error* Shardcall_ForgetInspectShardingCallback(const char backend_config[16]) {
  static constexpr char kName[] = "Shardcall_ForgetInspectShardingCallback";
  return Guarded(kName, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "backend_config", backend_config));
    if (ForgetInspectShardingCallback({backend_config, 16})) return absl::OkStatus();
    return ToStatus({.code = "E148",
                     .message = absl::StrCat(kName, ": no callback is encoded by these bytes"),
                     .expected = "the bytes of Shardcall_EncodeInspectShardingCallback, once each",
                     .fix = "Forget a callback as often as it was encoded"});
  });
}

Shardcall_Error* Shardcall_LoadPlugin(Shardcall_Registry* registry, const char* path) {
  return LoadWithin("Shardcall_LoadPlugin", registry, path, kMaxInput);
}

Shardcall_Error* Shardcall_LoadPluginWithin(Shardcall_Registry* registry, const char* path,
                                            int64_t max_input) {
  return LoadWithin("Shardcall_LoadPluginWithin", registry, path, max_input);
}

Shardcall_Error* Shardcall_DescribeTargets(Shardcall_Registry* registry, Shardcall_Text** table) {
  static constexpr char kName[] = "Shardcall_DescribeTargets";
  return Guarded(kName, [&] {
    SHARDCALL_RETURN_IF_ERROR(NotNull(kName, "table", table));
    const std::shared_ptr<const Registry> r = RegistryOf(registry).Snapshot();
    *table = new Shardcall_Text{DescribeTargets(r->rules, r->handlers, &r->lowerings)};
    return absl::OkStatus();
  });
}

}  // extern "C"
