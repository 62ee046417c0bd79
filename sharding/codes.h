// SPDX-License-Identifier: Apache-2.0
// The table of diagnostics, codes.inc: what each code is about, an example of its
// text, and what to do about it. DIAGNOSTICS.md is made from the same rows.
#ifndef SHARDCALL_SHARDING_CODES_H_
#define SHARDCALL_SHARDING_CODES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {

struct CodeInfo {
  absl::string_view code;     // "E101"
  absl::string_view about;    // "a custom call without a sharding rule ..."
  absl::string_view example;  // as it is printed, without code and fix
  absl::string_view fix;
};

// By code: errors, then warnings.
absl::Span<const CodeInfo> AllCodes();
// Null for an unknown code.
const CodeInfo* FindCode(absl::string_view code);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_CODES_H_
