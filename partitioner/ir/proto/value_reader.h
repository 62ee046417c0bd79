// SPDX-License-Identifier: Apache-2.0
// Reads shapes, literals, shardings and smaller values from messages.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_VALUE_READER_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_VALUE_READER_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "partitioner/ir/proto/hlo.pb.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/proto/message_faults.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/sharding/base/utf8.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

using Repeated = google::protobuf::RepeatedField<int64_t>;
inline Ints IntsOf(const Repeated& field) { return Ints(field.data(), field.size()); }

// All functions return false after an error, which `faults` holds.
class ValueReader {
 public:
  ValueReader(MessageFaults* faults, Context* context) : faults_(*faults), context_(*context) {}

  // value_reader.cc. `field`: the name of the message's field, for errors.
  bool ReadShape(const hlo_pb::ShapeProto& p, absl::string_view field, const Shape** out);
  bool ReadWindow(const hlo_pb::Window& p, Window* out);
  bool DimLabels(const hlo_pb::ConvolutionDimensionNumbers& p, Text* out);
  bool Precision(const hlo_pb::PrecisionConfig& p, Text* precision, Text* algorithm);
  bool Aliasing(const google::protobuf::RepeatedPtrField<hlo_pb::OutputOperandAliasing>& p,
                Text* out);
  // The number of one of `words`, and that word.
  bool WordNumber(absl::string_view field, int64_t value, Words words, int* out);
  bool Word(absl::string_view field, int64_t value, Words words, Text* out);
  // Text that must be UTF-8, copied to the Context.
  bool Utf8(absl::string_view text, absl::string_view field, absl::string_view* out);
  Text Keep(absl::string_view text) { return context_.arena().Copy(text); }

  // value_reader_literal.cc
  bool ReadLiteral(const hlo_pb::LiteralProto& p, absl::string_view field, const Literal** out);

  // value_reader_sharding.cc
  bool ReadSharding(const hlo_pb::OpSharding& p, absl::string_view field, const HloSharding** out);
  bool MeshText(const hlo_pb::MeshProto& p, absl::string_view field, std::string* out);
  bool AxesText(const hlo_pb::MeshProto& mesh,
                const google::protobuf::RepeatedPtrField<hlo_pb::AxisRefProto>& axes,
                std::string* out);

 private:
  bool ReadArrayShape(const hlo_pb::ShapeProto& p, absl::string_view field, const Shape** out);
  bool LayoutSuffix(const hlo_pb::LayoutProto& p, absl::string_view field, std::string* out);
  bool ReadArrayLiteral(const hlo_pb::LiteralProto& p, const Shape* shape, absl::string_view field,
                        const Literal** out);
  bool ShardingText(const hlo_pb::OpSharding& p, std::string* out);
  bool NamedText(const hlo_pb::NamedShardingProto& p, std::string* out);

  MessageFaults& faults_;
  Context& context_;
  absl::flat_hash_map<std::string, const HloSharding*> sharding_memo_;
};

using hlo_text::IsName;

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_VALUE_READER_H_
