// SPDX-License-Identifier: Apache-2.0
// Makes an instruction's interned record from the fields of its message.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_RECORD_READER_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_RECORD_READER_H_

#include <vector>

#include "partitioner/ir/proto/hlo.pb.h"
#include "shardcall/partitioner/ir/attribute_records.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/proto/message_faults.h"
#include "shardcall/partitioner/ir/proto/value_reader.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

class RecordReader {
 public:
  // `p`, `operands` and `called`: the current message, its operands (in `module`), and the
  // computations that it calls. All must outlive the reader.
  RecordReader(MessageFaults* faults, ValueReader* values, const Module* module,
               const hlo_pb::HloInstructionProto* p, const std::vector<InstrId>* operands,
               const std::vector<CompId>* called)
      : faults_(*faults),
        values_(*values),
        module_(*module),
        context_(module->context()),
        p_(*p),
        operands_(*operands),
        called_(*called) {}
  // The interned record of the current message. False after an error, which `faults` holds.
  bool Read(Opcode opcode, const Attributes** out);

 private:
  // Reads the fields by the schema (record_fields.h), for records without an overload below.
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
  // record_reader_own.cc
  bool Read(RecordType<ResultAccuracyAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<ParameterAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<ConstantAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<SliceAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<PadAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<TopKAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<DotAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<ConvolutionAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<OutfeedAttrs>, Opcode opcode, const Attributes** out);
  // record_reader_calls.cc
  bool Read(RecordType<ConditionalAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<CustomCallAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<CollectiveAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<PermuteAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<AsyncAttrs>, Opcode opcode, const Attributes** out);
  bool Read(RecordType<DomainAttrs>, Opcode opcode, const Attributes** out);
  bool ReadOrder(CompareType* type);
  bool ReadGroups(ReplicaGroups* out);
  bool OneDimension(int64_t* out);
  // Fails unless the instruction calls exactly `n` computations.
  bool Calls(size_t n);

  MessageFaults& faults_;
  ValueReader& values_;
  const Module& module_;
  Context& context_;
  const hlo_pb::HloInstructionProto& p_;
  const std::vector<InstrId>& operands_;
  const std::vector<CompId>& called_;
  std::vector<Ints> group_lists_;
};

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_RECORD_READER_H_
