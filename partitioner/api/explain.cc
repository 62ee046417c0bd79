// SPDX-License-Identifier: Apache-2.0
// The texts of `explain`, and contracts over totals.
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/api/collective_reasons.h"
#include "shardcall/partitioner/api/conflicts.h"
#include "shardcall/partitioner/api/device_memory.h"
#include "shardcall/partitioner/api/page_content.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/api/warnings.h"
#include "shardcall/partitioner/ir/text/source_line.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/terminal_text.h"

namespace shardcall {
namespace {

std::string ExplainText(const PartitionedProgram& p, bool whole_reasons) {
  CollectiveReasons reasons(p, whole_reasons);
  const Program& program = p.global->program;
  std::string out =
      absl::StrFormat("%d devices, %d instructions in, %d per device out\n", program.num_partitions,
                      p.instructions_in, p.local.module.num_instructions());
  absl::StrAppend(&out, ConflictsText(*p.global, whole_reasons, kMostConflictsTold),
                  ChosenText(*p.global));
  for (const CollectiveRecord& r : p.local.collectives) {
    absl::StrAppend(&out, "\n%", p.local.module.instr(r.local).name, "  ", OpcodeText(r.opcode),
                    "  ", HumanBytes(r.bytes_moved), " sent per device, ");
    if (r.between_hosts > 0) {
      absl::StrAppend(&out, HumanBytes(r.between_hosts), " of it over slower links, ");
    }
    absl::StrAppend(&out, r.num_groups, r.num_groups == 1 ? " group of " : " groups of ",
                    r.group_size);
    if (r.trip_count != 1) absl::StrAppend(&out, ", ", r.trip_count, " times");
    absl::StrAppend(&out, "\n  for  ", CauseText(p, r), "\n");
    if (r.cause.consumer.valid()) {
      const std::string source = SourceLine(program.module, program.module.instr(r.cause.consumer));
      if (!source.empty()) absl::StrAppend(&out, "  at   ", source, "\n");
    }
    const std::string why = reasons.WhySharded(r);
    if (!why.empty()) absl::StrAppend(&out, "  why  ", why, "\n");
    const std::string wanted = reasons.WhyWanted(r);
    if (!wanted.empty()) absl::StrAppend(&out, "  and  ", wanted, "\n");
  }
  for (const ProgramWarning& w : Warnings(p)) {
    absl::StrAppend(&out, "\n", w.ToString(program.module), "\n");
  }
  absl::StrAppend(&out, "\ntotal sent per device and run: ", HumanBytes(TotalBytesMoved(p.local)),
                  "\n");
  for (const auto& [opcode, t] : TotalsByOpcode(p.local)) {
    absl::StrAppend(
        &out, absl::StrFormat("  %-20s %4d instructions, %6.0f executions, %s\n", opcode, t.count,
                              t.count_weighted, HumanBytes(t.bytes_weighted)));
  }
  const DeviceMemory memory = CountDeviceMemory(p.local.module);
  absl::StrAppend(&out, "memory of one device: ", HumanBytes(memory.Peak()), " (",
                  PartsText(memory),
                  memory.aliased == 0 ? std::string()
                                      : absl::StrCat("; ", HumanBytes(memory.aliased), " donated"),
                  ")\n");
  return out;
}

}  // namespace

std::string Explain(const PartitionedProgram& p, const SpmdOptions& options, ExplainFormat format,
                    bool whole_reasons) {
  switch (format) {
    case ExplainFormat::kJson: return ReportJson(p, options) + "\n";
    case ExplainFormat::kHtml: return ExplainPage(PageContentOf(p, options, whole_reasons));
    case ExplainFormat::kText: break;
  }
  return WithoutControls(ExplainText(p, whole_reasons));
}

absl::StatusOr<std::vector<ContractTerm>> ParseContract(absl::string_view text) {
  std::vector<ContractTerm> terms;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    part = absl::StripAsciiWhitespace(part);
    const size_t at = part.find_first_of("<>=!");
    ContractTerm term;
    Diagnostic d;
    d.code = "E220";
    d.message = absl::StrCat("a contract term cannot be read: \"", part, "\"");
    d.expected = "OPCODE=N, bytes<=N[KiB|MiB|GiB] or fallbacks=N";
    d.found = std::string(part);
    d.fix = "write for example \"all-gather=0, bytes<=1GiB\"";
    if (at == absl::string_view::npos || at == 0) return ToStatus(d);
    term.subject = std::string(absl::StripAsciiWhitespace(part.substr(0, at)));
    size_t end = at;
    while (end < part.size() &&
           absl::string_view("<>=!").find(part[end]) != absl::string_view::npos) {
      ++end;
    }
    term.relation = std::string(part.substr(at, end - at));
    static constexpr absl::string_view kRelations[] = {"=", "==", "!=", "<", "<=", ">", ">="};
    bool known = false;
    for (absl::string_view r : kRelations) known = known || r == term.relation;
    Opcode opcode;
    const bool subject_ok =
        term.subject == "bytes" || term.subject == "fallbacks" ||
        (OpcodeFromText(term.subject, &opcode) && HasTrait(opcode, kCollectiveOp));
    const absl::optional<double> amount = ParseBytes(part.substr(end));
    if (!known || !subject_ok || !amount.has_value()) return ToStatus(d);
    term.limit = *amount;
    terms.push_back(term);
  }
  return terms;
}

absl::Status CheckContract(const std::vector<ContractTerm>& terms, const PartitionedProgram& p) {
  const auto totals = TotalsByOpcode(p.local);
  std::string broken;
  for (const ContractTerm& t : terms) {
    double value = 0;
    if (t.subject == "bytes") {
      value = TotalBytesMoved(p.local);
    } else if (t.subject == "fallbacks") {
      value = static_cast<double>(p.plan.fallbacks.size());
    } else if (auto it = totals.find(t.subject); it != totals.end()) {
      value = static_cast<double>(it->second.count);
    }
    const std::string& r = t.relation;
    const bool holds = r == "<"    ? value < t.limit
                       : r == "<=" ? value <= t.limit
                       : r == ">"  ? value > t.limit
                       : r == ">=" ? value >= t.limit
                       : r == "!=" ? value != t.limit
                                   : value == t.limit;
    if (holds) continue;
    absl::StrAppend(&broken, broken.empty() ? "" : "; ", t.subject, " is ",
                    absl::StrFormat("%.0f", value), ", not ", t.relation, " ",
                    absl::StrFormat("%.15g", t.limit));
  }
  if (broken.empty()) return absl::OkStatus();
  Diagnostic d;
  d.code = "E221";
  d.message = absl::StrCat("the contract is broken: ", broken);
  d.fix = "read the causes with explain, or change the contract";
  return ToStatus(d, absl::StatusCode::kFailedPrecondition);
}

}  // namespace shardcall
