// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/c/plugin.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/crash_guard.h"
#include "shardcall/kernels/ffi/guard/running_call.h"
#include "shardcall/kernels/ffi/load/library.h"
#include "shardcall/kernels/ffi/load/self_registration.h"
#include "shardcall/kernels/ffi/timed_call.h"
#include "shardcall/kernels/ffi/xla/ffi_types.h"
#include "shardcall/partitioner/bindings/all_or_nothing.h"
#include "shardcall/partitioner/bindings/c/c_facts.h"
#include "shardcall/partitioner/bindings/c/c_target.h"
#include "shardcall/partitioner/bindings/manifest/manifest.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// The first version of the struct.
constexpr size_t kPluginSize = sizeof(Shardcall_Plugin);

struct Registration {
  std::string source;
  TargetRegistry* targets;
  HandlerRegistry* handlers;
  LoweringRegistry* lowerings;
  std::shared_ptr<const void> library;
  absl::Status first_error;
  Shardcall_Registrar registrar = SHARDCALL_INIT(Shardcall_Registrar);
  // The result of register_targets. The call may continue after its deadline; then loading is over,
  // and the registries are not changed any more.
  int code = 0;
  bool crashed = false;
  std::recursive_timed_mutex mutex;
  std::atomic<bool> over{false};

  int Keep(absl::Status status) {
    const int code = static_cast<int>(status.code());
    if (first_error.ok()) first_error = std::move(status);
    return code;
  }
};

// The plugin that this thread loads. If it passes no registrar, its loading fails.
thread_local Registration* loading = nullptr;

Registration* Of(const Shardcall_Registrar* registrar) {
  if (registrar != nullptr && registrar->reserved != nullptr) {
    return static_cast<Registration*>(registrar->reserved);
  }
  if (loading != nullptr) {
    loading->Keep(ToStatus({.code = "E146",
                            .message = "a function of the registrar is called without it",
                            .where = loading->source,
                            .expected = "the registrar that register_targets got",
                            .found = "null",
                            .fix = "pass it on"}));
  }
  return nullptr;
}
constexpr int kNoRegistrar = static_cast<int>(absl::StatusCode::kInvalidArgument);

// Returns what `body` returns, or an error if loading is over.
int WhileLoading(const Shardcall_Registrar* registrar,
                 absl::FunctionRef<int(Registration& r)> body) {
  Registration* const known = Of(registrar);
  if (known == nullptr) return kNoRegistrar;
  const std::lock_guard<std::recursive_timed_mutex> lock(known->mutex);
  return known->over ? static_cast<int>(absl::StatusCode::kDeadlineExceeded) : body(*known);
}

int RegisterTarget(const Shardcall_Registrar* registrar, const Shardcall_Target* target) {
  return WhileLoading(registrar, [&](Registration& r) {
    const absl::Status status = RegisterCTarget(target, r.source, r.targets, r.handlers, r.library);
    const char* name = target == nullptr || target->struct_size < sizeof(size_t) + sizeof(name)
                           ? nullptr
                           : target->name;
    if (absl::StrContains(status.message(), r.source)) return r.Keep(status);
    return r.Keep(
        In(status, absl::StrCat("target \"", name == nullptr ? "" : name, "\" of ", r.source)));
  });
}

int RegisterLowering(const Shardcall_Registrar* registrar, const Shardcall_Lowering* lowering) {
  return WhileLoading(registrar, [&](Registration& r) {
    if (r.lowerings == nullptr) {
      return r.Keep(
          ToStatus({.code = "E146",
                    .message = "the plugin has a lowering, and only targets are read here",
                    .where = r.source,
                    .fix = "pass a LoweringRegistry"}));
    }
    return r.Keep(In(RegisterCLowering(lowering, r.source, r.lowerings, r.library), r.source));
  });
}

int RegisterType(const Shardcall_Registrar* registrar, const char* name, int64_t* type_id,
                 void (*deleter)(void* object)) {
  return WhileLoading(registrar, [&](Registration& r) {
    if (name == nullptr || type_id == nullptr) {
      return r.Keep(ToStatus({.code = "E146",
                              .message = "a type is registered wrongly",
                              .where = r.source,
                              .expected = "a name and a place for its id",
                              .found = "null",
                              .fix = "see shardcall_c_plugin.h"}));
    }
    const absl::StatusOr<int64_t> id = RegisterFfiType(name, *type_id, deleter);
    if (id.ok()) *type_id = *id;
    return r.Keep(In(id.status(), r.source));
  });
}

absl::Status NotAPlugin(absl::string_view source, std::string message, std::string expected = "",
                        std::string found = "", std::string fix = "") {
  if (fix.empty()) fix = "see shardcall_c_plugin.h for what a plugin gives";
  return ToStatus({.code = "E142",
                   .message = absl::StrCat("the library \"", source, "\" ", message),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = std::move(fix)},
                  absl::StatusCode::kFailedPrecondition);
}

absl::Status Crashed(absl::string_view source, absl::string_view entry) {
  return ToStatus({.code = "E323",
                   .message = absl::StrCat(entry, " of the library \"", source, "\" crashed"),
                   .fix = "correct the library; nothing more can be asked of it"},
                  absl::StatusCode::kInternal);
}

// Registers the targets of a library that is a plugin only through static registration: they have
// no rules.
absl::Status TakeSelfRegistered(const std::shared_ptr<const Library>& library,
                                TargetRegistry* targets, HandlerRegistry* handlers) {
  if (handlers == nullptr) return library->registered().fault;
  return AllOrNothing(targets, handlers, nullptr,
                      [&] { return RegisterSelfRegistered(library, handlers); });
}

