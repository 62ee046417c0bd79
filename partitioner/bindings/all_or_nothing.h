// SPDX-License-Identifier: Apache-2.0
// Registrations with several parts, such as a plugin's: if one is refused, all are undone.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_ALL_OR_NOTHING_H_
#define SHARDCALL_PARTITIONER_BINDINGS_ALL_OR_NOTHING_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
inline namespace internal {

// Returns the result of `body`. Unless it is OK, the registries (handlers and lowerings may be
// null) are restored. Pointers to earlier entries stay valid.
inline absl::Status AllOrNothing(TargetRegistry* targets, HandlerRegistry* handlers,
                                 LoweringRegistry* lowerings,
                                 absl::FunctionRef<absl::Status()> body) {
  const TargetRegistry targets_before = *targets;
  const size_t handlers_before = handlers == nullptr ? 0 : handlers->size();
  LoweringRegistry lowerings_before;
  if (lowerings != nullptr) lowerings_before = *lowerings;
  const auto restore = [&] {
    targets->Restore(targets_before);
    if (handlers != nullptr) handlers->Rewind(handlers_before);
    if (lowerings != nullptr) *lowerings = lowerings_before;
  };
  absl::Status status;
  try {
    status = body();
  } catch (...) {
    restore();
    throw;
  }
  if (!status.ok()) restore();
  return status;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_ALL_OR_NOTHING_H_
