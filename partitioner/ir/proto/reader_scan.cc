// SPDX-License-Identifier: Apache-2.0
// The first pass over the bytes. Finds the module in the enclosing messages, its computations, and
// the ids of instructions, by which reader_order.cc orders them.
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/proto/reader.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {
namespace {

// Field numbers that the scans below look for.
constexpr uint32_t kModuleComputations = 3;
constexpr uint32_t kComputationInstructions = 2;
constexpr uint32_t kInstructionOpcode = 2, kInstructionId = 35, kOperandIds = 36, kControlIds = 37,
                   kCalledIds = 38;
constexpr uint32_t kHloModule = 1, kSnapshotHlo = 1;

// The first field with that number; what follows it is not read.
bool FirstBytes(absl::string_view message, uint32_t number, absl::string_view* out) {
  WireScanner scanner(message);
  WireField field;
  while (scanner.Next(&field)) {
    if (field.number == number && field.wire == Wire::kBytes) return *out = field.payload, true;
  }
  return false;
}

// Whether the first computation's first instruction has an opcode.
bool IsModule(absl::string_view bytes) {
  absl::string_view computation, instruction, opcode;
  Opcode known;
  return FirstBytes(bytes, kModuleComputations, &computation) &&
         FirstBytes(computation, kComputationInstructions, &instruction) &&
         FirstBytes(instruction, kInstructionOpcode, &opcode) && OpcodeFromText(opcode, &known);
}

// Takes field `number` out of a message: its bytes go to *inner, other fields to *rest. A field
// that occurs several times is one message in parts, which are joined in *storage.
bool TakeOut(absl::string_view bytes, uint32_t number, std::string* storage,
             absl::string_view* inner, std::string* rest) {
  WireScanner scanner(bytes);
  WireField field;
  bool found = false;
  while (scanner.Next(&field)) {
    if (field.number != number || field.wire != Wire::kBytes) {
      rest->append(field.record.data(), field.record.size());
    } else if (!found) {
      *inner = field.payload;
      found = true;
    } else {
      if (storage->empty()) storage->assign(inner->data(), inner->size());
      storage->append(field.payload.data(), field.payload.size());
      *inner = *storage;
    }
  }
  return scanner.fault().empty();
}

}  // namespace

// Unwraps the module's bytes from the enclosing messages.
bool Reader::Unwrap(absl::string_view* bytes) {
  absl::string_view hlo, module;
  // A snapshot's field 1 is an HloProto, whose field 1 is a module; a module's
  // own field 1 is its name.
  const bool is_module = IsModule(*bytes);
  const bool has_inner = !is_module && FirstBytes(*bytes, kHloModule, &hlo);
  if (has_inner && IsModule(hlo)) {
    source_->form = ProtoForm::kHlo;
  } else if (has_inner && FirstBytes(hlo, kHloModule, &module) && IsModule(module)) {
    source_->form = ProtoForm::kSnapshot;
  }
  std::string* storage = &header_bytes_;  // used if the message is in parts, which is rare
  if (source_->form == ProtoForm::kSnapshot) {
    std::string parts;
    if (!TakeOut(*bytes, kSnapshotHlo, &parts, &hlo, &source_->snapshot_rest) || !parts.empty()) {
      return faults_.FailBytes(hlo_pb::HloSnapshot::descriptor(), *bytes);
    }
    *bytes = hlo;
  }
  if (source_->form != ProtoForm::kModule) {
    const absl::string_view all = *bytes;
    if (!TakeOut(all, kHloModule, storage, bytes, &source_->hlo_rest)) {
      return faults_.FailBytes(hlo_pb::HloProto::descriptor(), all);
    }
  }
  return true;
}

bool Reader::Scan(absl::string_view bytes) {
  WireScanner scanner(bytes);
  WireField field;
  std::string header;
  while (scanner.Next(&field)) {
    if (field.number != kModuleComputations || field.wire != Wire::kBytes) {
      header.append(field.record.data(), field.record.size());
      continue;
    }
    faults_.computation = static_cast<int>(computations_.size());
    if (!ScanComputation(field.payload)) return false;
  }
  faults_.computation = -1;
  if (!scanner.fault().empty())
    return faults_.FailBytes(hlo_pb::HloModuleProto::descriptor(), bytes);
  if (!ParseMessage(header, &header_)) {
    return faults_.FailBytes(hlo_pb::HloModuleProto::descriptor(), header);
  }
  header_bytes_ = std::move(header);
  if (computations_.empty()) {
    return faults_.Fail("E030", "The bytes hold no computation", "",
                        "an HloModuleProto, an HloProto or an HloSnapshot", "",
                        "HLO text has the ending .hlo or .txt");
  }
  return true;
}

bool Reader::ScanComputation(absl::string_view bytes) {
  auto c = std::make_unique<ComputationBytes>();
  WireScanner scanner(bytes);
  WireField field;
  while (scanner.Next(&field)) {
    if (field.number != kComputationInstructions || field.wire != Wire::kBytes) {
      c->header_bytes.append(field.record.data(), field.record.size());
      continue;
    }
    faults_.instruction = static_cast<int>(c->instructions.size());
    if (!ScanInstruction(field.payload, c.get())) return false;
  }
  faults_.instruction = -1;
  if (!scanner.fault().empty())
    return faults_.FailBytes(hlo_pb::HloComputationProto::descriptor(), bytes);
  if (!ParseMessage(c->header_bytes, &c->header)) {
    return faults_.FailBytes(hlo_pb::HloComputationProto::descriptor(), c->header_bytes);
  }
  if (c->instructions.empty()) {
    return faults_.Fail("E031", "A computation has no instructions", "instructions", "1 or more");
  }
  if (!computation_positions_.try_emplace(c->header.id(), faults_.computation).second) {
    return faults_.Fail("E031", "Two computations have one id", "id", "an id of its own",
                        absl::StrCat(c->header.id()));
  }
  if (!c->positions.contains(c->header.root_id())) {
    return faults_.Fail("E031", "The root is not there", "root_id", "the id of an instruction",
                        absl::StrCat(c->header.root_id()));
  }
  computations_.push_back(std::move(c));
  return true;
}

// Reads only the ids, which determine the order of instructions and computations.
bool Reader::ScanInstruction(absl::string_view bytes, ComputationBytes* c) {
  InstructionBytes i;
  i.bytes = bytes;
  WireScanner scanner(bytes);
  WireField field;
  bool ok = true;
  while (ok && scanner.Next(&field)) {
    switch (field.number) {
      case kInstructionId:
        if (field.wire == Wire::kVarint) i.id = static_cast<int64_t>(field.value);
        break;
      case kOperandIds: ok = AppendIntegers(field, &i.operands); break;
      case kControlIds: ok = AppendIntegers(field, &i.controls); break;
      case kCalledIds: ok = AppendIntegers(field, &i.called); break;
      default: break;
    }
  }
  if (!ok || !scanner.fault().empty()) {
    return faults_.FailBytes(hlo_pb::HloInstructionProto::descriptor(), bytes);
  }
  if (!c->positions.try_emplace(i.id, faults_.instruction).second) {
    return faults_.Fail("E031", "Two instructions of a computation have one id", "id",
                        "an id of its own", absl::StrCat(i.id));
  }
  c->instructions.push_back(std::move(i));
  return true;
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
