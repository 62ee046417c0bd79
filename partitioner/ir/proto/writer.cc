// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/proto/writer.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/partitioner/ir/moved_from.h"
#include "shardcall/partitioner/ir/proto/text_values.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

bool Writer::Fail(absl::string_view message, absl::string_view found, absl::string_view fix) {
  if (!status_.ok()) return false;
  Diagnostic d;
  d.code = "E034";
  d.message = std::string(message);
  if (at_.valid()) d.where = absl::StrCat("%", NameOf(at_));
  d.found = std::string(found);
  d.fix = std::string(fix);
  status_ = ToStatus(d);
  return false;
}

absl::string_view Writer::NameOf(InstrId id) const {
  const absl::string_view name = module_.instr(id).name;
  if (!name.empty()) return name;
  const auto found = made_names_.find(id.value);
  return found == made_names_.end() ? absl::string_view() : found->second;
}

// Names as in printing: by opcode, unique in the module.
void Writer::MakeNames() {
  const int n = module_.num_instructions();
  std::vector<InstrId> missing;
  for (int k = 0; k < n; ++k) {
    if (module_.instr(InstrId(k)).name.empty()) missing.push_back(InstrId(k));
  }
  if (!missing.empty()) {
    UniqueNames names(names_, n);
    for (int k = 0; k < n; ++k) {
      const absl::string_view name = module_.instr(InstrId(k)).name;
      if (!name.empty()) names.Reserve(name);
    }
    for (InstrId id : missing) {
      made_names_[id.value] = names.Take(OpcodeText(module_.instr(id).opcode));
    }
  }
  // Names of computations that text does not show may be repeated, so all are made unique.
  UniqueNames names(names_, module_.num_computations());
  computation_names_.reserve(module_.num_computations());
  for (int c = 0; c < module_.num_computations(); ++c) {
    const absl::string_view name = module_.comp(CompId(c)).name;
    computation_names_.push_back(names.Take(name.empty() ? "computation" : name));
  }
}

// A depth-first walk from the instructions without users, in order. From each it visits control
// predecessors before operands, the last predecessor first.
std::vector<InstrId> Writer::PostOrder(const Computation& c) const {
  absl::flat_hash_set<uint32_t> used;
  for (InstrId id : c.instructions) {
    for (InstrId operand : module_.operands(id)) used.insert(operand.value);
  }
  std::vector<InstrId> order, stack;
  absl::flat_hash_map<uint32_t, bool> state;  // present: visited; true: listed
  for (InstrId start : c.instructions) {
    if (used.contains(start.value)) continue;
    stack.push_back(start);
    while (!stack.empty()) {
      const InstrId id = stack.back();
      const auto [entry, is_new] = state.try_emplace(id.value, false);
      if (!is_new) {
        stack.pop_back();
        if (!entry->second) order.push_back(id);
        entry->second = true;
        continue;
      }
      const absl::Span<const InstrId> operands = module_.operands(id);
      for (size_t k = operands.size(); k-- > 0;) {
        if (!state.contains(operands[k].value)) stack.push_back(operands[k]);
      }
      if (const RareAttributes* rare = module_.rare(module_.instr(id))) {
        for (InstrId control : rare->control_predecessors) {
          if (!state.contains(control.value)) stack.push_back(control);
        }
      }
    }
  }
  return order;
}

