// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/bytecode/not_converted.h"

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::Status StablehloNotConverted(absl::string_view what) {
  return ToStatus({.code = "E035",
                   .message = absl::StrCat("this StableHLO is not converted: it has ", what),
                   .fix = "Convert it to HLO by a PJRT plugin: --converter=FILE"},
                  absl::StatusCode::kUnimplemented);
}

}  // namespace internal
}  // namespace shardcall
