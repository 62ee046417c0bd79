// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/proto/reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/started_calls.h"
#include "shardcall/partitioner/ir/proto/ignored_fields.h"
#include "shardcall/partitioner/ir/proto/writer.h"
#include "shardcall/partitioner/ir/stablehlo/stablehlo_input.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {
namespace {

// Sorts by key. If a key is repeated, the last entry counts.
void SortMap(hlo_pb::FrontendAttributes* f) {
  std::stable_sort(f->mutable_map()->begin(), f->mutable_map()->end(),
                   [](const auto& a, const auto& b) { return a.key() < b.key(); });
}

}  // namespace

Module Reader::TakeModule() {
  module_.KeepProtoSource(std::move(source_));
  return std::move(module_);
}

bool Reader::ReadComputation(ComputationBytes* c) {
  faults_.instruction = -1;
  if (!OrderInstructions(c)) return false;
  names_.clear();
  next_number_.clear();
  ids_.assign(c->instructions.size(), InstrId());
  for (int k : c->order) {
    faults_.instruction = k;
    if (!ReadInstruction(c, c->instructions[k])) {
      // As in Run, with the name of the instruction.
      faults_.RefuseUnknownFields(hlo_pb::HloInstructionProto::descriptor(),
                                  c->instructions[k].bytes);
      return false;
    }
  }
  faults_.instruction = -1;
  module_.SetRoot(c->comp, ids_[c->positions.at(c->header.root_id())]);
  absl::string_view thread;
  if (!values_.Utf8(c->header.execution_thread(), "execution_thread", &thread)) return false;
  if (thread != "main") module_.mutable_comp(c->comp).execution_thread = std::string(thread);
  const auto& parameters = module_.comp(c->comp).parameters;
  for (size_t k = 0; k < parameters.size(); ++k) {
    if (parameters[k].valid()) continue;
    return faults_.Fail("E013", "A parameter number is missing", "instructions",
                        absl::StrCat("parameter ", k, " of ", parameters.size()));
  }
  // Keep the order of the message if it was changed; the writer cannot derive it from the module.
  if (!std::is_sorted(c->order.begin(), c->order.end())) {
    source_->instruction_order[c->comp.value] = ids_;
  }
  instruction_ids_[faults_.computation] = ids_;
  return true;
}

bool Reader::Run(absl::string_view bytes) {
  if (ReadAll(bytes)) return true;
  // The error may follow from a field that is not known, unless the bytes are damaged.
  const absl::string_view code = DiagnosticCode(status());
  if (code == "E030" || code == "E036") return false;
  faults_.computation = faults_.instruction = -1;
  const auto* type = source_->form == ProtoForm::kModule ? hlo_pb::HloModuleProto::descriptor()
                     : source_->form == ProtoForm::kHlo  ? hlo_pb::HloProto::descriptor()
                                                         : hlo_pb::HloSnapshot::descriptor();
  faults_.RefuseUnknownFields(type, bytes);
  return false;
}

bool Reader::ReadAll(absl::string_view bytes) {
  if (bytes.size() > INT32_MAX) {
    return faults_.Fail("E030", "The message is too large", "", "less than 2 GiB",
                        absl::StrCat(bytes.size(), " bytes"), "write the module as text");
  }
  std::vector<int> order;
  faults_.looks_like_text = !bytes.empty() && !LooksLikeProto(bytes);
  if (!Unwrap(&bytes)) return false;
  const std::string parts = std::move(header_bytes_);  // `bytes` may point into it
  if (!parts.empty()) bytes = parts;
  if (!Scan(bytes) || !OrderComputations(&order) || !ReadHeader()) return false;
  names_.clear();
  size_t instructions = 0;
  for (int k : order) {
    ComputationBytes& c = *computations_[k];
    faults_.computation = k;
    absl::string_view name;
    if (!ReadName(c.header.name(), CompId(), &name)) return false;
    c.comp = module_.AddComputation(name);
    source_->computation_ids.push_back(c.header.id());
    instructions += c.instructions.size();
  }
  for (const auto& c : computations_) source_->computation_order.push_back(c->comp);
  module_.Reserve(instructions, 2 * instructions);
  instruction_ids_.resize(computations_.size());
  for (int k : order) {
    faults_.computation = k;
    if (!ReadComputation(computations_[k].get())) return false;
  }
  return ReadEntry() && CheckEnclosing() && KeepResidues();
}

