// SPDX-License-Identifier: Apache-2.0
#include "partitioner/ir/proto/reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "partitioner/ir/proto/writer.h"
#include "sharding/status.h"

namespace shardcall {
namespace hlo_proto {
namespace {

// By key; of entries with one key the last counts.
void SortMap(hlo_pb::FrontendAttributes* f) {
  std::stable_sort(f->mutable_map()->begin(), f->mutable_map()->end(),
                   [](const auto& a, const auto& b) { return a.key() < b.key(); });
}

// Field numbers that the scans below look for.
constexpr uint32_t kModuleComputations = 3;
constexpr uint32_t kComputationInstructions = 2;
constexpr uint32_t kInstructionOpcode = 2, kInstructionId = 35, kOperandIds = 36,
                   kControlIds = 37, kCalledIds = 38;
constexpr uint32_t kHloModule = 1, kSnapshotHlo = 1;

// The first field of that number, without asking what follows it.
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

// Takes field `number` out of a message: it to *inner, the others to *rest.
// Several such fields are one message in parts.
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

Module Reader::TakeModule() {
  module_.KeepProtoSource(std::move(source_));
  return std::move(module_);
}

bool Reader::Fail(absl::string_view code, absl::string_view message, absl::string_view field,
                  absl::string_view expected, absl::string_view found, absl::string_view fix) {
  if (!status_.ok()) return false;
  Diagnostic d;
  d.code = std::string(code);
  d.message = std::string(message);
  d.where = file_;
  std::string place;
  if (computation_ >= 0) {
    place = absl::StrCat("computations[", computation_, "]");
    if (instruction_ >= 0) {
      absl::StrAppend(&place, ".instructions[", instruction_, "]");
      if (!p_.name().empty() && p_.name().size() < 200 && IsUtf8(p_.name())) {
        absl::StrAppend(&place, " (%", p_.name(), ")");
      }
    }
  }
  if (!field.empty()) {
    absl::StrAppend(&place, place.empty() ? "" : instruction_ >= 0 ? " " : ".", field);
  }
  if (!place.empty()) absl::StrAppend(&d.where, ": ", place);
  d.expected = std::string(expected);
  d.found = std::string(found);
  d.fix = fix.empty() ? "mend the program that wrote the file, or write the module as text"
                      : std::string(fix);
  status_ = ToStatus(d);
  return false;
}

bool Reader::FailBytes(const google::protobuf::Descriptor* type, absl::string_view bytes) {
  const WireFault fault = FindWireFault(type, bytes);
  if (fault.too_deep) {
    return Fail("E014", "Messages are nested too deeply", fault.path,
                absl::StrCat("at most ", kMaxMessageDepth, " levels"));
  }
  return Fail("E030", "The bytes are not a message of HLO", fault.path, "a whole protobuf message",
              fault.what.empty() ? "bytes that protobuf refuses"
                                 : absl::StrCat(fault.what, ", at byte ", fault.offset),
              looks_like_text_ ? "HLO text has the ending .hlo or .txt: rename the file"
                               : "the file is cut short or damaged: write it again");
}

bool Reader::FailEnum(absl::string_view field, int64_t value, Words words) {
  std::string expected;
  for (size_t k = 0; k < words.size(); ++k) {
    if (words[k].empty()) continue;
    absl::StrAppend(&expected, expected.empty() ? "" : ", ", k, " (", words[k], ")");
  }
  return Fail("E019", "Unknown value of an enumeration", field, expected, absl::StrCat(value));
}

// The module's bytes within what encloses it.
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
  std::string* storage = &header_bytes_;  // rare: a message in parts
  if (source_->form == ProtoForm::kSnapshot) {
    std::string parts;
    if (!TakeOut(*bytes, kSnapshotHlo, &parts, &hlo, &source_->snapshot_rest) || !parts.empty()) {
      return FailBytes(hlo_pb::HloSnapshot::descriptor(), *bytes);
    }
    *bytes = hlo;
  }
  if (source_->form != ProtoForm::kModule) {
    const absl::string_view all = *bytes;
    if (!TakeOut(all, kHloModule, storage, bytes, &source_->hlo_rest)) {
      return FailBytes(hlo_pb::HloProto::descriptor(), all);
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
    computation_ = static_cast<int>(computations_.size());
    if (!ScanComputation(field.payload)) return false;
  }
  computation_ = -1;
  if (!scanner.fault().empty()) return FailBytes(hlo_pb::HloModuleProto::descriptor(), bytes);
  if (!ParseMessage(header, &header_)) {
    return FailBytes(hlo_pb::HloModuleProto::descriptor(), header);
  }
  header_bytes_ = std::move(header);
  if (computations_.empty()) {
    return Fail("E030", "The bytes hold no computation", "",
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
    instruction_ = static_cast<int>(c->instructions.size());
    if (!ScanInstruction(field.payload, c.get())) return false;
  }
  instruction_ = -1;
  if (!scanner.fault().empty()) return FailBytes(hlo_pb::HloComputationProto::descriptor(), bytes);
  if (!ParseMessage(c->header_bytes, &c->header)) {
    return FailBytes(hlo_pb::HloComputationProto::descriptor(), c->header_bytes);
  }
  if (c->instructions.empty()) {
    return Fail("E031", "A computation has no instructions", "instructions", "1 or more");
  }
  if (!computation_positions_.try_emplace(c->header.id(), computation_).second) {
    return Fail("E031", "Two computations have one id", "id", "an id of its own",
                absl::StrCat(c->header.id()));
  }
  if (!c->positions.contains(c->header.root_id())) {
    return Fail("E031", "The root is not there", "root_id", "the id of an instruction",
                absl::StrCat(c->header.root_id()));
  }
  computations_.push_back(std::move(c));
  return true;
}

// Only the ids: the order of instructions and computations follows from them.
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
    return FailBytes(hlo_pb::HloInstructionProto::descriptor(), bytes);
  }
  if (!c->positions.try_emplace(i.id, instruction_).second) {
    return Fail("E031", "Two instructions of a computation have one id", "id",
                "an id of its own", absl::StrCat(i.id));
  }
  c->instructions.push_back(std::move(i));
  return true;
}

// Callees before callers; the order of the message where it has that already.
bool Reader::OrderComputations(std::vector<int>* order) {
  const int n = static_cast<int>(computations_.size());
  std::vector<std::vector<int>> calls(n);
  for (int k = 0; k < n; ++k) {
    const auto& instructions = computations_[k]->instructions;
    for (size_t j = 0; j < instructions.size(); ++j) {
      for (int64_t id : instructions[j].called) {
        const auto found = computation_positions_.find(id);
        if (found == computation_positions_.end()) {
          computation_ = k;
          instruction_ = static_cast<int>(j);
          return Fail("E031", "Unknown computation", "called_computation_ids",
                      "the id of a computation", absl::StrCat(id));
        }
        calls[k].push_back(found->second);
      }
    }
  }
  enum : char { kNew, kOpen, kDone };
  std::vector<char> state(n, kNew);
  std::vector<std::pair<int, size_t>> stack;
  for (int k = 0; k < n; ++k) {
    if (state[k] != kNew) continue;
    state[k] = kOpen;
    stack.push_back({k, 0});
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      if (next == calls[at].size()) {
        state[at] = kDone;
        order->push_back(at);
        stack.pop_back();
        continue;
      }
      const int callee = calls[at][next++];
      if (state[callee] == kOpen) {
        computation_ = at;
        return Fail("E032", "Computations call each other in a cycle", "",
                    "computations that do not lead back to themselves",
                    absl::StrCat("a call of computations[", callee, "]"));
      }
      if (state[callee] == kNew) {
        state[callee] = kOpen;
        stack.push_back({callee, 0});
      }
    }
  }
  return true;
}

bool Reader::OrderBySchedule(ComputationBytes* c, Ints ids) {
  std::vector<bool> seen(c->instructions.size(), false);
  for (int64_t id : ids) {
    const auto found = c->positions.find(id);
    if (found == c->positions.end() || seen[found->second]) {
      return Fail("E031", "The schedule of a computation is not an order of its instructions",
                  "schedule", "each instruction once", absl::StrCat(id));
    }
    seen[found->second] = true;
    c->order.push_back(found->second);
  }
  return c->order.size() == c->instructions.size() ||
         Fail("E031", "The schedule of a computation is not an order of its instructions",
              "schedule", absl::StrCat(c->instructions.size(), " ids"),
              absl::StrCat(ids.size()));
}

// Operands and control predecessors first, else as in the message.
bool Reader::OrderInstructions(ComputationBytes* c) {
  const int n = static_cast<int>(c->instructions.size());
  if (header_.has_schedule()) {
    for (const hlo_pb::SequenceEntry& e : header_.schedule().sequences()) {
      if (e.key() != c->header.id()) continue;
      c->order.clear();
      if (!OrderBySchedule(c, IntsOf(e.value().instruction_ids()))) return false;
    }
  }
  const bool scheduled = !c->order.empty();
  if (!scheduled) {
    for (int k = 0; k < n; ++k) c->order.push_back(k);
  }
  std::vector<int> place(n);
  for (int k = 0; k < n; ++k) place[c->order[k]] = k;
  bool in_order = true;
  const auto each_before = [&](int k, auto&& visit) {
    const InstructionBytes& i = c->instructions[k];
    for (const auto* list : {&i.operands, &i.controls}) {
      for (int64_t id : *list) {
        const auto found = c->positions.find(id);
        if (found != c->positions.end() && !visit(found->second)) return false;
      }
    }
    return true;
  };
  for (int k = 0; k < n && in_order; ++k) {
    in_order = each_before(k, [&](int before) { return place[before] < place[k]; });
  }
  if (in_order) return true;
  // Depth first, with a stack of (instruction, its unvisited predecessors).
  const std::vector<int> wanted = std::move(c->order);
  c->order.clear();
  enum : char { kNew, kOpen, kDone };
  std::vector<char> state(n, kNew);
  std::vector<int> stack;
  for (int start : wanted) {
    stack.push_back(start);
    while (!stack.empty()) {
      const int k = stack.back();
      if (state[k] != kNew) {
        stack.pop_back();
        if (state[k] == kOpen) c->order.push_back(k);
        state[k] = kDone;
        continue;
      }
      state[k] = kOpen;
      const size_t size = stack.size();
      const bool acyclic = each_before(k, [&](int before) {
        if (state[before] == kOpen) return false;
        if (state[before] == kNew) stack.push_back(before);
        return true;
      });
      if (!acyclic) {
        instruction_ = k;
        return Fail("E032", "Operands or control predecessors form a cycle", "operand_ids",
                    "instructions that do not depend on themselves");
      }
      std::reverse(stack.begin() + size, stack.end());
    }
  }
  if (!scheduled) return true;
  return Fail("E031", "The schedule puts an instruction before its operand", "schedule",
              "operands and control predecessors first");
}

bool Reader::ReadComputation(ComputationBytes* c) {
  instruction_ = -1;
  if (!OrderInstructions(c)) return false;
  names_.clear();
  next_number_.clear();
  ids_.assign(c->instructions.size(), InstrId());
  for (int k : c->order) {
    instruction_ = k;
    if (!ReadInstruction(c, c->instructions[k])) return false;
  }
  instruction_ = -1;
  module_.SetRoot(c->comp, ids_[c->positions.at(c->header.root_id())]);
  absl::string_view thread;
  if (!Utf8(c->header.execution_thread(), "execution_thread", &thread)) return false;
  if (thread != "main") module_.mutable_comp(c->comp).execution_thread = std::string(thread);
  const auto& parameters = module_.comp(c->comp).parameters;
  for (size_t k = 0; k < parameters.size(); ++k) {
    if (parameters[k].valid()) continue;
    return Fail("E013", "A parameter number is missing", "instructions",
                absl::StrCat("parameter ", k, " of ", parameters.size()));
  }
  // What writing cannot tell from the module.
  if (!std::is_sorted(c->order.begin(), c->order.end())) {
    source_->instruction_order[c->comp.value] = ids_;
  }
  instruction_ids_[computation_] = ids_;
  return true;
}

bool Reader::Run(absl::string_view bytes) {
  if (bytes.size() > INT32_MAX) {
    return Fail("E030", "The message is too large", "", "less than 2 GiB",
                absl::StrCat(bytes.size(), " bytes"), "write the module as text");
  }
  std::vector<int> order;
  looks_like_text_ = !bytes.empty() && !LooksLikeProto(bytes);
  if (!Unwrap(&bytes)) return false;
  const std::string parts = std::move(header_bytes_);  // `bytes` may point into it
  if (!parts.empty()) bytes = parts;
  if (!Scan(bytes) || !OrderComputations(&order) || !ReadHeader()) return false;
  names_.clear();
  size_t instructions = 0;
  for (int k : order) {
    ComputationBytes& c = *computations_[k];
    computation_ = k;
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
    computation_ = k;
    if (!ReadComputation(computations_[k].get())) return false;
  }
  return ReadEntry() && KeepResidues();
}

// Writes everything back, and keeps what came out differently. Maps have no
// order and numbers need not be packed: the messages are compared in the form
// that the protobuf library gives them.
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
      if (compare(&p_)) source_->instructions[id.value] = std::move(residue);
    }
    hlo_pb::HloComputationProto header;
    ok = ok && writer.WriteComputationHeader(c.comp, &header);
    header.SerializeToString(&written);
    if (ok && compare(&c.header)) source_->computations[c.comp.value] = std::move(residue);
  }
  hlo_pb::HloModuleProto header;
  ok = ok && writer.WriteHeader(&header);
  if (!ok) {
    status_ = writer.status();
    return false;
  }
  header.SerializeToString(&written);
  if (header_.has_frontend_attributes()) SortMap(header_.mutable_frontend_attributes());
  auto* sequences = header_.has_schedule() ? header_.mutable_schedule()->mutable_sequences()
                                           : nullptr;
  if (sequences != nullptr) {
    std::stable_sort(sequences->begin(), sequences->end(),
                     [](const auto& a, const auto& b) { return a.key() < b.key(); });
  }
  if (compare(&header_)) source_->module = std::move(residue);
  return true;
}

