// SPDX-License-Identifier: Apache-2.0
// The reader of modules, shared by its source files: reader.cc (the whole module), reader_scan.cc
// (the enclosing messages, ids), reader_order.cc, reader_header.cc and reader_instruction.cc.
// Instructions are parsed one at a time, so that the memory needed beside the Module does not grow
// with the message.
#ifndef SHARDCALL_PARTITIONER_IR_PROTO_READER_H_
#define SHARDCALL_PARTITIONER_IR_PROTO_READER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "partitioner/ir/proto/hlo.pb.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/proto/message_faults.h"
#include "shardcall/partitioner/ir/proto/record_reader.h"
#include "shardcall/partitioner/ir/proto/source.h"
#include "shardcall/partitioner/ir/proto/value_reader.h"
#include "shardcall/partitioner/ir/proto/wire.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

class Reader {
 public:
  // `level`: nesting depth, as a module can contain recovery modules.
  Reader(absl::string_view file, std::shared_ptr<Context> context, int level = 0)
      : level_(level),
        module_(std::move(context)),
        context_(module_.context()),
        faults_(file, &p_),
        source_(std::make_shared<ProtoSource>()) {}
  bool Run(absl::string_view bytes);
  const absl::Status& status() const { return faults_.status(); }
  Module TakeModule();
  // Reads a single message rather than a module; null after an error.
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

  // reader.cc
  bool ReadAll(absl::string_view bytes);
  bool ReadComputation(ComputationBytes* c);
  bool KeepResidues();
  bool CheckDropped(absl::string_view bytes, const Residue& residue);
  bool CheckEnclosing();

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

  const int level_;
  Module module_;
  Context& context_;

  // The current instruction.
  hlo_pb::HloInstructionProto p_;
  std::vector<InstrId> operands_;
  std::vector<CompId> called_;
  MessageFaults faults_;
  ValueReader values_{&faults_, &context_};
  RecordReader records_{&faults_, &values_, &module_, &p_, &operands_, &called_};

  std::shared_ptr<ProtoSource> source_;

  hlo_pb::HloModuleProto header_;  // without its computations
  std::string header_bytes_;
  std::vector<std::unique_ptr<ComputationBytes>> computations_;
  absl::flat_hash_map<int64_t, int> computation_positions_;

  std::vector<InstrId> ids_;                           // of the current computation, by position
  std::vector<std::vector<InstrId>> instruction_ids_;  // the same for all computations
  absl::flat_hash_set<absl::string_view> names_;       // of the current computation
  absl::flat_hash_map<std::string, int64_t> next_number_;  // next suffix, by repeated name
};

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_PROTO_READER_H_
