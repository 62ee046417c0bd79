// SPDX-License-Identifier: Apache-2.0
// The module's own fields.
#include <algorithm>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/ir/proto/reader.h"
#include "shardcall/partitioner/ir/proto/text_values.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/partitioner/ir/text/printer.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {
namespace {

std::vector<int64_t> VectorOf(const Repeated& field) { return {field.begin(), field.end()}; }

bool AllNonNegative(const Repeated& field) {
  return std::all_of(field.begin(), field.end(), [](int64_t v) { return v >= 0; });
}

}  // namespace

bool Reader::ReadFrontend(const hlo_pb::FrontendAttributes& p, absl::string_view field,
                          const FrontendAttributes** out) {
  std::vector<std::pair<absl::string_view, absl::string_view>> entries;
  absl::flat_hash_map<absl::string_view, size_t> at;
  for (const hlo_pb::StringEntry& e : p.map()) {
    if (!IsUtf8(e.key()) || !IsUtf8(e.value())) {
      return faults_.Fail("E033", "Text is not UTF-8", field, "valid UTF-8", "",
                          "write the text in UTF-8 where the message is made");
    }
    if (!IsName(e.key())) {
      return faults_.Fail("E019", "A key is no identifier", field,
                          "letters, digits, '_', '.' and '-', with a letter or '_' first",
                          absl::StrCat("'", absl::CEscape(e.key()).substr(0, 80), "'"),
                          "rename the key: HLO text has no form for it");
    }
    // If a key is repeated, the last value counts, as in any map.
    const auto [entry, is_new] = at.try_emplace(e.key(), entries.size());
    if (is_new) {
      entries.push_back({e.key(), e.value()});
    } else {
      entries[entry->second].second = e.value();
    }
  }
  *out = InternFrontendAttributes(context_, entries);
  return true;
}

bool Reader::ReadStackTables(const hlo_pb::StackFrameIndexProto& p) {
  StackTables& t = module_.header.stack;
  const auto texts = [&](const auto& from, absl::string_view field,
                         std::vector<absl::string_view>* to) {
    for (const std::string& text : from) {
      absl::string_view kept;
      if (!values_.Utf8(text, field, &kept)) return false;
      to->push_back(kept);
    }
    return true;
  };
  if (!texts(p.file_names(), "stack_frame_index.file_names", &t.files) ||
      !texts(p.function_names(), "stack_frame_index.function_names", &t.functions)) {
    return false;
  }
  for (const auto& l : p.file_locations()) {
    for (int32_t v : {l.file_name_id(), l.function_name_id(), l.line(), l.end_line(), l.column(),
                      l.end_column()}) {
      if (v < 0) {
        return faults_.Fail("E017", "A source location has a negative number",
                            "stack_frame_index.file_locations", "0 or more", absl::StrCat(v));
      }
    }
    t.locations.push_back({l.file_name_id(), l.function_name_id(), l.line(), l.end_line(),
                           l.column(), l.end_column()});
  }
  for (const auto& f : p.stack_frames()) {
    if (f.file_location_id() < 0 || f.parent_frame_id() < 0 || f.parent_frame_id() == INT32_MAX) {
      return faults_.Fail("E017", "A stack frame has a negative number",
                          "stack_frame_index.stack_frames", "0 or more");
    }
    t.frames.push_back({f.file_location_id(), f.parent_frame_id()});
  }
  return true;
}

bool Reader::ReadRecoveryTable(const hlo_pb::OriginalValueRecoveryTableProto& p, std::string* out) {
  // In text these modules are quoted, which doubles the quotes of modules inside them. So nesting
  // is limited.
  constexpr int kMostLevels = 4;
  if (level_ >= kMostLevels) {
    return faults_.Fail("E014", "Recovery modules are nested too deeply",
                        "original_value_recovery_table",
                        absl::StrCat("at most ", kMostLevels, " levels"));
  }
  *out = "{\n";
  for (const auto& e : p.entries()) {
    if (!IsUtf8(e.old_original_array().instruction_name()) ||
        !IsUtf8(e.new_original_array().instruction_name())) {
      return faults_.Fail("E033", "Text is not UTF-8", "original_value_recovery_table",
                          "valid UTF-8");
    }
    absl::StrAppend(out, "  ", OriginalArrayText(e.old_original_array()), " : ",
                    OriginalArrayText(e.new_original_array()));
    if (e.has_recovery_module()) {
      Reader inner(absl::StrCat(faults_.file(), ": original_value_recovery_table"),
                   module_.shared_context(), level_ + 1);
      if (!inner.Run(e.recovery_module().SerializeAsString())) {
        faults_.set_status(inner.status());
        return false;
      }
      std::string text = "\n";  // indented as XLA does
      for (absl::string_view line : absl::StrSplit(PrintModule(inner.TakeModule()), '\n')) {
        absl::StrAppend(&text, line.empty() ? "" : "    ", line, "\n");
      }
      absl::StrAppend(out, ", \"", absl::CEscape(text), "  \"");
    }
    out->push_back('\n');
  }
  *out += "}\n";
  return true;
}

