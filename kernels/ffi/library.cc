// SPDX-License-Identifier: Apache-2.0
#include "kernels/ffi/library.h"

#include <dlfcn.h>
#include <elf.h>
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
#include "kernels/ffi/near_names.h"
#include "kernels/ffi/running_call.h"
#include "kernels/ffi/self_registration.h"
#include "kernels/ffi/shown_symbols.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

// What stands behind `key` in the loader's message, up to a blank or bracket.
std::string WordBehind(absl::string_view text, absl::string_view key) {
  const size_t at = text.find(key);
  if (at == text.npos) return "";
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(text.substr(at + key.size()));
  return std::string(rest.substr(0, rest.find_first_of(" ,()\t\n")));
}

std::string MissingSymbol(absl::string_view reason) {
  return WordBehind(reason, "undefined symbol:");
}

// All its symbols are bound at once. Null, and the reason if the loader says one.
void* Load(const std::string& place, std::string* reason) {
  void* const handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* const said = handle == nullptr ? dlerror() : nullptr;
  if (said != nullptr) *reason = said;
  return handle;
}

// The loader speaks in one line of text; say what is wrong and what to do.
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

// The number of dynamic symbols, which the hash table alone tells.
size_t CountSymbols(const ElfW(Word)* hash, const uint32_t* gnu) {
  if (hash != nullptr) return hash[1];
  if (gnu == nullptr) return 0;
  const uint32_t buckets = gnu[0], first = gnu[1], bloom = gnu[2];
  const uint32_t* bucket = gnu + 4 + bloom * (sizeof(ElfW(Addr)) / 4);
  const uint32_t* chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t b = 0; b < buckets; ++b) last = std::max(last, bucket[b]);
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
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
  // A bare name would be searched for elsewhere.
  const std::string place = absl::StrContains(path, '/') ? path : absl::StrCat("./", path);
  struct Opened {
    void* handle = nullptr;
    std::string reason = "the loader does not say why";
  };
  const auto opened = std::make_shared<Opened>();
  try {
    SHARDCALL_RETURN_IF_ERROR(CallWithin(
        deadline, absl::StrCat("the start-up code of the library \"", path, "\""),
        [opened, place] {
          const RunningCall running("the start-up code", place);
          LibraryLoad load(place);
          opened->handle = Load(place, &opened->reason);
          // A symbol that is ours, and that this process does not show to libraries.
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
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Word)* hash = nullptr;
  const uint32_t* gnu = nullptr;
  for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; ++d) {
    const auto address = d->d_un.d_ptr;
    if (d->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (d->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
    if (d->d_tag == DT_HASH) hash = reinterpret_cast<const ElfW(Word)*>(address);
    if (d->d_tag == DT_GNU_HASH) gnu = reinterpret_cast<const uint32_t*>(address);
  }
  // The C library adds the load address to these; musl's does not.
  if (symbols == nullptr || names == nullptr ||
      reinterpret_cast<ElfW(Addr)>(symbols) < map->l_addr) {
    return {};
  }
  std::vector<std::string> result;
  const size_t count = CountSymbols(hash, gnu);
  for (size_t i = 0; i < count; ++i) {
    if (symbols[i].st_shndx == SHN_UNDEF || symbols[i].st_name == 0) continue;
    result.emplace_back(names + symbols[i].st_name);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace shardcall
