// SPDX-License-Identifier: Apache-2.0
#include "partitioner/api/plugin.h"

#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/ffi/ffi_types.h"
#include "kernels/ffi/library.h"
#include "kernels/ffi/platform.h"
#include "kernels/ffi/typed_handler.h"
#include "kernels/ffi/untyped_handler.h"
#include "partitioner/api/c_handler.h"
#include "partitioner/api/manifest.h"
#include "partitioner/api/partial_op_names.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

// Up to which field the first version of each struct goes.
constexpr size_t kPluginSize = sizeof(Shardcall_Plugin);
constexpr size_t kTargetSize = sizeof(Shardcall_Target);

// A plugin hands its lists over in C; this one is far longer than any is.
constexpr int kLongestList = 1024;

struct Registration {
  std::string source;
  TargetRegistry* targets;
  HandlerRegistry* handlers;
  std::shared_ptr<const void> library;
  absl::Status first_error;

  int Keep(absl::Status status) {
    const int code = static_cast<int>(status.code());
    if (first_error.ok()) first_error = std::move(status);
    return code;
  }
};

absl::Status Wrong(const Registration& r, absl::string_view target, std::string expected,
                   std::string found) {
  return ToStatus({.code = "E146",
                   .message = absl::StrCat("the plugin registers target \"", target, "\" wrongly"),
                   .where = r.source,
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "see shardcall_c.h"});
}

std::vector<std::string> Names(const char* const* list) {
  std::vector<std::string> out;
  for (int i = 0; list != nullptr && i < kLongestList && list[i] != nullptr; ++i) {
    out.emplace_back(list[i]);
  }
  return out;
}

absl::Status RegisterTheRule(const Registration& r, const Shardcall_Target& t) {
  const std::string config = t.backend_config == nullptr ? "" : t.backend_config;
  if (t.rule == nullptr) {
    if (t.has_batch_dims == 0) return absl::OkStatus();
    if (t.batch_dims < 0 || t.batch_dims > 64) {
      return Wrong(r, t.name, "a number of batch dims", absl::StrCat(t.batch_dims));
    }
    return r.targets->RegisterBatchPartitionable(t.name, t.batch_dims, config, r.source);
  }
  if (t.has_batch_dims != 0) return Wrong(r, t.name, "either rule or batch_dims", "both");
  RuleText text;
  text.rule = t.rule;
  text.need_replication = Names(t.need_replication);
  text.permutation = Names(t.permutation);
  text.blocked = Names(t.blocked);
  for (const Shardcall_Factor* f = t.reduction; f != nullptr && f->name != nullptr; ++f) {
    PartialOp op;
    if (f->op == nullptr || !PartialOpFromName(f->op, &op)) {
      return Wrong(r, t.name, kPartialOpNames, f->op == nullptr ? "no op" : f->op);
    }
    text.reduction.push_back({f->name, op});
  }
  for (const Shardcall_Factor* f = t.pad; f != nullptr && f->name != nullptr; ++f) {
    text.pad.push_back({f->name, f->value});
  }
  for (const Shardcall_Factor* f = t.sizes; f != nullptr && f->name != nullptr; ++f) {
    text.sizes.push_back({f->name, static_cast<int64_t>(f->value)});
  }
  return r.targets->RegisterRule(t.name, std::move(text), config, r.source);
}

absl::Status RegisterTheHandler(const Registration& r, const Shardcall_Target& t) {
  const bool typed = t.ffi_execute != nullptr || t.ffi_initialize != nullptr ||
                     t.ffi_prepare != nullptr || t.ffi_instantiate != nullptr;
  const int kinds = (t.handler != nullptr) + typed + (t.untyped != nullptr);
  if (kinds == 0 && t.rule == nullptr && t.has_batch_dims == 0) {
    return Wrong(r, t.name, "a rule, batch_dims or a handler", "none");
  }
  if (kinds > 1) return Wrong(r, t.name, "one kind of handler", absl::StrCat(kinds));
  if (kinds == 0 || r.handlers == nullptr) return absl::OkStatus();
  SHARDCALL_ASSIGN_OR_RETURN(const std::string platform,
                             PlatformFromName(t.platform == nullptr ? "Host" : t.platform));
  if (t.handler != nullptr) {
    return r.handlers->Register(
        MakeCEntry(t.name, platform, t.handler, t.handler_data, r.source, r.library));
  }
  if (t.untyped != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(HandlerEntry entry,
                               MakeUntypedEntry(t.name, platform, t.untyped, t.untyped_api_version,
                                                r.source, r.library));
    return r.handlers->Register(std::move(entry));
  }
  const auto stage = [](void* f) { return reinterpret_cast<abi::Handler*>(f); };
  SHARDCALL_ASSIGN_OR_RETURN(
      HandlerEntry entry,
      MakeTypedEntry(t.name, platform,
                     {stage(t.ffi_instantiate), stage(t.ffi_prepare), stage(t.ffi_initialize),
                      stage(t.ffi_execute)},
                     r.source, r.library));
  return r.handlers->Register(std::move(entry));
}

