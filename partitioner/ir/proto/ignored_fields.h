// SPDX-License-Identifier: Apache-2.0
// The fields of XLA's messages that may be dropped: they cannot change what a program means. A
// module is refused (E036) if it has any other field that hlo.proto does not have, or a field that
// is not one of its op.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_IGNORED_FIELDS_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_IGNORED_FIELDS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

struct WireField;

struct IgnoredField {
  absl::string_view message;  // as hlo.proto names it
  uint32_t number;            // 0: every field that hlo.proto does not have
  bool only_empty;            // a message or bytes, and only if it holds nothing
  absl::string_view reason;
};

inline constexpr IgnoredField kIgnoredFields[] = {
    {"HloInstructionProto", 101, true,
     "block_scaling_config: XLA writes an empty one on every dot and convolution, which says that "
     "nothing is scaled"},
    {"OpMetadata", 0, false, "where an instruction comes from; no value depends on it"},
    {"StackFrameIndexProto", 0, false, "source locations"},
    {"StackFrameIndexProtoFileLocation", 0, false, "source locations"},
    {"StackFrameIndexProtoStackFrame", 0, false, "source locations"},
    {"StatisticsViz", 0, false, "numbers for the display of a graph"},
    {"Statistic", 0, false, "numbers for the display of a graph"},
    {"OriginalValueProto", 0, false, "which value of the original program this was, for debuggers"},
    {"OriginalValueElementProto", 0, false, "the same"},
    {"OriginalArrayProto", 0, false, "the same"},
    {"OriginalValueRecoveryTableProto", 0, false, "how debuggers recompute original values"},
    {"OriginalValueRecoveryTableProtoEntry", 0, false, "the same"},
    {"HloSnapshot", 0, false, "what was recorded of a run, beside the program"},
};

// The fields of HloInstructionProto that hlo.proto has, and that may be dropped where the op has no
// such field.
inline constexpr IgnoredField kFieldsOfOtherOps[] = {
    {"HloInstructionProto", 45, false, "all_reduce_id: read as channel_id"},
    {"HloInstructionProto", 49, false, "replica_groups: read as collective_device_list"},
    {"HloInstructionProto", 88, false, "original_value: for debuggers"},
    {"HloInstructionProto", 99, false, "backend_config_payload: read as backend_config"},
};

// The row of a field that hlo.proto does not have; null if there is none.
const IgnoredField* FindIgnored(absl::Span<const IgnoredField> rows, absl::string_view message,
                                const WireField& field);

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_IGNORED_FIELDS_H_