bool Writer::Prepare() {
  const int n = module_.num_computations();
  if (source_ != nullptr) {
    order_ = source_->computation_order;
    payloads_ = source_->payloads;
    for (size_t k = 0; k < payloads_.size(); ++k) {
      payload_index_.try_emplace(payloads_[k], static_cast<int64_t>(k));
    }
  }
  std::vector<bool> listed(n, false);
  for (CompId c : order_) listed[c.value] = true;
  for (CompId c : ComputationPostOrder(module_)) {
    if (!listed[c.value]) order_.push_back(c);
  }
  MakeNames();
  // Ids that were read are kept. A new computation gets the next number; a new instruction gets a
  // number in its computation, with the computation's id in the upper 32 bits.
  computation_ids_.assign(n, 0);
  instruction_ids_.assign(module_.num_instructions(), 0);
  instructions_.resize(n);
  is_fusion_.assign(n, false);
  const size_t known_comps = source_ == nullptr ? 0 : source_->computation_ids.size();
  const size_t known = source_ == nullptr ? 0 : source_->instruction_ids.size();
  int64_t next = 0;
  for (size_t c = 0; c < known_comps; ++c) {
    computation_ids_[c] = source_->computation_ids[c];
    next = std::max(next, computation_ids_[c] < INT32_MAX ? computation_ids_[c] + 1 : 0);
  }
  for (CompId c : order_) {
    if (c.value >= known_comps) computation_ids_[c.value] = next++;
    const Computation& comp = module_.comp(c);
    std::vector<InstrId>& list = instructions_[c.value];
    const auto kept = source_ == nullptr ? nullptr : &source_->instruction_order;
    if (kept != nullptr && kept->contains(c.value)) {
      list = kept->at(c.value);
      for (InstrId id : comp.instructions) {
        if (id.value >= known) list.push_back(id);
      }
    } else if (module_.header.is_scheduled && source_ == nullptr) {
      list = PostOrder(comp);
    }
    // Also if the order above left instructions out.
    if (list.size() != comp.instructions.size()) list = comp.instructions;
    int64_t local = 0;
    for (InstrId id : list) {
      if (id.value >= known) continue;
      instruction_ids_[id.value] = source_->instruction_ids[id.value];
      local = std::max(local, (instruction_ids_[id.value] & INT32_MAX) + 1);
    }
    for (InstrId id : list) {
      if (id.value >= known) instruction_ids_[id.value] = computation_ids_[c.value] << 32 | local++;
      const Instruction& i = module_.instr(id);
      if (i.opcode == Opcode::kFusion && i.as<FusionAttrs>().calls.valid()) {
        is_fusion_[i.as<FusionAttrs>().calls.value] = true;
      }
    }
  }
  return true;
}

bool Writer::WriteInstruction(InstrId id, hlo_pb::HloInstructionProto* p) {
  at_ = id;
  const Instruction& i = module_.instr(id);
  const absl::string_view name = NameOf(id);
  p->mutable_name()->assign(name.data(), name.size());
  const absl::string_view opcode = OpcodeText(i.opcode);
  p->mutable_opcode()->assign(opcode.data(), opcode.size());
  *p->mutable_shape() = ShapeOf(i.shape);
  p->set_id(instruction_ids_[id.value]);
  for (InstrId operand : module_.operands(i)) {
    p->add_operand_ids(instruction_ids_[operand.value]);
  }
  hlo_pb::OpMetadata* metadata = p->mutable_metadata();
  if (i.metadata != nullptr && !WriteMetadata(*i.metadata, metadata)) return false;
  hlo_pb::FrontendAttributes* frontend = p->mutable_frontend_attributes();
  if (i.frontend != nullptr && !WriteFrontend(*i.frontend, frontend)) return false;
  p->mutable_backend_config()->assign(i.backend_config.data(), i.backend_config.size());
  if (i.sharding != nullptr) {
    hlo_pb::OpSharding* sharding = p->mutable_sharding();
    if (!i.shape->IsTuple() || i.sharding->kind == HloSharding::Kind::kTuple) {
      if (!WriteSharding(*i.sharding, sharding)) return false;
    } else {
      // One sharding on a tuple applies to each leaf; the empty tuple has one.
      sharding->set_type(2);
      hlo_pb::OpSharding* first = sharding->add_tuple_shardings();
      if (!WriteSharding(*i.sharding, first)) return false;
      const hlo_pb::OpSharding one = *first;
      for (int leaf = 1; leaf < i.shape->num_leaves(); ++leaf) {
        *sharding->add_tuple_shardings() = one;
      }
    }
  }
  for (CompId c : CalledComputations(module_, i)) {
    if (i.opcode == Opcode::kAsyncUpdate || i.opcode == Opcode::kAsyncDone) break;
    p->add_called_computation_ids(computation_ids_[c.value]);
  }
  p->mutable_statistics_viz();
  // WriteShape sets status_ rather than returning a result.
  return WriteAttributes(i, p) && WriteRare(i, p) && status_.ok();
}

bool Writer::WriteRare(const Instruction& i, hlo_pb::HloInstructionProto* p) {
  absl::string_view accuracy;
  if (i.attrs->kind == AttrKind::kResultAccuracy) {
    accuracy = i.as<ResultAccuracyAttrs>().result_accuracy;
  }
  const RareAttributes* rare = module_.rare(i);
  if (rare != nullptr) {
    for (InstrId control : rare->control_predecessors) {
      p->add_control_predecessor_ids(instruction_ids_[control.value]);
    }
    if (!rare->statistics.empty() &&
        !ParseStatistics(rare->statistics, p->mutable_statistics_viz())) {
      return Fail("The statistics have no binary form", rare->statistics,
                  "write {visualizing_index=0,name=1.5}");
    }
    if (!rare->origin.empty() && !ParseOrigin(rare->origin, p->mutable_original_value())) {
      return Fail("The origin has no binary form", rare->origin,
                  "write {tree} of {\"name\" {index}}");
    }
    if (!rare->result_accuracy.empty()) accuracy = rare->result_accuracy;
  }
  if (!accuracy.empty() && !ParseAccuracy(accuracy, p->mutable_result_accuracy())) {
    return Fail("The accuracy has no binary form", accuracy,
                "write {mode=highest} or {tolerance={atol=0.1,rtol=0.1,ulps=2}}");
  }
  return true;
}