void CallRegisterTargets(Registration& r, const Shardcall_Plugin* plugin) {
  Registration* const outer = std::exchange(loading, &r);
  const absl::Cleanup done = [outer] { loading = outer; };
  const RunningCall running("register_targets", r.source);
  r.crashed = !CallCatchingSignals([&] { r.code = plugin->register_targets(&r.registrar); });
}

}  // namespace

absl::Status RegisterPlugin(const Shardcall_Plugin* plugin, absl::string_view source,
                            TargetRegistry* targets, HandlerRegistry* handlers,
                            std::shared_ptr<const void> library, LoweringRegistry* lowerings,
                            absl::Duration deadline) {
  const std::string ours = absl::StrCat(SHARDCALL_C_MAJOR, ".", SHARDCALL_C_MINOR);
  if (plugin == nullptr || plugin->struct_size < kPluginSize ||
      plugin->register_targets == nullptr) {
    return NotAPlugin(
        source, "gives no plugin", "a Shardcall_Plugin with register_targets",
        plugin == nullptr ? "null" : absl::StrCat("struct_size ", plugin->struct_size),
        plugin == nullptr ? "return the address of a static Shardcall_Plugin"
                          : "set struct_size to sizeof(Shardcall_Plugin), and register_targets");
  }
  if (plugin->version_major != SHARDCALL_C_MAJOR || plugin->version_minor > SHARDCALL_C_MINOR ||
      plugin->version_minor < 1) {
    return NotAPlugin(source, "was built for another version of the plugin interface",
                      absl::StrCat("0.1 to ", ours),
                      absl::StrCat(plugin->version_major, ".", plugin->version_minor),
                      "build it with the shardcall_c.h of this version");
  }
  const auto registration = std::make_shared<Registration>();
  registration->source = std::string(source);
  registration->targets = targets;
  registration->handlers = handlers;
  registration->lowerings = lowerings;
  registration->library = std::move(library);
  Shardcall_Registrar& registrar = registration->registrar;
  registrar.version_major = SHARDCALL_C_MAJOR;
  registrar.version_minor = SHARDCALL_C_MINOR;
  registrar.register_target = RegisterTarget;
  registrar.register_ffi_type = RegisterType;
  registrar.register_lowering = RegisterLowering;
  registrar.reserved = registration.get();
  return AllOrNothing(targets, handlers, lowerings, [&]() -> absl::Status {
    constexpr char kThrewFix[] = "catch it in register_targets, and return a code";
    absl::Status returned;
    try {
      returned =
          CallWithin(deadline, absl::StrCat("register_targets of the library \"", source, "\""),
                     [registration, plugin] { CallRegisterTargets(*registration, plugin); });
    } catch (const std::exception& e) {
      return NotAPlugin(source, absl::StrCat("threw when its targets were registered: ", e.what()),
                        "", "", kThrewFix);
    } catch (...) {
      return NotAPlugin(source, "threw when its targets were registered", "", "", kThrewFix);
    }
    registration->over = true;
    if (!returned.ok()) {
      // Wait for a registration in progress, which is then undone with the others.
      const std::unique_lock<std::recursive_timed_mutex> lock(registration->mutex,
                                                              std::chrono::seconds(1));
      return returned;
    }
    if (registration->crashed) return Crashed(source, "register_targets");
    if (!registration->first_error.ok()) return registration->first_error;
    if (registration->code != 0) {
      return NotAPlugin(source,
                        absl::StrCat("says that it cannot be used here, code ", registration->code),
                        "", "", "ask its author what the code means");
    }
    return absl::OkStatus();
  });
}

absl::Status LoadPlugin(const std::string& path, TargetRegistry* targets, HandlerRegistry* handlers,
                        LoweringRegistry* lowerings, absl::Duration deadline, int64_t max_input) {
  if (absl::EndsWith(path, ".json")) {
    return LoadManifestFile(path, targets, handlers, lowerings, deadline, max_input);
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const Library> library, Library::Open(path, deadline));
  void* const entry = library->Find("shardcall_plugin");
  if (entry == nullptr) {
    if (library->registered().handlers.empty() && library->registered().fault.ok()) {
      return NotAPlugin(path, "does not export shardcall_plugin, and registers no handler itself",
                        "", "",
                        "for an ordinary XLA FFI library name its symbols in a manifest: "
                        "{\"library\": ..., \"targets\": [{\"name\": ..., \"symbol\": ...}]}");
    }
    return TakeSelfRegistered(library, targets, handlers);
  }
  struct Answer {
    const Shardcall_Plugin* plugin = nullptr;
    bool crashed = false;
  };
  const auto answer = std::make_shared<Answer>();
  try {
    SHARDCALL_RETURN_IF_ERROR(
        CallWithin(deadline, absl::StrCat("shardcall_plugin of the library \"", path, "\""),
                   [answer, entry, path] {
                     const RunningCall running("shardcall_plugin", path);
                     answer->crashed = !CallCatchingSignals([&] {
                       answer->plugin = reinterpret_cast<const Shardcall_Plugin* (*)()>(entry)();
                     });
                   }));
  } catch (...) {
    return NotAPlugin(path, "threw when it was asked for its plugin", "", "",
                      "catch it in shardcall_plugin, and return null");
  }
  if (answer->crashed) return Crashed(path, "shardcall_plugin");
  return AllOrNothing(targets, handlers, lowerings, [&]() -> absl::Status {
    SHARDCALL_RETURN_IF_ERROR(TakeSelfRegistered(library, targets, handlers));
    return RegisterPlugin(answer->plugin, path, targets, handlers, library, lowerings, deadline);
  });
}

}  // namespace shardcall
