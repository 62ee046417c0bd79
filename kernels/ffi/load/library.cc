// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/load/library.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "shardcall/kernels/ffi/guard/running_call.h"
#include "shardcall/kernels/ffi/load/loaded_object.h"
#include "shardcall/kernels/ffi/load/self_registration.h"
#include "shardcall/kernels/ffi/load/shown_symbols.h"
#include "shardcall/sharding/base/near_names.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

// The word after `key` in the loader's message, up to a blank or bracket.
std::string WordBehind(absl::string_view text, absl::string_view key) {
  const size_t at = text.find(key);
  if (at == text.npos) return "";
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(text.substr(at + key.size()));
  return std::string(rest.substr(0, rest.find_first_of(" ,()\t\n")));
}

std::string MissingSymbol(absl::string_view reason) {
  return WordBehind(reason, "undefined symbol:");
}

// Loads with all symbols bound at once. Null on failure, with the loader's reason.
void* Load(const std::string& place, std::string* reason) {
  void* const handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* const said = handle == nullptr ? dlerror() : nullptr;
  if (said != nullptr) *reason = said;
  return handle;
}

// An error with a fix, made from the loader's one-line message.
absl::Status CannotLoad(const std::string& path, absl::string_view reason) {
  Diagnostic d;
  d.code = "E142";
  d.message = absl::StrCat("the library \"", path, "\" cannot be loaded: ", reason);
  const std::string symbol = MissingSymbol(reason);
  if (absl::StartsWith(symbol, "Py") || absl::StartsWith(symbol, "_Py")) {
    d.message = absl::StrCat("the library \"", path, "\" is an extension of Python: it needs \"",
                             symbol, "\"");
    d.fix = "build its handlers into a library of their own, without bindings";
  } else if (!symbol.empty()) {
    d.message = absl::StrCat("the library \"", path, "\" needs the symbol \"", symbol,
                             "\", which nothing provides");
    d.fix = IsFfiSymbol(symbol) ? "load libshardcall.so with RTLD_GLOBAL, or link the program to it"
                                : "link it against the library that has the symbol";
  } else if (absl::StrContains(reason, "cannot open shared object file")) {
    d.message = absl::StrCat("the library \"", path, "\" needs \"",
                             reason.substr(0, reason.find(':')), "\", which is not found");
    d.fix = "install that library, or name its folder in LD_LIBRARY_PATH";
  } else if (absl::StrContains(reason, "version `")) {
    d.fix = "build it with the tools of this system, or an older one";
  } else {
    d.expected = "a shared library for this machine";
    d.fix = "build it with -shared -fPIC for this machine";
  }
  return ToStatus(d, absl::StatusCode::kFailedPrecondition);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Library>> Library::Open(const std::string& path,
                                                             absl::Duration deadline) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || !std::ifstream(path)) {
    return ToStatus({.code = "E143",
                     .message = absl::StrCat("the library \"", path, "\" cannot be read"),
                     .fix = "check the path and its permissions"},
                    absl::StatusCode::kNotFound);
  }
  // dlopen searches other folders for a name without a slash.
  const std::string place = absl::StrContains(path, '/') ? path : absl::StrCat("./", path);
  struct Opened {
    void* handle = nullptr;
    std::string reason = "the loader does not say why";
  };
  const auto opened = std::make_shared<Opened>();
  try {
    SHARDCALL_RETURN_IF_ERROR(CallWithin(
        deadline, absl::StrCat("the start-up code of the library \"", path, "\""), [opened, place] {
          const RunningCall running("the start-up code", place);
          LibraryLoad load(place);
          opened->handle = Load(place, &opened->reason);
          // The missing symbol is one of ours that this process does not export to libraries.
          if (opened->handle == nullptr && IsFfiSymbol(MissingSymbol(opened->reason)) &&
              ShowFfiSymbols()) {
            opened->handle = Load(place, &opened->reason);
          }
          if (opened->handle != nullptr) load.Keep(opened->handle);
        }));
  } catch (const std::exception& e) {
    return CannotLoad(path, absl::StrCat("its start-up code threw: ", e.what()));
  } catch (...) {
    return CannotLoad(path, "its start-up code threw");
  }
  if (opened->handle == nullptr) return CannotLoad(path, opened->reason);
  return std::shared_ptr<const Library>(new Library(path, opened->handle));
}

Library::Library(std::string path, void* handle)
    : path_(std::move(path)), handle_(handle), registered_(SelfRegistrationsOf(handle)) {}

void* Library::Find(const std::string& symbol) const { return dlsym(handle_, symbol.c_str()); }

absl::StatusOr<void*> Library::Get(const std::string& symbol) const {
  if (void* found = Find(symbol)) return found;
  const std::vector<std::string> exports = Exports();
  const std::vector<absl::string_view> names(exports.begin(), exports.end());
  const std::vector<std::string> near = NearNames(symbol, names);
  Diagnostic d;
  d.code = "E145";
  d.message = absl::StrCat("the library \"", path_, "\" has no symbol \"", symbol, "\"");
  if (!near.empty()) absl::StrAppend(&d.message, ". Near names: ", absl::StrJoin(near, ", "));
  d.fix = near.empty() ? "export it with default visibility and extern \"C\""
                       : absl::StrCat("write \"", near[0], "\", or export the symbol");
  return ToStatus(d, absl::StatusCode::kNotFound);
}

std::vector<std::string> Library::Exports() const {
  const link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {};
  std::vector<std::string> result;
  ForEachExport(*map, [&](const char* name, void*) { result.emplace_back(name); });
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace shardcall
