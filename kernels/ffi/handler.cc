// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/handler.h"

#include <dlfcn.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/kernels/ffi/cuda_device.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/near_names.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

int64_t BufferView::num_elements() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

bool IsPackedType(ElementType type) {
  const int bits = ElementTypeBits(type);
  return bits == 1 || bits == 2 || bits == 4;
}

int64_t BufferView::byte_size() const {
  const int64_t n = num_elements();
  return packed && IsPackedType(type) ? (n * ElementTypeBits(type) + 7) / 8
                                      : n * ElementTypeBytes(type);
}

std::string BufferView::ToString() const {
  return absl::StrCat(ElementTypeName(type), "[", absl::StrJoin(dims, ","), "]");
}

const AttributeMapView& HandlerContext::attribute_map() const {
  if (attributes != nullptr) return *attributes;
  return internal::MadeAtFirstUse([] { return new AttributeMapView; });
}

namespace {

// The first few names, and the number of the others.
std::string SomeNames(absl::Span<const absl::string_view> names) {
  constexpr size_t kMost = 8;
  if (names.empty()) return "nothing";
  std::string out = absl::StrJoin(names.subspan(0, kMost), ", ");
  if (names.size() > kMost) absl::StrAppend(&out, " and ", names.size() - kMost, " more");
  return out;
}

// "libk.so (row_sum, api 4, COMMAND_BUFFER_COMPATIBLE)", as far as known.
std::string OriginOf(const HandlerEntry& entry) {
  std::vector<std::string> parts;
  for (const void* function : entry.functions) {
    Dl_info info;
    if (function != nullptr && dladdr(function, &info) != 0 && info.dli_sname != nullptr) {
      parts.emplace_back(info.dli_sname);
    }
  }
  if (entry.own_version_only) parts.push_back(absl::StrCat("api ", entry.ApiText()));
  parts.insert(parts.end(), entry.traits.begin(), entry.traits.end());
  if (parts.empty()) return entry.source;
  return absl::StrCat(entry.source, " (", absl::StrJoin(parts, ", "), ")");
}

// "0x7f10, 0x7f20": the addresses, by which entries of the same name differ.
std::string FunctionsText(const HandlerEntry& entry) {
  std::vector<std::string> all;
  for (const void* function : entry.functions) {
    if (function == nullptr) continue;
    all.push_back(absl::StrCat("0x", absl::Hex(reinterpret_cast<uintptr_t>(function))));
  }
  return all.empty() ? "a function of its own" : absl::StrJoin(all, ", ");
}

}  // namespace

std::string HandlerEntry::ApiText() const {
  if (!own_version_only) return "any";
  return api_version == 0 ? "1 to 3" : absl::StrCat(api_version);
}

absl::Status HandlerRegistry::Register(HandlerEntry entry) {
  if (entry.target.empty() || entry.platform.empty() || !entry.host || entry.api_version < 0 ||
      entry.api_version > 4) {
    return ToStatus({.code = "E141",
                     .message = entry.target.empty()
                                    ? "a handler without a target's name cannot be registered"
                                    : absl::StrCat("a handler cannot be registered as target \"",
                                                   entry.target, "\""),
                     .expected = "a name, a platform, an API version from 0 to 4 and a function",
                     .found = absl::StrCat("platform \"", entry.platform, "\", API version ",
                                           entry.api_version, entry.host ? "" : ", no function"),
                     .fix = "Give all four"});
  }
  if (entry.target[0] == '$') {
    return ToStatus(
        {.code = "E141",
         .message = absl::StrCat("a handler cannot be registered as target \"", entry.target, "\""),
         .expected = "a name that does not begin with $, which XLA keeps for itself",
         .found = entry.target,
         .fix = "Give the target another name"});
  }
  SHARDCALL_ASSIGN_OR_RETURN(entry.platform, PlatformFromName(entry.platform));
  auto key = std::make_tuple(entry.target, PlatformKey(entry.platform), entry.backend_config);
  std::optional<HandlerEntry> before;
  Watcher watcher;
  {
    const auto state = state_.Lock();
    const auto [it, is_new] = state->entries.try_emplace(key, entry);
    if (is_new) {
      state->order.push_back(key);
      const auto found = state->watchers.find(PlatformKey(entry.platform));
      if (found != state->watchers.end()) watcher = found->second;
    } else {
      before = it->second;
    }
  }
  if (!before.has_value()) {
    if (watcher == nullptr) return absl::OkStatus();
    // Not under the lock: an author's function may wait for other threads.
    const absl::Status told = Tell(watcher, entry);
    if (told.ok()) return told;
    const auto state = state_.Lock();
    state->entries.erase(key);
    std::erase(state->order, key);
    return told;
  }
  const HandlerEntry& known = *before;
  if (!entry.functions.empty() && known.functions == entry.functions &&
      known.api_version == entry.api_version && known.traits == entry.traits) {
    return absl::OkStatus();
  }
  const std::string origin = OriginOf(entry);
  return ToStatus(
      {.code = "E141",
       .message = absl::StrCat("target \"", known.target, "\" has a handler for ", known.platform,
                               " already, from ", OriginOf(known),
                               origin.empty() ? "" : "; another one comes from ", origin),
       .expected = FunctionsText(known),
       .found = FunctionsText(entry),
       .fix = "Give the new one another name, or leave one of the two out"},
      absl::StatusCode::kAlreadyExists);
}