namespace {

// `header` with `parts` inserted where field `number` belongs.
void Join(absl::string_view header, uint32_t number, absl::string_view parts, std::string* out) {
  WireScanner scanner(header);
  WireField field;
  bool put = false;
  while (scanner.Next(&field)) {
    if (!put && field.number > number) {
      out->append(parts.data(), parts.size());
      put = true;
    }
    out->append(field.record.data(), field.record.size());
  }
  if (!put) out->append(parts.data(), parts.size());
}

}  // namespace

bool Writer::WriteComputation(CompId id, std::string* out) {
  std::string parts, bytes;
  hlo_pb::HloInstructionProto p;
  for (InstrId i : instructions_[id.value]) {
    p.Clear();
    if (!WriteInstruction(i, &p)) return false;
    p.SerializeToString(&bytes);
    if (source_ != nullptr) {
      const auto residue = source_->instructions.find(i.value);
      if (residue != source_->instructions.end()) bytes = residue->second.Apply(bytes);
    }
    AppendBytesField(2, bytes, &parts);
  }
  hlo_pb::HloComputationProto header;
  if (!WriteComputationHeader(id, &header)) return false;
  header.SerializeToString(&bytes);
  if (source_ != nullptr) {
    const auto residue = source_->computations.find(id.value);
    if (residue != source_->computations.end()) bytes = residue->second.Apply(bytes);
  }
  Join(bytes, 2, parts, out);
  return true;
}

bool Writer::WriteModule(std::string* out) {
  if (!Prepare()) return false;
  std::string parts, bytes;
  for (CompId c : order_) {
    bytes.clear();
    if (!WriteComputation(c, &bytes)) return false;
    AppendBytesField(3, bytes, &parts);
    if (parts.size() > INT32_MAX) {
      return Fail("The module is too large for a protobuf message", "more than 2 GiB",
                  "write it as text");
    }
  }
  hlo_pb::HloModuleProto header;
  if (!WriteHeader(&header)) return false;
  header.SerializeToString(&bytes);
  if (source_ != nullptr) bytes = source_->module.Apply(bytes);
  Join(bytes, 3, parts, out);
  return true;
}

}  // namespace hlo_proto
}  // namespace internal

ProtoForm ProtoFormOf(const Module& module) {
  return module.proto_source() == nullptr ? ProtoForm::kModule : module.proto_source()->form;
}

absl::StatusOr<std::string> WriteModuleProto(const Module& module, ProtoForm form,
                                             const ProtoOptions& options) {
  SHARDCALL_RETURN_IF_ERROR(CheckNotMovedFrom(module));
  const ProtoSource* source = module.proto_source().get();
  hlo_proto::Writer writer(module, source, options);
  std::string bytes;
  if (!writer.WriteModule(&bytes)) return writer.status();
  const auto enclose = [&](const std::string* rest) {
    std::string outer;
    hlo_proto::AppendBytesField(1, bytes, &outer);
    if (rest != nullptr) outer += *rest;
    bytes = std::move(outer);
  };
  if (form != ProtoForm::kModule) enclose(source == nullptr ? nullptr : &source->hlo_rest);
  if (form == ProtoForm::kSnapshot) {
    enclose(source == nullptr ? nullptr : &source->snapshot_rest);
  }
  return bytes;
}

absl::StatusOr<std::string> WriteShardingProto(const HloSharding& sharding) {
  const Module none(std::make_shared<Context>());
  hlo_proto::Writer writer(none, nullptr);
  hlo_pb::OpSharding message;
  if (!writer.WriteSharding(sharding, &message)) return writer.status();
  return message.SerializeAsString();
}

std::string WriteShapeProto(const Shape* shape) {
  const Module none(std::make_shared<Context>());
  hlo_proto::Writer writer(none, nullptr);
  return writer.ShapeOf(shape).SerializeAsString();
}

}  // namespace shardcall
