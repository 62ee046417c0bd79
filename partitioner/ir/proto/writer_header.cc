// SPDX-License-Identifier: Apache-2.0
// The other fields of modules and computations: signatures, layouts, aliases, schedules, tables.
#include <algorithm>

#include "shardcall/partitioner/ir/proto/text_values.h"
#include "shardcall/partitioner/ir/proto/writer.h"
#include "shardcall/partitioner/ir/text/parser.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

bool Writer::WriteComputationHeader(CompId id, hlo_pb::HloComputationProto* p) {
  const Computation& c = module_.comp(id);
  at_ = InstrId();
  if (!Utf8(computation_names_[id.value], "a computation's name", p->mutable_name()) ||
      !Utf8(c.execution_thread, "an execution thread", p->mutable_execution_thread())) {
    return false;
  }
  p->set_id(computation_ids_[id.value]);
  p->set_root_id(instruction_ids_[c.root.value]);
  p->set_is_fusion_computation(is_fusion_[id.value]);
  hlo_pb::ProgramShapeProto* shape = p->mutable_program_shape();
  for (InstrId parameter : c.parameters) {
    *shape->add_parameters() = ShapeOf(module_.instr(parameter).shape);
    shape->add_parameter_names(std::string(NameOf(parameter)));
  }
  *shape->mutable_result() = ShapeOf(module_.instr(c.root).shape);
  return status_.ok();
}

bool Writer::WriteSchedule(hlo_pb::HloScheduleProto* p) {
  std::vector<CompId> computations = order_;
  std::sort(computations.begin(), computations.end(), [&](CompId a, CompId b) {
    return computation_ids_[a.value] < computation_ids_[b.value];
  });
  for (CompId c : computations) {
    if (is_fusion_[c.value]) continue;
    hlo_pb::SequenceEntry* e = p->add_sequences();
    if (computation_ids_[c.value] != 0) e->set_key(computation_ids_[c.value]);
    for (InstrId id : module_.comp(c).instructions) {
      e->mutable_value()->add_instruction_ids(instruction_ids_[id.value]);
    }
  }
  return true;
}

bool Writer::WriteRecoveryTable(hlo_pb::OriginalValueRecoveryTableProto* p) {
  const std::string& text = module_.header.origin_recovery_table;
  const auto read = [&](const std::string& module, hlo_pb::HloModuleProto* out) {
    absl::StatusOr<Module> parsed = ParseModule(std::make_shared<const std::string>(module),
                                                module_.shared_context(), "origin_recovery_table");
    if (!parsed.ok()) {
      status_ = parsed.status();
      return false;
    }
    Writer writer(*parsed, nullptr);
    std::string bytes;
    if (!writer.WriteModule(&bytes)) {
      status_ = writer.status();
      return false;
    }
    return ParseMessage(bytes, out);
  };
  return ParseRecoveryTable(text, p, read) ||
         Fail("The origin_recovery_table has no binary form", text.substr(0, 80),
              "write { {\"a\"} : {\"b\"}, .. }");
}

void Writer::WriteEntryShape(hlo_pb::ProgramShapeProto* p) {
  const ModuleHeader& h = module_.header;
  const Computation& c = module_.comp(module_.entry());
  const bool written = h.entry_result_layout != nullptr;
  const size_t count = written ? h.entry_parameter_layouts.size() : c.parameters.size();
  for (size_t k = 0; k < count; ++k) {
    *p->add_parameters() =
        ShapeOf(written ? h.entry_parameter_layouts[k] : module_.instr(c.parameters[k]).shape);
    p->add_parameter_names(absl::StrCat("p", k));
  }
  *p->mutable_result() = ShapeOf(written ? h.entry_result_layout : module_.instr(c.root).shape);
}

