// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/printer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/partitioner/ir/moved_from.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/partitioner/ir/text/lex/literal_text.h"
#include "shardcall/partitioner/ir/text/printer_internal.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

absl::string_view Printer::NameOf(InstrId id) const {
  return instr_names_.empty() ? module_.instr(id).name : instr_names_[id.value];
}
absl::string_view Printer::NameOf(CompId id) const {
  return comp_names_.empty() ? module_.comp(id).name : comp_names_[id.value];
}

void Printer::Name(absl::string_view name) {
  if (!short_ || IsReserved(name)) out_.push_back('%');
  out_.append(name.data(), name.size());
}

bool Printer::OnlyParametersAndOneOp(CompId id) const {
  const Computation& c = module_.comp(id);
  if (c.instructions.size() != c.parameters.size() + 1) return false;
  const Instruction& root = module_.instr(c.root);
  if (!HasShortAsyncForm(root.opcode)) return false;
  // The short form can only express a call that passes the parameters in order.
  const absl::Span<const InstrId> operands = module_.operands(root);
  return operands.size() == c.parameters.size() &&
         std::equal(operands.begin(), operands.end(), c.parameters.begin());
}

const Instruction* Printer::Sugar(const Instruction& i) const {
  const CompId calls = i.as<AsyncAttrs>().calls;
  return calls.valid() && OnlyParametersAndOneOp(calls) ? &module_.instr(module_.comp(calls).root)
                                                        : nullptr;
}

// Makes names for instructions and computations without one, and finds the computations that are
// not printed.
void Printer::MakeNames() {
  const int n = module_.num_instructions();
  bool instr_missing = false, comp_missing = false;
  hidden_.assign(module_.num_computations(), false);
  for (int k = 0; k < n; ++k) {
    const Instruction& i = module_.instr(InstrId(k));
    instr_missing |= i.name.empty();
    if (i.opcode == Opcode::kAsyncStart && Sugar(i) != nullptr) {
      hidden_[i.as<AsyncAttrs>().calls.value] = true;
    }
  }
  for (int c = 0; c < module_.num_computations(); ++c) {
    comp_missing |= module_.comp(CompId(c)).name.empty();
  }
  if (instr_missing) {
    UniqueNames names(made_names_, n);
    instr_names_.resize(n);
    for (int k = 0; k < n; ++k) {
      instr_names_[k] = module_.instr(InstrId(k)).name;
      if (!instr_names_[k].empty()) names.Reserve(instr_names_[k]);
    }
    for (int k = 0; k < n; ++k) {
      const Instruction& i = module_.instr(InstrId(k));
      if (!instr_names_[k].empty() || hidden_[i.computation.value]) continue;
      instr_names_[k] = names.Take(OpcodeText(i.opcode));
    }
  }
  if (comp_missing) {
    UniqueNames names(made_names_, module_.num_computations());
    for (int c = 0; c < module_.num_computations(); ++c) {
      comp_names_.push_back(module_.comp(CompId(c)).name);
      if (!comp_names_.back().empty()) names.Reserve(comp_names_.back());
    }
    for (absl::string_view& name : comp_names_) {
      if (name.empty()) name = names.Take("computation");
    }
  }
}

