// SPDX-License-Identifier: Apache-2.0
// The reader's state, shared by its source files: reader.cc (the whole),
// reader_scan.cc (the enclosing messages, ids), reader_order.cc, reader_header.cc,
// reader_instruction.cc, reader_attributes.cc (records), reader_own.cc and reader_calls.cc
// (records that the schema does not say whole), reader_values.cc (shapes and smaller values),
// reader_literal.cc and reader_sharding.cc. Instructions are parsed one at a time, so
// that the memory needed beside the Module does not grow with the message.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_READER_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_READER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "partitioner/ir/proto/hlo.pb.h"
#include "shardcall/partitioner/ir/attribute_records.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/proto/source.h"
#include "shardcall/partitioner/ir/proto/wire.h"

namespace shardcall::hlo_proto {

using Repeated = google::protobuf::RepeatedField<int64_t>;
inline Ints IntsOf(const Repeated& field) { return Ints(field.data(), field.size()); }

class Reader {
 public:
  // `level`: how many messages this module stands within.
  Reader(absl::string_view file, std::shared_ptr<Context> context, int level = 0)
      : file_(file),
        level_(level),
        module_(std::move(context)),
        context_(module_.context()),
        source_(std::make_shared<ProtoSource>()) {}
  bool Run(absl::string_view bytes);
  const absl::Status& status() const { return status_; }
  Module TakeModule();
  // One message in place of a module; null after an error.
  const Shape* ShapeOf(absl::string_view bytes);
  const HloSharding* ShardingOf(absl::string_view bytes);

 private:
  struct InstructionBytes {
    absl::string_view bytes;
    int64_t id = 0;
    std::vector<int64_t> operands, controls, called;
  };
  struct ComputationBytes {
    hlo_pb::HloComputationProto header;  // without its instructions
    std::string header_bytes;
    std::vector<InstructionBytes> instructions;
    absl::flat_hash_map<int64_t, int> positions;  // by id
    std::vector<int> order;                       // positions, operands first
    CompId comp;
  };

  // Keeps the first error; always returns false. The place is the instruction
  // or computation at hand and `field`.
  bool Fail(absl::string_view code, absl::string_view message, absl::string_view field = "",
            absl::string_view expected = "", absl::string_view found = "",
            absl::string_view fix = "");
  bool FailBytes(const google::protobuf::Descriptor* type, absl::string_view bytes);
  bool FailEnum(absl::string_view field, int64_t value, Words words);
  bool FailWord(absl::string_view field, absl::string_view word, Words words);

  // reader.cc
  bool ReadComputation(ComputationBytes* c);
  bool KeepResidues();

  // reader_scan.cc
  bool Unwrap(absl::string_view* bytes);
  bool Scan(absl::string_view bytes);
  bool ScanComputation(absl::string_view bytes);
  bool ScanInstruction(absl::string_view bytes, ComputationBytes* c);

  // reader_order.cc
  bool OrderComputations(std::vector<int>* order);
  bool OrderInstructions(ComputationBytes* c);
  bool OrderBySchedule(ComputationBytes* c, Ints ids);

  // reader_header.cc
  bool ReadHeader();
  bool ReadEntry();
  bool ReadStackTables(const hlo_pb::StackFrameIndexProto& p);
  bool ReadFrontend(const hlo_pb::FrontendAttributes& p, absl::string_view field,
                    const FrontendAttributes** out);
  bool ReadRecoveryTable(const hlo_pb::OriginalValueRecoveryTableProto& p, std::string* out);

  // reader_instruction.cc
  bool ReadInstruction(ComputationBytes* c, const InstructionBytes& i);
  bool ReadCommon(const ComputationBytes& c, const InstructionBytes& bytes, Instruction* i);
  bool ReadRare(const InstructionBytes& bytes, InstrId id, Opcode opcode);
  bool ReadMetadata(const hlo_pb::OpMetadata& p, const Metadata** out);
  bool ReadPayload(const hlo_pb::Payload& p, absl::string_view field, absl::string_view* out);
  bool ReadName(absl::string_view name, CompId comp, absl::string_view* out);

