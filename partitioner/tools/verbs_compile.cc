// SPDX-License-Identifier: Apache-2.0
// The verbs that compile: print, propagate, partition, explain.
#include <sys/stat.h>

#include <chrono>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/api/conflicts.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/api/warnings.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/propagation/reasons.h"
#include "shardcall/partitioner/tools/command.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/terminal_text.h"

namespace shardcall {
inline namespace internal {
namespace {

void Warn(const std::vector<std::string>& warnings) {
  for (const std::string& w : warnings) std::fprintf(stderr, "%s\n", w.c_str());
}

// Parses one bit for each of `leaves` flat values, or one for all.
absl::Status ParseBits(const Flags& flags, const char* name, int leaves, std::vector<bool>* out) {
  if (!flags.Has(name)) return absl::OkStatus();
  out->clear();
  for (absl::string_view bit : absl::StrSplit(flags.Get(name), ',', absl::SkipWhitespace())) {
    if (bit != "0" && bit != "1") {
      return absl::InvalidArgumentError(absl::StrCat("--", name, ": expected a list of 0 and 1"));
    }
    out->push_back(bit == "1");
  }
  if (out->size() != 1 && static_cast<int>(out->size()) != leaves) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, ": expected 1 or ", leaves, " of them, found ", out->size()));
  }
  return absl::OkStatus();
}

// A line for each value, and then the conflicts over axes.
std::string TraceText(const PropagatedProgram& p, bool whole_reasons) {
  std::string out;
  Reasons reasons(p.program, p.shardings, whole_reasons);
  const Module& m = p.program.module;
  for (int i = 0; i < m.num_instructions(); ++i) {
    const InstrId id(i);
    for (int k = 0; k < m.instr(id).shape->num_leaves(); ++k) {
      const LeafId leaf = p.program.leaves.leaf(id, k);
      const Sharding* s = p.shardings.sharding[leaf.value];
      if (s == nullptr) continue;
      absl::StrAppend(&out, "%", m.instr(id).name);
      if (m.instr(id).shape->IsTuple()) absl::StrAppend(&out, "#", k);
      absl::StrAppend(&out, " ", s->ToString(), "  ", reasons.Of(leaf), "\n");
    }
  }
  absl::StrAppend(&out, ConflictsText(p, whole_reasons, p.shardings.met.size()));
  absl::StrAppend(&out, ChosenText(p));
  return out;
}

std::string RulesText(const PropagatedProgram& p) {
  std::string out;
  const Module& m = p.program.module;
  for (int i = 0; i < m.num_instructions(); ++i) {
    const ShardingRule* rule = p.rules->rule(InstrId(i));
    if (rule == nullptr) continue;
    absl::StrAppend(&out, "%", m.instr(InstrId(i)).name, " ",
                    OpcodeText(m.instr(InstrId(i)).opcode), "  ", rule->ToString(), "\n");
  }
  return out;
}

}  // namespace

int RunPrint(const Flags& flags) {
  if (absl::Status s = OneInput(flags); !s.ok()) return FailUsage(s);
  absl::StatusOr<std::unique_ptr<Session>> session = MakeSession(flags);
  if (!session.ok()) return Fail(session.status());
  absl::StatusOr<Module> module = LoadModule(flags.positional()[0], **session);
  if (!module.ok()) return Fail(module.status());
  const PrintOptions text = {.metadata = !flags.Has("no-metadata"),
                             .short_form = flags.Has("short")};
  const absl::Status written = WriteModule(flags.Get("o"), *module, ProtoFormOf(*module), text);
  return written.ok() ? kExitOk : Fail(written);
}

int RunPropagate(const Flags& flags) {
  if (absl::Status s = OneInput(flags); !s.ok()) return FailUsage(s);
  absl::StatusOr<std::unique_ptr<Session>> session = MakeSession(flags);
  if (!session.ok()) return Fail(session.status());
  absl::StatusOr<Module> module = LoadProgram(flags, **session);
  if (!module.ok()) return Fail(module.status());
  if (absl::Status s =
          ParseBits(flags, "allow-output", static_cast<int>(ResultLeaves(*module).size()),
                    &module->header.propagate_to_output);
      !s.ok()) {
    return FailUsage(s);
  }
  if (absl::Status s =
          ParseBits(flags, "allow-parameters", static_cast<int>(ParameterLeaves(*module).size()),
                    &module->header.propagate_to_parameters);
      !s.ok()) {
    return FailUsage(s);
  }
  const ProtoForm form = ProtoFormOf(*module);
  absl::StatusOr<std::unique_ptr<PropagatedProgram>> p =
      PropagateShardings(*std::move(module), (*session)->options);
  if (!p.ok()) return Fail(p.status());
  Warn((*p)->program.warnings);
  absl::Status written;
  if (flags.Has("trace")) {
    written =
        WriteOutput(flags.Get("o"), WithoutControls(TraceText(**p, flags.Has("whole-reasons"))));
  } else if (flags.Has("rules")) {
    written = WriteOutput(flags.Get("o"), WithoutControls(RulesText(**p)));
  } else {
    ExportOptions options;
    options.named = flags.Has("named");
    absl::StatusOr<Module> out = ExportShardings((*p)->program, (*p)->shardings.sharding, options);
    if (!out.ok()) return Fail(out.status());
    written = WriteModule(flags.Get("o"), *out, form);
  }
  return written.ok() ? kExitOk : Fail(written);
}