// Refuses an instruction some of whose fields are not written back, and are not in the table of
// those that may be dropped.
bool Reader::CheckDropped(absl::string_view bytes, const Residue& residue) {
  const auto* type = hlo_pb::HloInstructionProto::descriptor();
  if (!faults_.RefuseUnknownFields(type, bytes)) return false;
  for (uint32_t number : residue.Dropped()) {
    WireField field;
    field.number = number;
    if (type->FindFieldByNumber(static_cast<int>(number)) != nullptr &&
        FindIgnored(kFieldsOfOtherOps, std::string(type->name()), field) == nullptr) {
      return faults_.FailForeignField(type, number, p_.opcode());
    }
  }
  return true;
}

// The messages around the module.
bool Reader::CheckEnclosing() {
  return faults_.RefuseUnknownFields(hlo_pb::HloProto::descriptor(), source_->hlo_rest) &&
         faults_.RefuseUnknownFields(hlo_pb::HloSnapshot::descriptor(), source_->snapshot_rest);
}

// Writes everything back, and keeps the fields that come out differently. Both sides are compared
// as the protobuf library serialises them, since maps have no order and numbers need not be packed.
bool Reader::KeepResidues() {
  Writer writer(module_, source_.get());
  std::string written, canonical;
  Residue residue;
  const auto compare = [&](google::protobuf::MessageLite* read) {
    read->SerializeToString(&canonical);
    residue = Residue::Between(canonical, written);
    return !residue.empty();
  };
  bool ok = writer.Prepare();
  hlo_pb::HloInstructionProto instruction;
  for (size_t k = 0; ok && k < computations_.size(); ++k) {
    ComputationBytes& c = *computations_[k];
    for (size_t j = 0; ok && j < c.instructions.size(); ++j) {
      const InstrId id = instruction_ids_[k][j];
      instruction.Clear();
      ok = writer.WriteInstruction(id, &instruction);
      if (!ok) break;
      instruction.SerializeToString(&written);
      if (c.instructions[j].bytes == written) continue;
      p_.Clear();
      ParseMessage(c.instructions[j].bytes, &p_);
      if (p_.has_frontend_attributes()) SortMap(p_.mutable_frontend_attributes());
      // The type or the order of a comparison, whichever the version of XLA did not write, is added
      // for the readers of other versions.
      if (p_.comparison_type().empty()) p_.set_comparison_type(instruction.comparison_type());
      if (p_.comparison_order().empty()) p_.set_comparison_order(instruction.comparison_order());
      if (!compare(&p_)) continue;
      faults_.computation = static_cast<int>(k);
      faults_.instruction = static_cast<int>(j);
      if (!CheckDropped(c.instructions[j].bytes, residue)) return false;
      source_->instructions[id.value] = std::move(residue);
    }
    faults_.computation = static_cast<int>(k);
    faults_.instruction = -1;
    hlo_pb::HloComputationProto header;
    ok = ok && writer.WriteComputationHeader(c.comp, &header);
    header.SerializeToString(&written);
    if (!ok || !compare(&c.header)) continue;
    if (!faults_.RefuseUnknownFields(hlo_pb::HloComputationProto::descriptor(), c.header_bytes)) {
      return false;
    }
    source_->computations[c.comp.value] = std::move(residue);
  }
  faults_.computation = -1;
  hlo_pb::HloModuleProto header;
  ok = ok && writer.WriteHeader(&header);
  if (!ok) {
    faults_.set_status(writer.status());
    return false;
  }
  header.SerializeToString(&written);
  if (header_.has_frontend_attributes()) SortMap(header_.mutable_frontend_attributes());
  auto* sequences =
      header_.has_schedule() ? header_.mutable_schedule()->mutable_sequences() : nullptr;
  if (sequences != nullptr) {
    std::stable_sort(sequences->begin(), sequences->end(),
                     [](const auto& a, const auto& b) { return a.key() < b.key(); });
  }
  if (!compare(&header_)) return true;
  source_->module = std::move(residue);
  return faults_.RefuseUnknownFields(hlo_pb::HloModuleProto::descriptor(), header_bytes_);
}