const Shape* Reader::ShapeOf(absl::string_view bytes) {
  hlo_pb::ShapeProto message;
  const Shape* shape = nullptr;
  if (!ParseMessage(bytes, &message)) {
    FailBytes(hlo_pb::ShapeProto::descriptor(), bytes);
  } else if (!ReadShape(message, "", &shape)) {
    return nullptr;
  }
  return shape;
}

const HloSharding* Reader::ShardingOf(absl::string_view bytes) {
  hlo_pb::OpSharding message;
  const HloSharding* sharding = nullptr;
  if (!ParseMessage(bytes, &message)) {
    FailBytes(hlo_pb::OpSharding::descriptor(), bytes);
  } else if (!ReadSharding(message, "", &sharding)) {
    return nullptr;
  }
  return sharding;
}

}  // namespace hlo_proto

bool LooksLikeProto(absl::string_view bytes) {
  // A message begins with one of its first three fields, all of them bytes, and
  // soon has control characters, which HLO text has not.
  if (bytes.empty() || (bytes[0] != 0x0a && bytes[0] != 0x12 && bytes[0] != 0x1a)) return false;
  for (char c : bytes.substr(0, 4096)) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r' &&
        c != '\f' && c != '\v') {
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
    return reader.status();
  }
  return reader.TakeModule();
}

}  // namespace shardcall