void Writer::WriteAliases(hlo_pb::HloModuleProto* p) {
  const ModuleHeader& h = module_.header;
  hlo_pb::HloInputOutputAliasProto* aliases = p->mutable_input_output_alias();
  for (const AliasEntry& a : h.aliases) {
    auto* e = aliases->add_entries();
    e->mutable_output_shape_index()->Add(a.output_index.begin(), a.output_index.end());
    e->set_parameter_number(a.parameter);
    e->mutable_parameter_shape_index()->Add(a.parameter_index.begin(), a.parameter_index.end());
    e->set_kind(a.must_alias ? 2 : 1);
  }
  hlo_pb::HloBufferDonorProto* donors = p->mutable_buffer_donor();
  for (const DonorEntry& d : h.donors) {
    auto* e = donors->add_entries();
    e->set_parameter_number(d.parameter);
    e->mutable_parameter_shape_index()->Add(d.parameter_index.begin(), d.parameter_index.end());
  }
}

bool Writer::WriteStack(hlo_pb::StackFrameIndexProto* p) {
  const StackTables& stack = module_.header.stack;
  for (absl::string_view text : stack.files) {
    if (!Utf8(text, "a file's name", p->add_file_names())) return false;
  }
  for (absl::string_view text : stack.functions) {
    if (!Utf8(text, "a function's name", p->add_function_names())) return false;
  }
  for (const StackTables::Location& l : stack.locations) {
    auto* e = p->add_file_locations();
    e->set_file_name_id(l.file);
    e->set_function_name_id(l.function);
    e->set_line(l.line);
    e->set_end_line(l.end_line);
    e->set_column(l.column);
    e->set_end_column(l.end_column);
  }
  for (const StackTables::Frame& f : stack.frames) {
    auto* e = p->add_stack_frames();
    e->set_file_location_id(f.location);
    e->set_parent_frame_id(f.parent);
  }
  return true;
}

bool Writer::WriteHeader(hlo_pb::HloModuleProto* p) {
  const ModuleHeader& h = module_.header;
  at_ = InstrId();
  if (!Utf8(h.name, "the module's name", p->mutable_name())) return false;
  const CompId entry = module_.entry();
  p->set_entry_computation_name(std::string(computation_names_[entry.value]));
  p->set_entry_computation_id(computation_ids_[entry.value]);
  WriteEntryShape(p->mutable_host_program_shape());
  for (const HloSharding& held : options_.parameter_shardings) {
    if (!WriteSharding(held, p->add_spmd_parameters_shardings())) return false;
  }
  if (options_.result_sharding.has_value() &&
      !WriteSharding(*options_.result_sharding, p->mutable_spmd_output_sharding())) {
    return false;
  }
  if (h.is_scheduled && !WriteSchedule(p->mutable_schedule())) return false;
  WriteAliases(p);
  hlo_pb::FrontendAttributes* frontend = p->mutable_frontend_attributes();
  if (h.frontend != nullptr && !WriteFrontend(*h.frontend, frontend)) return false;
  if (!h.stack.empty() && !WriteStack(p->mutable_stack_frame_index())) return false;
  if (!h.origin_recovery_table.empty() &&
      !WriteRecoveryTable(p->mutable_original_value_recovery_table())) {
    return false;
  }
  for (const std::string& payload : payloads_) p->add_payloads(payload);
  const std::vector<bool> none = {false};
  if (h.replica_count != 1 || h.num_partitions != 1 || h.has_num_partitions ||
      h.alias_passthrough_params || h.propagate_to_parameters != none ||
      h.propagate_to_output != none || !h.debug_attributes.empty()) {
    hlo_pb::ShardcallHeader* own = p->mutable_shardcall_header();
    if (h.replica_count != 1) own->set_replica_count(h.replica_count);
    if (h.has_num_partitions || h.num_partitions != 1) own->set_num_partitions(h.num_partitions);
    own->set_alias_passthrough_params(h.alias_passthrough_params);
    for (bool b : h.propagate_to_parameters) own->add_propagate_to_parameters(b);
    for (bool b : h.propagate_to_output) own->add_propagate_to_output(b);
    own->set_debug_attributes(h.debug_attributes);
  }
  return status_.ok();
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
