// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/guard/fault.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::Status HandlerFault(const HandlerContext& context, absl::string_view code,
                          std::string message, absl::StatusCode status, std::string fix) {
  Diagnostic d{.code = std::string(code), .message = std::move(message), .fix = std::move(fix)};
  if (!context.instruction.empty()) d.where = absl::StrCat("%", context.instruction);
  return ToStatus(d, status);
}

}  // namespace internal
}  // namespace shardcall