void Printer::Header() {
  const ModuleHeader& h = module_.header;
  const auto index = [&](const std::vector<int64_t>& v) { IntListValue(v); };
  const auto bools = [&](absl::string_view name, const std::vector<bool>& v) {
    if (std::find(v.begin(), v.end(), true) == v.end() && v.size() <= 1) return;
    absl::StrAppend(&out_, ", ", name, "={");
    for (size_t k = 0; k < v.size(); ++k) {
      absl::StrAppend(&out_, k > 0 ? "," : "", v[k] ? "true" : "false");
    }
    out_.push_back('}');
  };
  absl::StrAppend(&out_, "HloModule ", IsReserved(h.name) ? "%" : "", h.name);
  Flag("is_scheduled", h.is_scheduled);
  if (!h.aliases.empty()) {
    out_ += ", input_output_alias={ ";
    for (size_t k = 0; k < h.aliases.size(); ++k) {
      const AliasEntry& e = h.aliases[k];
      if (k > 0) out_ += ", ";
      index(e.output_index);
      absl::StrAppend(&out_, ": (", e.parameter, ", ");
      index(e.parameter_index);
      out_ += e.must_alias ? ", must-alias)" : ", may-alias)";
    }
    out_ += " }";
  }
  if (!h.donors.empty()) {
    out_ += ", buffer_donor={ ";
    for (size_t k = 0; k < h.donors.size(); ++k) {
      absl::StrAppend(&out_, k > 0 ? ", (" : "(", h.donors[k].parameter, ", ");
      index(h.donors[k].parameter_index);
      out_.push_back(')');
    }
    out_ += " }";
  }
  Flag("alias_passthrough_params", h.alias_passthrough_params);
  out_ += ", entry_computation_layout={(";
  const Computation& entry = module_.comp(module_.entry());
  const bool written = h.entry_result_layout != nullptr;
  const size_t count = written ? h.entry_parameter_layouts.size() : entry.parameters.size();
  for (size_t k = 0; k < count; ++k) {
    if (k > 0) out_ += ", ";
    if (k > 0 && k % 5 == 0) absl::StrAppend(&out_, "/*index=", k, "*/");
    ShapeText(written ? h.entry_parameter_layouts[k] : module_.instr(entry.parameters[k]).shape,
              true);
  }
  out_ += ")->";
  ShapeText(written ? h.entry_result_layout : module_.instr(entry.root).shape, true);
  out_.push_back('}');
  bools("allow_spmd_sharding_propagation_to_parameters", h.propagate_to_parameters);
  bools("allow_spmd_sharding_propagation_to_output", h.propagate_to_output);
  if (h.replica_count != 1) IntText("replica_count", h.replica_count);
  if (h.num_partitions != 1) IntText("num_partitions", h.num_partitions);
  if (h.frontend != nullptr && !h.frontend->entries.empty()) {
    out_ += ", ";
    FrontendText(*h.frontend);
  }
  Word("origin_recovery_table", h.origin_recovery_table);
  Word("debug_attributes", h.debug_attributes);
  out_.push_back('\n');
  if (metadata_ && !h.stack.empty()) StackTables_();
  out_.push_back('\n');
}

void Printer::StackTables_() {
  const StackTables& t = module_.header.stack;
  int row = 0;
  const auto strings = [&](absl::string_view title, const std::vector<absl::string_view>& values) {
    absl::StrAppend(&out_, "\n", title, "\n");
    row = 0;
    for (absl::string_view value : values) {
      AppendInt(++row, &out_);
      out_.push_back(' ');
      Escaped(value);
      out_.push_back('\n');
    }
  };
  const auto fields = [&](std::initializer_list<std::pair<absl::string_view, int32_t>> values) {
    AppendInt(++row, &out_);
    out_ += " {";
    bool first = true;
    for (const auto& [name, value] : values) {
      if (!first) out_.push_back(' ');
      first = false;
      out_.append(name.data(), name.size());
      out_.push_back('=');
      AppendInt(value, &out_);
    }
    out_ += "}\n";
  };
  strings("FileNames", t.files);
  strings("FunctionNames", t.functions);
  out_ += "\nFileLocations\n";
  row = 0;
  for (const auto& l : t.locations) {
    fields({{"file_name_id", l.file},
            {"function_name_id", l.function},
            {"line", l.line},
            {"end_line", l.end_line},
            {"column", l.column},
            {"end_column", l.end_column}});
  }
  out_ += "\nStackFrames\n";
  row = 0;
  for (const auto& f : t.frames) {
    fields({{"file_location_id", f.location}, {"parent_frame_id", f.parent + 1}});
  }
  out_.push_back('\n');
}

void Printer::Signature(const Computation& c) {
  out_ += " (";
  for (size_t k = 0; k < c.parameters.size(); ++k) {
    absl::StrAppend(&out_, k > 0 ? ", " : "", NameOf(c.parameters[k]), ": ");
    ShapeText(module_.instr(c.parameters[k]).shape, false);
  }
  out_ += ") -> ";
  ShapeText(module_.instr(c.root).shape, false);
}