int RegisterTarget(const Shardcall_Registrar* registrar, const Shardcall_Target* target) {
  Registration& r = *static_cast<Registration*>(registrar->reserved);
  if (target == nullptr || target->struct_size < kTargetSize || target->name == nullptr ||
      target->name[0] == '\0') {
    return r.Keep(Wrong(r, target == nullptr || target->struct_size < kTargetSize ||
                                   target->name == nullptr
                               ? ""
                               : target->name,
                        "a target with struct_size and name",
                        target == nullptr ? "null"
                                          : absl::StrCat("struct_size ", target->struct_size)));
  }
  absl::Status status = RegisterTheHandler(r, *target);
  if (status.ok()) status = RegisterTheRule(r, *target);
  return r.Keep(std::move(status));
}

int RegisterType(const Shardcall_Registrar* registrar, const char* name, int64_t* type_id,
                 void (*deleter)(void* object)) {
  Registration& r = *static_cast<Registration*>(registrar->reserved);
  if (name == nullptr || type_id == nullptr) {
    return r.Keep(Wrong(r, "", "a type with a name and a place for its id", "null"));
  }
  const absl::StatusOr<int64_t> id = RegisterFfiType(name, *type_id, deleter);
  if (id.ok()) *type_id = *id;
  return r.Keep(id.status());
}

absl::Status NotAPlugin(absl::string_view source, std::string message, std::string expected = "",
                        std::string found = "", std::string fix = "") {
  return ToStatus({.code = "E142",
                   .message = absl::StrCat("the library \"", source, "\" ", message),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = std::move(fix)},
                  absl::StatusCode::kFailedPrecondition);
}

}  // namespace

absl::Status RegisterPlugin(const Shardcall_Plugin* plugin, absl::string_view source,
                            TargetRegistry* targets, HandlerRegistry* handlers,
                            std::shared_ptr<const void> library) {
  const std::string ours = absl::StrCat(SHARDCALL_C_MAJOR, ".", SHARDCALL_C_MINOR);
  if (plugin == nullptr || plugin->struct_size < kPluginSize ||
      plugin->register_targets == nullptr) {
    return NotAPlugin(source, "gives no plugin", "a Shardcall_Plugin with register_targets",
                      plugin == nullptr ? "null" : absl::StrCat("struct_size ",
                                                                plugin->struct_size));
  }
  if (plugin->version_major != SHARDCALL_C_MAJOR || plugin->version_minor > SHARDCALL_C_MINOR ||
      plugin->version_minor < 1) {
    return NotAPlugin(source, "was built for another version of the plugin interface",
                      absl::StrCat("0.1 to ", ours),
                      absl::StrCat(plugin->version_major, ".", plugin->version_minor),
                      "build it with the shardcall_c.h of this version");
  }
  Registration registration = {std::string(source), targets, handlers, std::move(library), {}};
  Shardcall_Registrar registrar = SHARDCALL_INIT(Shardcall_Registrar);
  registrar.version_major = SHARDCALL_C_MAJOR;
  registrar.version_minor = SHARDCALL_C_MINOR;
  registrar.register_target = RegisterTarget;
  registrar.register_ffi_type = RegisterType;
  registrar.reserved = &registration;
  int code = 0;
  try {
    code = plugin->register_targets(&registrar);
  } catch (const std::exception& e) {
    return NotAPlugin(source, absl::StrCat("threw when its targets were registered: ", e.what()));
  } catch (...) {
    return NotAPlugin(source, "threw when its targets were registered");
  }
  if (!registration.first_error.ok()) return registration.first_error;
  if (code != 0) {
    return NotAPlugin(source, absl::StrCat("says that it cannot be used here, code ", code));
  }
  return absl::OkStatus();
}

absl::Status LoadPlugin(const std::string& path, TargetRegistry* targets,
                        HandlerRegistry* handlers) {
  if (absl::EndsWith(path, ".json")) return LoadManifestFile(path, targets, handlers);
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const Library> library, Library::Open(path));
  void* const entry = library->Find("shardcall_plugin");
  if (entry == nullptr) {
    return NotAPlugin(path, "does not export shardcall_plugin", "", "",
                      "for an ordinary XLA FFI library name its symbols in a manifest: "
                      "{\"library\": ..., \"targets\": [{\"name\": ..., \"symbol\": ...}]}");
  }
  const Shardcall_Plugin* plugin = nullptr;
  try {
    plugin = reinterpret_cast<const Shardcall_Plugin* (*)()>(entry)();
  } catch (...) {
    return NotAPlugin(path, "threw when it was asked for its plugin");
  }
  return RegisterPlugin(plugin, path, targets, handlers, library);
}

}  // namespace shardcall
