// SPDX-License-Identifier: Apache-2.0
// The handlers of a manifest's targets: functions of its library, and shipped kernels.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/platform.h"
#include "shardcall/kernels/ffi/typed_handler.h"
#include "shardcall/kernels/ffi/untyped_handler.h"
#include "shardcall/partitioner/bindings/manifest/manifest_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace manifest {

absl::Status ManifestReader::OpenLibrary(const Json& j) {
  if (!j.contains("library")) return absl::OkStatus();
  SHARDCALL_ASSIGN_OR_RETURN(std::string path, String(j, "library", ""));
  if (handlers_ == nullptr) {
    Diagnostic d;
    d.code = "E142";
    d.message = "the manifest has a library, and only rules are read here";
    d.where = file_;
    d.fix = "pass a HandlerRegistry";
    return ToStatus(d);
  }
  SHARDCALL_ASSIGN_OR_RETURN(library_, Library::Open(Beside(path), deadline_));
  return absl::OkStatus();
}

absl::StatusOr<void*> ManifestReader::Symbol(const Json& j, const char* key,
                                             absl::string_view where) const {
  if (!j.contains(key)) return nullptr;
  SHARDCALL_ASSIGN_OR_RETURN(const std::string name, String(j, key, where));
  if (library_ == nullptr) {
    return Bad(where, "a \"library\" that has the symbol", "none");
  }
  return library_->Get(name);
}

absl::Status ManifestReader::ReadHandler(const Json& j, const std::string& where,
                                         const std::string& name, const std::string& config) {
  std::vector<std::string> traits;
  SHARDCALL_RETURN_IF_ERROR(Strings(j, "traits", where, &traits));
  const bool symbol = j.contains("symbol");
  SHARDCALL_ASSIGN_OR_RETURN(std::string platform, String(j, "platform", where, "Host"));
  SHARDCALL_ASSIGN_OR_RETURN(platform, PlatformFromName(platform));
  int64_t version = 4;
  if (j.contains("api_version")) {
    const Json& v = j["api_version"];
    version = v.is_number_integer() ? v.get<int64_t>() : 0;
    if (version < 1 || version > 4) {
      return Bad(where + ".api_version", "1, 2, 3 (untyped) or 4 (typed FFI)", v.dump());
    }
  }
  for (const std::string& trait : traits) {
    if (trait != "COMMAND_BUFFER_COMPATIBLE" && trait != "DEFAULT") {
      return Bad(where + ".traits", "DEFAULT or COMMAND_BUFFER_COMPATIBLE", trait);
    }
    if (version != 4 && trait != "DEFAULT") {
      return Bad(where + ".traits", "none with an untyped handler", trait);
    }
  }
  for (const char* key : {"traits", "api_version", "platform"}) {
    const bool of_kernel = j.contains("kernel") && absl::string_view(key) == "platform";
    if (!symbol && j.contains(key) && !of_kernel) {
      return Bad(absl::StrCat(where, ".", key), "a \"symbol\" that has it", "none");
    }
  }
  if (!symbol) return absl::OkStatus();
  traits.erase(std::remove(traits.begin(), traits.end(), "DEFAULT"), traits.end());
  abi::HandlerBundle stages = {};
  if (j["symbol"].is_object()) {
    const Json& s = j["symbol"];
    const std::string at = where + ".symbol";
    SHARDCALL_RETURN_IF_ERROR(
        CheckKeys(s, at, {"instantiate", "prepare", "initialize", "execute"}));
    for (const auto& [key, stage] : {std::make_pair("instantiate", &stages.instantiate),
                                     {"prepare", &stages.prepare},
                                     {"initialize", &stages.initialize},
                                     {"execute", &stages.execute}}) {
      SHARDCALL_ASSIGN_OR_RETURN(void* const function, Symbol(s, key, at));
      *stage = reinterpret_cast<abi::Handler*>(function);
    }
  } else {
    SHARDCALL_ASSIGN_OR_RETURN(void* const function, Symbol(j, "symbol", where));
    stages.execute = reinterpret_cast<abi::Handler*>(function);
  }
  if (version != 4) {
    if (j["symbol"].is_object()) {
      return Bad(where + ".symbol", "a string: an untyped handler has no stages", "an object");
    }
    SHARDCALL_ASSIGN_OR_RETURN(
        HandlerEntry entry,
        MakeUntypedEntry(name, platform, reinterpret_cast<void*>(stages.execute),
                         static_cast<int>(version), library_->path(), library_));
    entry.backend_config = config;
    return handlers_->Register(std::move(entry));
  }
  SHARDCALL_ASSIGN_OR_RETURN(HandlerEntry entry,
                             MakeTypedEntry(name, platform, stages, library_->path(), library_));
  entry.backend_config = config;
  for (const std::string& trait : traits) {
    if (std::find(entry.traits.begin(), entry.traits.end(), trait) == entry.traits.end()) {
      entry.traits.push_back(trait);
    }
  }
  return handlers_->Register(std::move(entry));
}

absl::Status ManifestReader::ReadKernel(const Json& j, const std::string& where,
                                        const std::string& target, const std::string& config,
                                        const std::string& source) const {
  // As a text they are those of the kernel, else formulas of the rule.
  const bool attributes = j.contains("attributes") && j["attributes"].is_string();
  if (!j.contains("kernel")) {
    return attributes
               ? Bad(where + ".attributes",
                     "a \"kernel\" that takes them, or formulas, as in {\"n\": \"m / 16\"}", "none")
               : absl::OkStatus();
  }
  if (!j["kernel"].is_string()) return Bad(where + ".kernel", "a string", TypeOf(j["kernel"]));
  struct Bound {
    std::string text;
    AttributeMapView attributes;
  };
  auto bound = std::make_shared<Bound>();
  if (attributes) bound->text = j["attributes"].get<std::string>();
  SHARDCALL_ASSIGN_OR_RETURN(bound->attributes, AttributeMapView::Parse(bound->text));
  if (handlers_ == nullptr) return absl::OkStatus();
  const std::string kernel = j["kernel"].get<std::string>();
  SHARDCALL_ASSIGN_OR_RETURN(const HandlerEntry* shipped, handlers_->Find(kernel, "Host"));
  HandlerEntry entry;
  entry.target = target;
  entry.backend_config = config;
  entry.source = absl::StrCat(source, ", kernel ", kernel, bound->text);
  entry.packed = shipped->packed;
  entry.host = [bound, host = shipped->host](const HandlerContext& context,
                                             absl::Span<const BufferView> operands,
                                             absl::Span<const BufferView> results) {
    HandlerContext own = context;
    own.attributes = &bound->attributes;
    own.backend_config = bound->text;
    return host(own, operands, results);
  };
  const auto before = handlers_->Find(target, "Host", config);
  if (before.ok() && (*before)->source == entry.source) return absl::OkStatus();
  return handlers_->Register(std::move(entry));
}

}  // namespace manifest
}  // namespace internal
}  // namespace shardcall