void Printer::PrintComputation(CompId id) {
  const Computation& c = module_.comp(id);
  if (id == module_.entry()) out_ += "ENTRY ";
  Name(NameOf(id));
  if (!short_) Signature(c);
  out_ += " {\n";
  for (InstrId i : c.instructions) {
    out_ += "  ";
    PrintInstruction(i, i == c.root);
    out_.push_back('\n');
  }
  out_.push_back('}');
  if (!c.execution_thread.empty()) StringText("execution_thread", c.execution_thread);
  out_ += "\n\n";
}

void Printer::Operands(const Instruction& i) {
  const absl::Span<const InstrId> operands = module_.operands(i);
  for (size_t k = 0; k < operands.size(); ++k) {
    if (k > 0) out_ += ", ";
    if (k > 0 && k % 5 == 0 && !short_) absl::StrAppend(&out_, "/*index=", k, "*/");
    Name(NameOf(operands[k]));
  }
}

void Printer::PrintInstruction(InstrId id, bool is_root) {
  const Instruction& i = module_.instr(id);
  if (is_root) out_ += "ROOT ";
  Name(NameOf(id));
  out_ += " = ";
  ShapeText(i.shape, true);
  out_.push_back(' ');
  const Instruction* sugar = i.attrs->kind == AttrKind::kAsync ? Sugar(i) : nullptr;
  absl::string_view opcode = OpcodeText(i.opcode);
  if (sugar != nullptr) {
    // "async-done" becomes "<op>-done".
    const absl::string_view op = OpcodeText(sugar->opcode);
    out_.append(op.data(), op.size());
    opcode.remove_prefix(absl::string_view("async").size());
  }
  out_.append(opcode.data(), opcode.size());
  out_.push_back('(');
  if (i.opcode == Opcode::kParameter) {
    AppendInt(i.as<ParameterAttrs>().number, &out_);
  } else if (i.opcode == Opcode::kConstant) {
    AppendLiteral(*i.as<ConstantAttrs>().literal, &out_);
  } else {
    Operands(i);
  }
  out_.push_back(')');
  if (i.attrs->kind != AttrKind::kNone) Attributes_(i);
  CommonAttributes(i);
}

std::string Printer::Module_() {
  size_t text = 0;
  for (const auto& t : module_.texts()) text += t->size();
  out_.reserve(std::max<size_t>(text + text / 16, module_.num_instructions() * size_t{160}) + 4096);
  MakeNames();
  Header();
  for (CompId c : ComputationPostOrder(module_)) {
    if (!hidden_[c.value]) PrintComputation(c);
  }
  return std::move(out_);
}

std::string Printer::OneInstruction(InstrId id) {
  // Makes only the names that this line needs.
  const auto need = [&](InstrId k) {
    const Instruction& i = module_.instr(k);
    if (!i.name.empty()) return;
    if (instr_names_.empty()) instr_names_.resize(module_.num_instructions());
    instr_names_[k.value] = made_names_.Copy(absl::StrCat(OpcodeText(i.opcode), ".#", k.value));
  };
  need(id);
  for (InstrId k : module_.operands(id)) need(k);
  if (!instr_names_.empty()) {
    const auto keep = [&](InstrId k) {
      if (!module_.instr(k).name.empty()) instr_names_[k.value] = module_.instr(k).name;
    };
    keep(id);
    for (InstrId k : module_.operands(id)) keep(k);
    if (const RareAttributes* rare = module_.rare(module_.instr(id))) {
      for (InstrId k : rare->control_predecessors) keep(k);
    }
  }
  PrintInstruction(id, false);
  return std::move(out_);
}

}  // namespace hlo_text
}  // namespace internal

std::string PrintModule(const Module& module, const PrintOptions& options) {
  if (!CheckNotMovedFrom(module).ok()) return "";
  return hlo_text::Printer(module, options).Module_();
}

std::string PrintInstruction(const Module& module, InstrId id) {
  return hlo_text::Printer(module, {.metadata = false}).OneInstruction(id);
}

}  // namespace shardcall
