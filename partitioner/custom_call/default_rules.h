// SPDX-License-Identifier: Apache-2.0
// Rules that are known for the targets of others, so that programs with them need no registration.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_DEFAULT_RULES_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_DEFAULT_RULES_H_

#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

// The source of such rules (TargetRule::source). A registration of another source, before or
// after, takes the place of one of these; between other sources that is E105.
inline constexpr absl::string_view kDefaultSource = "jaxlib";

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_DEFAULT_RULES_H_
