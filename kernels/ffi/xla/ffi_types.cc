// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/xla/ffi_types.h"

#include <functional>
#include <map>
#include <mutex>

#include "absl/container/node_hash_map.h"
#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/shardcall_ffi.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/process_lock.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

constexpr char kDeviceType[] = "shardcall.Device";

struct Types {
  absl::node_hash_map<int64_t, FfiType> by_id;  // nodes: pointers stay valid
  std::map<std::string, int64_t, std::less<>> by_name;
  int64_t last = 0;
};

Types& All() {
  return MadeAtFirstUse([] {
    auto* made = new Types;
    // The type of the device, for handlers that use its name or its number.
    made->by_name[kDeviceType] = SHARDCALL_FFI_DEVICE;
    made->by_id[SHARDCALL_FFI_DEVICE] = {kDeviceType, nullptr};
    return made;
  });
}

absl::Status Refused(absl::string_view name, std::string expected, std::string found,
                     absl::StatusCode code = absl::StatusCode::kAlreadyExists) {
  const std::string what =
      name.empty() ? "an FFI type without a name" : absl::StrCat("FFI type \"", name, "\"");
  return ToStatus({.code = "E141",
                   .message = absl::StrCat(what, " cannot be registered"),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "Give every type a name of its own, and its id as it was returned"},
                  code);
}

}  // namespace

absl::StatusOr<int64_t> RegisterFfiType(absl::string_view name, int64_t id, FfiDeleter deleter) {
  if (name.empty() || id < 0) {
    return Refused(name, "a name, and an id of 0 or one that was returned",
                   name.empty() ? "no name" : absl::StrCat("id ", id),
                   absl::StatusCode::kInvalidArgument);
  }
  Types& types = All();
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  auto known = types.by_name.find(name);
  if (known != types.by_name.end()) {
    FfiType& type = types.by_id[known->second];
    if (id != 0 && id != known->second) {
      return Refused(name, absl::StrCat("id ", known->second), absl::StrCat("id ", id));
    }
    // 0.1 registers only names, so a user-data type may be registered first without its deleter.
    if (type.deleter == nullptr) type.deleter = deleter;
    if (deleter != nullptr && type.deleter != deleter) {
      return Refused(name, "the deleter that it has", "another one");
    }
    return known->second;
  }
  if (id != 0) {
    auto taken = types.by_id.find(id);
    if (taken != types.by_id.end()) {
      return Refused(name, "an id that is free",
                     absl::StrCat("id ", id, ", which is of \"", taken->second.name, "\""));
    }
  } else {
    do {
      id = ++types.last;
    } while (types.by_id.contains(id));
  }
  types.by_name[std::string(name)] = id;
  types.by_id[id] = FfiType{std::string(name), deleter};
  return id;
}

const FfiType* FindFfiType(int64_t id) {
  Types& types = All();
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  auto it = types.by_id.find(id);
  return it == types.by_id.end() ? nullptr : &it->second;
}

}  // namespace shardcall
