// SPDX-License-Identifier: Apache-2.0
// Values that a Module keeps as text, in both directions. The parsing functions return false for
// malformed text.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_TEXT_VALUES_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_TEXT_VALUES_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "partitioner/ir/proto/hlo.pb.h"
#include "shardcall/sharding/shape.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

// `{visualizing_index=0,count=1.5}`; empty without statistics.
std::string StatisticsText(const hlo_pb::StatisticsViz& p);
bool ParseStatistics(absl::string_view text, hlo_pb::StatisticsViz* p);

// `{mode=highest}`, `{tolerance={atol=0.1,rtol=1e-05,ulps=2}}`; empty if default.
std::string AccuracyText(const hlo_pb::ResultAccuracy& p);
bool ParseAccuracy(absl::string_view text, hlo_pb::ResultAccuracy* p);

// `{lhs={sparsity=1x4 dimension=1 stride=1}}`; empty if neither side has any.
std::string SparsityText(const hlo_pb::SparsityConfig& p);
bool ParseSparsity(absl::string_view text, hlo_pb::SparsityConfig* p);

// `{({"a"}, {"b" {1}})}`, with the tuples of `shape`.
std::string OriginText(const hlo_pb::OriginalValueProto& p, const Shape& shape);
bool ParseOrigin(absl::string_view text, hlo_pb::OriginalValueProto* p);
// `{"a" {1}}`
std::string OriginalArrayText(const hlo_pb::OriginalArrayProto& p);

// `{op_name="x" source_line=3}`; a payload only if it is inline.
std::string MetadataText(const hlo_pb::OpMetadata& p);
bool ParseMetadata(absl::string_view text, hlo_pb::OpMetadata* p);

// `{{0}: (1, {})}`
bool ParseAliasing(absl::string_view text,
                   google::protobuf::RepeatedPtrField<hlo_pb::OutputOperandAliasing>* out);

// `{ {"x" {0}} : {"y"}, "module" .. }`. Calls `read` with the text of each recovery module, and
// returns false if it does.
bool ParseRecoveryTable(
    absl::string_view text, hlo_pb::OriginalValueRecoveryTableProto* p,
    const std::function<bool(const std::string& module, hlo_pb::HloModuleProto*)>& read);

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_TEXT_VALUES_H_
