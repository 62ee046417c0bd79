// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/proto/reader.h"
#include "shardcall/partitioner/ir/proto/text_values.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/partitioner/ir/text/lex/text_reader.h"
#include "shardcall/partitioner/ir/text/parse/definitions.h"

namespace shardcall {
inline namespace internal {
namespace hlo_proto {

// Names that are not valid in text, or that are repeated, are changed: the message itself refers to
// instructions by id.
bool Reader::ReadName(absl::string_view name, CompId comp, absl::string_view* out) {
  if (!IsUtf8(name)) return values_.Utf8(name, "name", out);
  std::string mended;
  if (!name.empty() && !IsName(name)) {
    mended = std::string(name);
    for (char& c : mended) {
      if (!hlo_text::Is(c, hlo_text::kIdent)) c = '_';
    }
    if (!hlo_text::Is(mended[0], hlo_text::kIdentStart)) mended.insert(0, "_");
    name = mended;
  }
  if (name.empty()) return *out = {}, true;  // a name is generated when printing
  if (comp.valid() && hlo_text::IsReservedName(name)) {
    mended = name[0] == '_' ? absl::StrCat("a", name.substr(1)) : absl::StrCat(name, "_");
    name = mended;
  }
  if (names_.contains(name)) {
    const std::string stem(name);
    int64_t& number = next_number_[stem];
    do {
      mended = absl::StrCat(stem, ".", ++number);
    } while (names_.contains(mended));
    name = mended;
  }
  *out = values_.Keep(name);
  names_.insert(*out);
  return true;
}

bool Reader::ReadPayload(const hlo_pb::Payload& p, absl::string_view field,
                         absl::string_view* out) {
  if (p.form_case() != hlo_pb::Payload::kIndex) return values_.Utf8(p.value(), field, out);
  if (p.index() < 0 || p.index() >= header_.payloads_size()) {
    return faults_.Fail(
        "E031", "There is no such payload", field,
        absl::StrCat("an index into the ", header_.payloads_size(), " of the module"),
        absl::StrCat(p.index()));
  }
  return values_.Utf8(header_.payloads(static_cast<int>(p.index())), field, out);
}

bool Reader::ReadMetadata(const hlo_pb::OpMetadata& p, const Metadata** out) {
  Metadata m;
  if (!IsUtf8(p.op_name()) || !IsUtf8(p.op_type()) || !IsUtf8(p.source_file()) ||
      !IsUtf8(p.deduplicated_name()) || !IsUtf8(p.scheduling_name())) {
    return faults_.Fail("E033", "Text is not UTF-8", "metadata", "valid UTF-8", "",
                        "write the text in UTF-8 where the message is made");
  }
  m.op_type = p.op_type();
  m.op_name = p.op_name();
  m.source_file = p.source_file();
  m.deduplicated_name = p.deduplicated_name();
  m.scheduling_name = p.scheduling_name();
  if (p.has_metadata_payload() &&
      !ReadPayload(p.metadata_payload(), "metadata.metadata_payload", &m.metadata_payload)) {
    return false;
  }
  m.source_line = p.source_line();
  m.source_end_line = p.source_end_line();
  m.source_column = p.source_column();
  m.source_end_column = p.source_end_column();
  // An id outside the table of frames means no frame, as in text.
  const auto frames = static_cast<int64_t>(module_.header.stack.frames.size());
  if (p.stack_frame_id() > 0 && p.stack_frame_id() <= frames) m.stack_frame_id = p.stack_frame_id();
  const std::vector<int64_t> profile(p.profile_type().begin(), p.profile_type().end());
  m.profile_type = profile;
  *out = InternMetadata(context_, m);
  return true;
}

// Fields that every instruction may have.
bool Reader::ReadCommon(const ComputationBytes& c, const InstructionBytes& bytes, Instruction* i) {
  if (!ReadName(p_.name(), c.comp, &i->name) ||
      !values_.ReadShape(p_.shape(), "shape", &i->shape)) {
    return false;
  }
  operands_.clear();
  for (int64_t id : bytes.operands) {
    const auto found = c.positions.find(id);
    if (found == c.positions.end()) {
      return faults_.Fail("E031", "Unknown operand", "operand_ids",
                          "an instruction of this computation", absl::StrCat(id));
    }
    operands_.push_back(ids_[found->second]);
  }
  called_.clear();
  for (int64_t id : bytes.called) {
    called_.push_back(computations_[computation_positions_.at(id)]->comp);
  }
  if (p_.has_sharding() && !values_.ReadSharding(p_.sharding(), "sharding", &i->sharding))
    return false;
  if (p_.frontend_attributes().map_size() > 0 &&
      !ReadFrontend(p_.frontend_attributes(), "frontend_attributes", &i->frontend)) {
    return false;
  }
  if (p_.has_metadata() && p_.metadata().ByteSizeLong() > 0 &&
      !ReadMetadata(p_.metadata(), &i->metadata)) {
    return false;
  }
  if (p_.has_result_accuracy()) {
    static constexpr absl::string_view kAccuracies[] = {"default", "highest"};
    int mode;
    if (!values_.WordNumber("result_accuracy.mode", p_.result_accuracy().mode(), kAccuracies,
                            &mode)) {
      return false;
    }
    const auto& tolerance = p_.result_accuracy().tolerance();
    for (double v : {tolerance.atol(), tolerance.rtol()}) {
      if (!std::isfinite(v)) {
        return faults_.Fail("E003", "A number is out of range", "result_accuracy",
                            "a finite number", absl::StrCat(v));
      }
    }
  }
  absl::string_view config = p_.backend_config();
  if (config.empty() && p_.has_backend_config_payload() &&
      !ReadPayload(p_.backend_config_payload(), "backend_config_payload", &config)) {
    return false;
  }
  if (!config.empty()) i->backend_config = context_.Intern(config);
  return true;
}

bool Reader::ReadRare(const InstructionBytes& bytes, InstrId id, Opcode opcode) {
  const bool accuracy =
      p_.has_result_accuracy() && GetOpcodeInfo(opcode).attrs != AttrKind::kResultAccuracy;
  if (bytes.controls.empty() && !accuracy && p_.statistics_viz().statistics_size() == 0 &&
      !p_.has_original_value()) {
    return true;
  }
  RareAttributes rare;
  const ComputationBytes& c = *computations_[faults_.computation];
  for (int64_t control : bytes.controls) {
    const auto found = c.positions.find(control);
    if (found == c.positions.end()) {
      return faults_.Fail("E031", "Unknown control predecessor", "control_predecessor_ids",
                          "an instruction of this computation", absl::StrCat(control));
    }
    rare.control_predecessors.push_back(ids_[found->second]);
  }
  for (const hlo_pb::Statistic& s : p_.statistics_viz().statistics()) {
    if (!IsName(s.stat_name()) || s.stat_name() == "visualizing_index") {
      return faults_.Fail("E019", "A statistic has no proper name", "statistics_viz",
                          "letters, digits, '_', '.' and '-', and not visualizing_index");
    }
    if (!std::isfinite(s.stat_val())) {
      return faults_.Fail("E003", "A number is out of range", "statistics_viz", "a finite number",
                          absl::StrCat(s.stat_val()));
    }
  }
  rare.statistics = StatisticsText(p_.statistics_viz());
  if (accuracy) rare.result_accuracy = AccuracyText(p_.result_accuracy());
  if (p_.has_original_value()) {
    for (const auto& e : p_.original_value().elements()) {
      absl::string_view name;
      if (!values_.Utf8(e.original_array().instruction_name(), "original_value", &name))
        return false;
    }
    rare.origin = OriginText(p_.original_value(), *module_.instr(id).shape);
  }
  module_.mutable_rare(id) = std::move(rare);
  return true;
}

bool Reader::ReadInstruction(ComputationBytes* c, const InstructionBytes& bytes) {
  p_.Clear();
  if (!ParseMessage(bytes.bytes, &p_)) {
    return faults_.FailBytes(hlo_pb::HloInstructionProto::descriptor(), bytes.bytes);
  }
  Instruction i;
  if (!OpcodeFromText(p_.opcode(), &i.opcode)) {
    std::vector<absl::string_view> names;
    for (int k = 0; k < kNumOpcodes; ++k) names.push_back(OpcodeText(static_cast<Opcode>(k)));
    const std::string shown = IsUtf8(p_.opcode()) ? p_.opcode().substr(0, 80) : "(not text)";
    return faults_.Fail("E004", "Unknown opcode", "opcode", "an HLO opcode",
                        absl::StrCat("'", shown, "'"), hlo_text::DidYouMean(shown, names));
  }
  if (!ReadCommon(*c, bytes, &i)) return false;
  const int arity = GetOpcodeInfo(i.opcode).arity;
  if (arity >= 0 && operands_.size() != static_cast<size_t>(arity)) {
    return faults_.Fail("E012", absl::StrCat("Wrong number of operands of ", OpcodeText(i.opcode)),
                        "operand_ids", absl::StrCat(arity), absl::StrCat(operands_.size()));
  }
  if (!records_.Read(i.opcode, &i.attrs)) return false;
  if (i.opcode == Opcode::kParameter) {
    const int64_t number = i.as<ParameterAttrs>().number;
    const auto& parameters = module_.comp(c->comp).parameters;
    const bool fits = number >= 0 && number < static_cast<int64_t>(c->instructions.size());
    const bool twice =
        fits && number < static_cast<int64_t>(parameters.size()) && parameters[number].valid();
    if (!fits || twice) {
      return faults_.Fail(
          "E013", twice ? "A parameter number stands twice" : "A parameter number is out of range",
          "parameter_number", "dense numbers from 0", absl::StrCat(number));
    }
  }
  const InstrId id = module_.Add(c->comp, i, operands_);
  ids_[faults_.instruction] = id;
  source_->instruction_ids.push_back(bytes.id);
  return ReadRare(bytes, id, i.opcode);
}

}  // namespace hlo_proto
}  // namespace internal
}  // namespace shardcall
