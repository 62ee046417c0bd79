// SPDX-License-Identifier: Apache-2.0
// From a Module to messages: writer.cc (the whole module, order, ids, names), writer_attributes.cc,
// writer_values.cc. Fields are present exactly where XLA writes them, so that messages of equal
// programs are equal field by field. There is one function for each kind of message.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_WRITER_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_WRITER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "partitioner/ir/proto/hlo.pb.h"
#include "shardcall/partitioner/ir/attribute_records.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/proto/source.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

class Writer {
 public:
  // `source`: the ProtoSource of the module, or null.
  Writer(const Module& module, const ProtoSource* source, ProtoOptions options = {})
      : module_(module), source_(source), options_(std::move(options)) {}
  // Must be called first: determines order, ids and names.
  bool Prepare();
  bool WriteInstruction(InstrId id, hlo_pb::HloInstructionProto* p);
  // Writes a computation without its instructions.
  bool WriteComputationHeader(CompId id, hlo_pb::HloComputationProto* p);
  // Writes the module without its computations. Must be called after all instructions, since it
  // lists their payloads.
  bool WriteHeader(hlo_pb::HloModuleProto* p);
  // Writes and serialises the module.
  bool WriteModule(std::string* out);
  const absl::Status& status() const { return status_; }
  bool WriteSharding(const HloSharding& s, hlo_pb::OpSharding* p);
  const hlo_pb::ShapeProto& ShapeOf(const Shape* shape);

 private:
  bool Fail(absl::string_view message, absl::string_view found, absl::string_view fix);
  void MakeNames();
  bool WriteComputation(CompId id, std::string* out);
  // The order in which XLA lists the instructions of a computation.
  std::vector<InstrId> PostOrder(const Computation& c) const;
  bool WriteSchedule(hlo_pb::HloScheduleProto* p);
  void WriteEntryShape(hlo_pb::ProgramShapeProto* p);
  void WriteAliases(hlo_pb::HloModuleProto* p);  // and buffer donors
  bool WriteStack(hlo_pb::StackFrameIndexProto* p);
  bool WriteRecoveryTable(hlo_pb::OriginalValueRecoveryTableProto* p);
  absl::string_view NameOf(InstrId id) const;

  // writer_attributes.cc
  bool WriteAttributes(const Instruction& i, hlo_pb::HloInstructionProto* p);
  template <typename Record>
  bool Write(const Record& record, const Instruction& i, hlo_pb::HloInstructionProto* p);
  template <typename Record>
  bool WriteFields(const Record& record, hlo_pb::HloInstructionProto* p);
  template <typename Row, typename Message, typename T>
  bool WriteField(const Row& row, const Message& message, const T& value,
                  hlo_pb::HloInstructionProto* p);
  bool Write(const ParameterAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const ConstantAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const CompareAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const SliceAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const PadAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const TopKAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const DotAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const ConvolutionAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const CustomCallAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const OutfeedAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const DomainAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const CollectiveAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const PermuteAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool Write(const AsyncAttrs& a, const Instruction& i, hlo_pb::HloInstructionProto* p);
  bool WriteGroups(const ReplicaGroups& g, hlo_pb::HloInstructionProto* p);
  bool WriteListedGroups(const ReplicaGroups& g, hlo_pb::HloInstructionProto* p);
  bool WriteChannel(int64_t channel_id, hlo_pb::HloInstructionProto* p);
  bool WriteRare(const Instruction& i, hlo_pb::HloInstructionProto* p);

  // writer_values.cc
  void WriteShape(const Shape& shape, int depth, hlo_pb::ShapeProto* p);
  void WriteLayout(const Shape& shape, hlo_pb::LayoutProto* p);
  void WriteWindow(const Window& w, hlo_pb::Window* p);
  bool WriteDimLabels(Text labels, hlo_pb::ConvolutionDimensionNumbers* p);
  bool WritePrecision(Text precision, Text algorithm, int operands, hlo_pb::PrecisionConfig* p);
  bool WriteLiteral(const Literal& literal, hlo_pb::LiteralProto* p);
  bool WriteMetadata(const Metadata& m, hlo_pb::OpMetadata* p);
  bool WriteFrontend(const FrontendAttributes& f, hlo_pb::FrontendAttributes* p);
  void WriteNamed(const HloSharding& s, hlo_pb::NamedShardingProto* p);
  void WriteMesh(const Mesh& mesh, absl::Span<const int64_t> list, hlo_pb::MeshProto* p);
  void WriteAxes(const Mesh& mesh, absl::Span<const NamedAxisRef> refs,
                 google::protobuf::RepeatedPtrField<hlo_pb::AxisRefProto>* p);
  // Text that must be UTF-8.
  bool Utf8(absl::string_view text, absl::string_view what, std::string* out);

  const Module& module_;
  const ProtoSource* source_;
  const ProtoOptions options_;
  absl::Status status_;
  std::vector<CompId> order_;
  std::vector<std::vector<InstrId>> instructions_;  // by computation, as written
  std::vector<int64_t> computation_ids_, instruction_ids_;
  std::vector<bool> is_fusion_;
  Arena names_;                                                  // storage of generated names
  absl::flat_hash_map<uint32_t, absl::string_view> made_names_;  // by instruction
  std::vector<absl::string_view> computation_names_;
  std::vector<std::string> payloads_;
  absl::flat_hash_map<std::string, int64_t> payload_index_;
  absl::flat_hash_map<const Shape*, std::unique_ptr<hlo_pb::ShapeProto>> shapes_;
  InstrId at_;  // for diagnostics
};

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_WRITER_H_
