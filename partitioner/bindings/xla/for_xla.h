// SPDX-License-Identifier: Apache-2.0
// What XLA is given of a per-device module, so that its numbers are the module's.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_FOR_XLA_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_FOR_XLA_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// A module that means the same as `module` and keeps clear of what XLA gets wrong, where our own
// runtime does not: maxima and minima across devices that lose a NaN (pass `ordered-extrema`). For
// `platform` "Host", by kernels/ffi/platform.h, also of what it does slowly (`outer-collectives`,
// `combined-reductions`), and with calls that run as ops there (ir/build/expanded_calls.h).
// None if `module` needs no change. Instructions have other ids.
absl::StatusOr<std::optional<Module>> ForXla(const Module& module, absl::string_view platform);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_FOR_XLA_H_
