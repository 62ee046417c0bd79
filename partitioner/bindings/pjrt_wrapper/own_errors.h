// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_OWN_ERRORS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_OWN_ERRORS_H_

#include <memory>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "shardcall/partitioner/bindings/xla/pjrt_abi.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// PJRT_Errors that the wrapper makes, beside those of the wrapped plugin. They are distinguished
// by their addresses. Thread-safe.
class OwnErrors {
 public:
  // Null for OK. The framework destroys it.
  abi::Error* Make(absl::Status status);
  // Null for an error of the wrapped plugin.
  const absl::Status* Find(const abi::Error* error);
  // False for an error of the wrapped plugin.
  bool Destroy(const abi::Error* error);

 private:
  std::mutex mutex_;
  absl::flat_hash_map<const abi::Error*, std::unique_ptr<absl::Status>> errors_;
};

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_OWN_ERRORS_H_