  // reader_attributes.cc and reader_fields.h: what the schema says
  bool ReadAttributes(Opcode opcode, const Attributes** out);
  template <typename Record>
  bool Read(RecordType<Record>, Opcode opcode, const Attributes** out);
  template <typename Record>
  bool ReadFields(Record* record);
  template <typename Row, typename Message, typename T>
  bool ReadField(const Row& row, const Message& message, T* to);
  template <typename Row, typename Message, typename T>
  bool ReadWord(const Row& row, const Message& message, T* to);
  bool Read(RecordType<NoneAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<CompareAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<DimensionsAttrs>, Opcode opcode, const Attributes** out);
  // reader_own.cc
  bool Read(RecordType<ResultAccuracyAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<ParameterAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<ConstantAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<SliceAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<PadAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<TopKAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<DotAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<ConvolutionAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<OutfeedAttrs>, Opcode opcode, const Attributes** out);
  // reader_calls.cc
  bool Read(RecordType<ConditionalAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<CustomCallAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<CollectiveAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<PermuteAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<AsyncAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<DomainAttrs>, Opcode opcode, const Attributes** out);
  bool ReadGroups(ReplicaGroups* out);
  bool OneDimension(int64_t* out);
  // The computations that the instruction calls must be `n`.
  bool Calls(size_t n);

  // reader_values.cc
  bool ReadShape(const hlo_pb::ShapeProto& p, absl::string_view field, const Shape** out);
  bool ReadArrayShape(const hlo_pb::ShapeProto& p, absl::string_view field, const Shape** out);
  bool LayoutSuffix(const hlo_pb::LayoutProto& p, absl::string_view field, std::string* out);
  bool ReadWindow(const hlo_pb::Window& p, Window* out);
  bool DimLabels(const hlo_pb::ConvolutionDimensionNumbers& p, Text* out);
  bool Precision(const hlo_pb::PrecisionConfig& p, Text* precision, Text* algorithm);
  bool Aliasing(Text* out);
  bool Word(absl::string_view field, int64_t value, Words words, Text* out);
  // Text that must be UTF-8, copied to the Context.
  bool Utf8(absl::string_view text, absl::string_view field, absl::string_view* out);
  Text Keep(absl::string_view text) { return context_.arena().Copy(text); }

  // reader_literal.cc
  bool ReadLiteral(const hlo_pb::LiteralProto& p, absl::string_view field, const Literal** out);
  bool ReadArrayLiteral(const hlo_pb::LiteralProto& p, const Shape* shape, absl::string_view field,
                        const Literal** out);

  // reader_sharding.cc
  bool ReadSharding(const hlo_pb::OpSharding& p, absl::string_view field, const HloSharding** out);
  bool ShardingText(const hlo_pb::OpSharding& p, std::string* out);
  bool MeshText(const hlo_pb::MeshProto& p, absl::string_view field, std::string* out);
  bool AxesText(const hlo_pb::MeshProto& mesh,
                const google::protobuf::RepeatedPtrField<hlo_pb::AxisRefProto>& axes,
                std::string* out);
  bool NamedText(const hlo_pb::NamedShardingProto& p, std::string* out);

  std::string file_;
  const int level_;
  bool looks_like_text_ = false;
  absl::Status status_;
  Module module_;
  Context& context_;
  std::shared_ptr<ProtoSource> source_;

  hlo_pb::HloModuleProto header_;  // without its computations
  std::string header_bytes_;
  std::vector<std::unique_ptr<ComputationBytes>> computations_;
  absl::flat_hash_map<int64_t, int> computation_positions_;

  // The instruction at hand.
  hlo_pb::HloInstructionProto p_;
  std::vector<InstrId> operands_;
  std::vector<CompId> called_;
  std::vector<Ints> group_lists_;
  int computation_ = -1, instruction_ = -1;                // positions, for diagnostics
  std::vector<InstrId> ids_;                               // of the computation, by position
  std::vector<std::vector<InstrId>> instruction_ids_;      // the same for all computations
  absl::flat_hash_set<absl::string_view> names_;           // of the computation
  absl::flat_hash_map<std::string, int64_t> next_number_;  // after a name that stands twice
  absl::flat_hash_map<std::string, const HloSharding*> sharding_memo_;
};

// Valid UTF-8, as protobuf asks of strings.
bool IsUtf8(absl::string_view text);
// An identifier of HLO text.
bool IsName(absl::string_view name);

}  // namespace shardcall::hlo_proto

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_READER_H_
