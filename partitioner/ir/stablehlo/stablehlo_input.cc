// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/stablehlo_input.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode_codes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

bool IsMlirBytecode(absl::string_view bytes) {
  return absl::StartsWith(bytes, stablehlo::codes::kMagic);
}

bool LooksLikeStablehlo(absl::string_view bytes) {
  if (IsMlirBytecode(bytes)) return true;
  // Text may begin with comments, and with aliases of locations, attributes and types.
  while (true) {
    bytes = absl::StripLeadingAsciiWhitespace(bytes);
    if (!absl::StartsWith(bytes, "//") && !absl::StartsWith(bytes, "#") &&
        !absl::StartsWith(bytes, "!")) {
      break;
    }
    const size_t end = bytes.find('\n');
    if (end == absl::string_view::npos) return false;
    bytes.remove_prefix(end);
  }
  for (absl::string_view start : {"module", "builtin.module", "\"builtin.module\"", "func.func"}) {
    if (!absl::StartsWith(bytes, start)) continue;
    const absl::string_view rest = bytes.substr(start.size());
    return !rest.empty() && (absl::ascii_isspace(rest[0]) || rest[0] == '{' || rest[0] == '(');
  }
  return false;
}

int64_t StablehloPartitions(absl::string_view bytes) {
  const std::string attribute = absl::StrCat(kMhloNumPartitions, " = ");
  const size_t at = bytes.find(attribute);
  if (IsMlirBytecode(bytes) || at == absl::string_view::npos) return 0;
  const absl::string_view rest = bytes.substr(at + attribute.size());
  int64_t number = 0;
  return absl::SimpleAtoi(rest.substr(0, rest.find_first_not_of("0123456789")), &number) ? number
                                                                                         : 0;
}

absl::Status StablehloIsNotHlo(absl::string_view file_name) {
  return ToStatus({.code = "E035",
                   .message = "StableHLO is not read here",
                   .where = std::string(file_name),
                   .expected = "HLO, as text or binary",
                   .found = "an MLIR module",
                   .fix = "Have a PJRT plugin convert it: --converter=FILE of the command, "
                          "pjrt::Converter of the library"});
}

}  // namespace internal
}  // namespace shardcall