bool Reader::ReadHeader() {
  ModuleHeader& h = module_.header;
  absl::string_view name;
  names_.clear();
  if (!ReadName(header_.name(), CompId(), &name)) return false;
  h.name = name.empty() ? "module" : std::string(name);
  source_->payloads.assign(header_.payloads().begin(), header_.payloads().end());
  if (!ReadStackTables(header_.stack_frame_index())) return false;
  h.is_scheduled = header_.has_schedule();
  for (const auto& e : header_.input_output_alias().entries()) {
    if (!AllNonNegative(e.output_shape_index()) || !AllNonNegative(e.parameter_shape_index()) ||
        e.parameter_number() < 0 || e.kind() < 0 || e.kind() > 2) {
      return faults_.Fail("E017", "An alias has an invalid entry", "input_output_alias.entries",
                          "numbers from 0, and a kind of 1 (may) or 2 (must)");
    }
    h.aliases.push_back({VectorOf(e.output_shape_index()), e.parameter_number(),
                         VectorOf(e.parameter_shape_index()), e.kind() == 2});
  }
  for (const auto& e : header_.buffer_donor().entries()) {
    if (!AllNonNegative(e.parameter_shape_index()) || e.parameter_number() < 0) {
      return faults_.Fail("E017", "A buffer donor has an invalid entry", "buffer_donor.entries",
                          "numbers from 0");
    }
    h.donors.push_back({e.parameter_number(), VectorOf(e.parameter_shape_index())});
  }
  std::sort(h.donors.begin(), h.donors.end(), [](const DonorEntry& a, const DonorEntry& b) {
    return std::tie(a.parameter, a.parameter_index) < std::tie(b.parameter, b.parameter_index);
  });
  if (header_.frontend_attributes().map_size() > 0 &&
      !ReadFrontend(header_.frontend_attributes(), "frontend_attributes", &h.frontend)) {
    return false;
  }
  if (header_.has_original_value_recovery_table() &&
      !ReadRecoveryTable(header_.original_value_recovery_table(), &h.origin_recovery_table)) {
    return false;
  }
  const hlo_pb::ShardcallHeader& own = header_.shardcall_header();
  int64_t replicas = own.replica_count(), partitions = own.num_partitions();
  if (!header_.has_shardcall_header()) {
    // XLA's own messages have only this about the number of devices.
    replicas = header_.device_assignment().replica_count();
    partitions = header_.device_assignment().computation_count();
  }
  if (replicas < 0 || partitions < 0) {
    return faults_.Fail("E017", "A count of devices is negative", "", "1 or more",
                        absl::StrCat(std::min(replicas, partitions)));
  }
  if (replicas > 0) h.replica_count = replicas;
  if (partitions > 0) {
    h.num_partitions = partitions;
    h.has_num_partitions = true;
  }
  h.alias_passthrough_params = own.alias_passthrough_params();
  const auto bools = [](const google::protobuf::RepeatedField<bool>& from, std::vector<bool>* to) {
    if (!from.empty()) to->assign(from.begin(), from.end());
  };
  bools(own.propagate_to_parameters(), &h.propagate_to_parameters);
  bools(own.propagate_to_output(), &h.propagate_to_output);
  h.debug_attributes = own.debug_attributes();
  if (!h.debug_attributes.empty()) {
    // Kept as text, so it must be what the text form allows there.
    hlo_text::Lexer lexer(h.debug_attributes, faults_.file());
    absl::string_view value;
    if (!IsUtf8(h.debug_attributes) || !lexer.Balanced(&value) || value != h.debug_attributes) {
      return faults_.Fail("E019", "The debug attributes are no text of HLO",
                          "shardcall_header.debug_attributes", "one value in braces",
                          absl::CEscape(h.debug_attributes.substr(0, 40)));
    }
  }
  return true;
}

// Runs after all computations are read.
bool Reader::ReadEntry() {
  faults_.computation = faults_.instruction = -1;
  const auto found = computation_positions_.find(header_.entry_computation_id());
  if (found == computation_positions_.end()) {
    return faults_.Fail("E031", "The entry computation is not there", "entry_computation_id",
                        "the id of a computation", absl::StrCat(header_.entry_computation_id()));
  }
  module_.set_entry(computations_[found->second]->comp);
  if (!header_.has_host_program_shape()) return true;
  ModuleHeader& h = module_.header;
  const hlo_pb::ProgramShapeProto& p = header_.host_program_shape();
  h.entry_parameter_layouts.resize(p.parameters_size());
  for (int k = 0; k < p.parameters_size(); ++k) {
    if (!values_.ReadShape(p.parameters(k), absl::StrCat("host_program_shape.parameters[", k, "]"),
                           &h.entry_parameter_layouts[k])) {
      return false;
    }
  }
  return values_.ReadShape(p.result(), "host_program_shape.result", &h.entry_result_layout);
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