int RunPartition(const Flags& flags) {
  if (absl::Status s = OneInput(flags); !s.ok()) return FailUsage(s);
  absl::StatusOr<std::unique_ptr<Session>> session = MakeSession(flags);
  if (!session.ok()) return Fail(session.status());
  PartitionOptions& options = (*session)->options;
  double parse_us = 0;
  absl::StatusOr<Module> module = LoadProgram(flags, **session, &parse_us);
  if (!module.ok()) return Fail(module.status());
  absl::Status dumped;
  if (flags.Has("dump")) {
    const std::string dir = flags.Get("dump");
    mkdir(dir.c_str(), 0777);  // errors are reported by the first write
    int number = 0;
    options.dump = [&dumped, dir, number](absl::string_view stage,
                                          const std::string& text) mutable {
      const absl::Status s =
          WriteOutput(absl::StrFormat("%s/%02d_%s.txt", dir, number++, std::string(stage)), text);
      if (dumped.ok()) dumped = s;
    };
  }
  const ProtoForm form = ProtoFormOf(*module);
  absl::StatusOr<std::unique_ptr<PartitionedProgram>> p = Partition(*std::move(module), options);
  if (!p.ok()) return Fail(p.status());
  absl::StatusOr<absl::optional<Module>> overlapped = absl::optional<Module>();
  if (flags.Has("overlap")) {
    overlapped = Overlapped((*p)->local.module, (*session)->schedule);
  }
  if (!overlapped.ok()) return Fail(overlapped.status());
  const Module& result = *overlapped ? **overlapped : (*p)->local.module;
  if (options.dump && *overlapped) options.dump("overlap", PrintModule(result));
  if (!dumped.ok()) return Fail(dumped);
  for (const ProgramWarning& w : Warnings(**p)) {
    if (!w.on_request) Warn({w.ToString((*p)->global->program.module)});
  }
  (*p)->times.parse = parse_us;
  const auto start = std::chrono::steady_clock::now();
  const absl::Status written = WriteModule(flags.Get("o"), result, form);
  (*p)->times.print =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  if (!written.ok()) return Fail(written);
  if (flags.Has("report")) {
    const absl::Status s = WriteOutput(flags.Get("report"), ReportJson(**p, options.spmd) + "\n");
    if (!s.ok()) return Fail(s);
  }
  return kExitOk;
}

int RunExplain(const Flags& flags) {
  if (absl::Status s = OneInput(flags); !s.ok()) return FailUsage(s);
  const std::string format = flags.Get("format", "text");
  if (format != "text" && format != "json" && format != "html") {
    return FailUsage(absl::InvalidArgumentError("--format: expected text, json or html"));
  }
  absl::StatusOr<std::vector<ContractTerm>> terms = ParseContract(flags.Get("expect"));
  if (!terms.ok()) return FailUsage(terms.status());
  absl::StatusOr<std::unique_ptr<Session>> session = MakeSession(flags);
  if (!session.ok()) return Fail(session.status());
  absl::StatusOr<Module> module = LoadProgram(flags, **session);
  if (!module.ok()) return Fail(module.status());
  absl::StatusOr<std::unique_ptr<PartitionedProgram>> p =
      Partition(*std::move(module), (*session)->options);
  if (!p.ok()) return Fail(p.status());
  const std::string text = Explain(**p, (*session)->options.spmd,
                                   format == "json"   ? ExplainFormat::kJson
                                   : format == "html" ? ExplainFormat::kHtml
                                                      : ExplainFormat::kText,
                                   flags.Has("whole-reasons"));
  if (absl::Status s = WriteOutput(flags.Get("o"), text); !s.ok()) return Fail(s);
  const absl::Status contract = CheckContract(*terms, **p);
  if (contract.ok()) return kExitOk;
  Fail(contract);
  return kExitMismatch;
}

}  // namespace internal
}  // namespace shardcall
