// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/xla/ffi_error.h"

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/process_lock.h"

namespace shardcall {
inline namespace internal {
namespace {

struct LiveErrors {
  absl::flat_hash_map<const void*, std::unique_ptr<abi::Error>> errors;
  uintptr_t last = 0;
};

// One table for all contexts, since the C API passes no context when an error is made.
LiveErrors& Live() {
  return MadeAtFirstUse([] { return new LiveErrors; });
}

std::unique_ptr<abi::Error> Extract(const void* error) {
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  auto it = Live().errors.find(error);
  if (it == Live().errors.end()) return nullptr;
  std::unique_ptr<abi::Error> taken = std::move(it->second);
  Live().errors.erase(it);
  return taken;
}

}  // namespace

abi::Error* NewFfiError(int code, absl::string_view message) {
  const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  auto error = std::make_unique<abi::Error>();
  error->code = known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown;
  error->message = std::string(message);
  // A handle is a number, not an address: a reused address would let a second destroy hit another
  // error.
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  auto* const handle = reinterpret_cast<abi::Error*>(++Live().last << 4);
  Live().errors[handle] = std::move(error);
  return handle;
}

const abi::Error* FindFfiError(const void* error) {
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  auto it = Live().errors.find(error);
  return it == Live().errors.end() ? nullptr : it->second.get();
}

bool DestroyFfiError(const void* error) { return Extract(error) != nullptr; }

absl::Status TakeFfiError(const void* error) {
  if (error == nullptr) return absl::OkStatus();
  const std::unique_ptr<abi::Error> taken = Extract(error);
  return taken == nullptr ? absl::DataLossError("") : absl::Status(taken->code, taken->message);
}

}  // namespace internal
}  // namespace shardcall
