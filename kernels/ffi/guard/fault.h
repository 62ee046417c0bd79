// SPDX-License-Identifier: Apache-2.0
// Errors about a call of a handler, as a Status that names the call.
#ifndef SHARDCALL_KERNELS_FFI_GUARD_FAULT_H_
#define SHARDCALL_KERNELS_FFI_GUARD_FAULT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace shardcall {
struct HandlerContext;
}  // namespace shardcall

namespace shardcall {
inline namespace internal {

// Fixes of E317: for a handler that says it failed, and for one that throws.
inline constexpr char kFailedFix[] = "Do what the message asks for, which is the handler's own";
inline constexpr char kThrewFix[] = "Catch it in the handler, and return it as an error";

// The diagnostic `code` with the call's instruction.
absl::Status HandlerFault(const HandlerContext& context, absl::string_view code,
                          std::string message, absl::StatusCode status, std::string fix);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_GUARD_FAULT_H_