absl::Status HandlerRegistry::Watch(absl::string_view platform, Watcher watcher) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::string name, PlatformFromName(platform));
  const std::string key = PlatformKey(name);
  bool is_new = false;
  std::vector<HandlerEntry> known;
  {
    const auto state = state_.Lock();
    is_new = state->watchers.emplace(key, watcher).second;
    for (const auto& [of_entry, entry] : state->entries) {
      if (is_new && std::get<1>(of_entry) == key) known.push_back(entry);
    }
  }
  if (!is_new) {
    return ToStatus(
        {.code = "E141",
         .message = absl::StrCat("platform ", name, " has a handler of targets already"),
         .fix = "register one handler per platform, and pass on from it"},
        absl::StatusCode::kAlreadyExists);
  }
  for (const HandlerEntry& entry : known) {
    const absl::Status told = Tell(watcher, entry);
    if (told.ok()) continue;
    state_.Lock()->watchers.erase(key);
    return told;
  }
  return absl::OkStatus();
}

absl::Status HandlerRegistry::Tell(const Watcher& watcher, const HandlerEntry& entry) const {
  std::string what;
  try {  // an author's function
    return watcher(entry);
  } catch (const std::exception& e) {
    what = absl::StrCat("threw: ", e.what());
  } catch (...) {
    what = "threw";
  }
  return ToStatus(
      {.code = "E121",
       .message = absl::StrCat("the handler of targets for ", entry.platform, " ", what),
       .where = absl::StrCat("target \"", entry.target, "\""),
       .fix = "Let it return a status"},
      absl::StatusCode::kInternal);
}

void HandlerRegistry::Rewind(size_t count) {
  const auto state = state_.Lock();
  for (; state->order.size() > count; state->order.pop_back())
    state->entries.erase(state->order.back());
}

absl::StatusOr<const HandlerEntry*> HandlerRegistry::Find(absl::string_view target,
                                                          absl::string_view platform,
                                                          absl::string_view backend_config,
                                                          absl::string_view where) const {
  Key key(target, PlatformKey(platform), "");
  const auto state = state_.Lock();
  for (absl::string_view config : {backend_config, absl::string_view()}) {
    std::get<2>(key) = std::string(config);
    auto it = state->entries.find(key);
    if (it != state->entries.end()) return &it->second;
  }

  std::vector<std::string> elsewhere;
  std::vector<absl::string_view> names;
  for (const auto& [key, entry] : state->entries) {
    if (entry.target == target) {
      elsewhere.push_back(absl::StrCat(
          entry.platform, " (api ", entry.ApiText(), ", ", entry.source,
          entry.backend_config.empty()
              ? ""
              : absl::StrCat(", for backend_config \"", entry.backend_config.substr(0, 60), "\""),
          ")"));
    } else if (names.empty() || names.back() != entry.target) {
      names.push_back(entry.target);
    }
  }
  const std::vector<std::string> near = NearNames(target, names);
  Diagnostic d;
  d.code = "E140";
  const std::string who =
      absl::StrCat("target \"", target, "\"", where.empty() ? "" : " at ", where);
  if (elsewhere.empty()) {
    d.message = absl::StrCat(who, " has no handler. Requested: ", platform,
                             ". Registered: ", SomeNames(names));
  } else {
    d.message = absl::StrCat(who, " is registered for: ", absl::StrJoin(elsewhere, ", "),
                             ". Requested: ", platform);
  }
  if (!near.empty()) absl::StrAppend(&d.message, ". Near names: ", absl::StrJoin(near, ", "));
  d.fix = "Register a handler for it, or pass a plugin that has one";
  return ToStatus(d);
}

absl::StatusOr<const HandlerEntry*> HandlerRegistry::FindForRun(absl::string_view target,
                                                                absl::string_view backend_config,
                                                                bool device_first) const {
  absl::StatusOr<const HandlerEntry*> host = Find(target, "Host", backend_config);
  if (host.ok() && !device_first) return host;
  absl::StatusOr<const HandlerEntry*> device = Find(target, "CUDA", backend_config);
  return device.ok() ? device : host;
}

HandlerDeviceOpener HandlerRegistry::Devices(absl::string_view platform) const {
  const auto state = state_.Lock();
  const auto it = state->devices.find(PlatformKey(platform));
  return it == state->devices.end() ? OpenCudaDevice : it->second;
}

std::vector<const HandlerEntry*> HandlerRegistry::List() const {
  std::vector<const HandlerEntry*> result;
  const auto state = state_.Lock();
  for (const auto& [key, entry] : state->entries) result.push_back(&entry);
  return result;
}

}  // namespace shardcall