const Shape* Reader::ShapeOf(absl::string_view bytes) {
  hlo_pb::ShapeProto message;
  const Shape* shape = nullptr;
  if (!ParseMessage(bytes, &message)) {
    faults_.FailBytes(hlo_pb::ShapeProto::descriptor(), bytes);
  } else if (!faults_.RefuseUnknownFields(hlo_pb::ShapeProto::descriptor(), bytes) ||
             !values_.ReadShape(message, "", &shape)) {
    return nullptr;
  }
  return shape;
}

const HloSharding* Reader::ShardingOf(absl::string_view bytes) {
  hlo_pb::OpSharding message;
  const HloSharding* sharding = nullptr;
  if (!ParseMessage(bytes, &message)) {
    faults_.FailBytes(hlo_pb::OpSharding::descriptor(), bytes);
  } else if (!faults_.RefuseUnknownFields(hlo_pb::OpSharding::descriptor(), bytes) ||
             !values_.ReadSharding(message, "", &sharding)) {
    return nullptr;
  }
  return sharding;
}

}  // namespace hlo_proto
}  // namespace internal

bool LooksLikeProto(absl::string_view bytes) {
  // A message begins with one of its first three fields, all of them bytes, and soon has control
  // characters, which HLO text does not have.
  if (bytes.empty() || (bytes[0] != 0x0a && bytes[0] != 0x12 && bytes[0] != 0x1a)) return false;
  for (char c : bytes.substr(0, 4096)) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' &&
        c != '\v') {
      return true;
    }
  }
  return false;
}

absl::StatusOr<HloSharding> ReadShardingProto(absl::string_view bytes, absl::string_view what) {
  hlo_proto::Reader reader(what, std::make_shared<Context>());
  const HloSharding* const sharding = reader.ShardingOf(bytes);
  if (sharding == nullptr) return reader.status();
  return *sharding;
}

absl::StatusOr<const Shape*> ReadShapeProto(absl::string_view bytes,
                                            std::shared_ptr<Context> context,
                                            absl::string_view what) {
  hlo_proto::Reader reader(what, std::move(context));
  const Shape* const shape = reader.ShapeOf(bytes);
  if (shape == nullptr) return reader.status();
  return shape;
}

absl::StatusOr<Module> ReadModuleProto(absl::string_view bytes, std::shared_ptr<Context> context,
                                       absl::string_view file_name) {
  hlo_proto::Reader reader(file_name, std::move(context));
  if (!reader.Run(bytes)) {
    SHARDCALL_CHECK(!reader.status().ok());
    if (LooksLikeStablehlo(bytes)) return StablehloIsNotHlo(file_name);
    return reader.status();
  }
  Module module = reader.TakeModule();
  const ProtoForm form = module.proto_source()->form;
  SHARDCALL_ASSIGN_OR_RETURN(module, WithStartedOps(std::move(module)));
  if (module.proto_source() == nullptr) {  // of its ids none is left
    auto source = std::make_shared<ProtoSource>();
    source->form = form;
    module.KeepProtoSource(std::move(source));
  }
  return module;
}

}  // namespace shardcall
