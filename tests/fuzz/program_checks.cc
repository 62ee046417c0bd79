// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/program_checks.h"

#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/sharding/base/status.h"
#include "tests/support/charged.h"
#include "tests/support/test_targets.h"

namespace shardcall {
namespace {

absl::StatusOr<Module> ReadValid(const std::string& text) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ParseModule(std::make_shared<const std::string>(text),
                                         std::make_shared<Context>(), "program.hlo"));
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, "program.hlo"));
  return module;
}

std::string Message(absl::string_view what, const absl::Status& status) {
  return absl::StrCat(what, ": ", std::string(status.ToString()));
}

std::string FirstDifference(const std::string& a, const std::string& b) {
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const size_t line = a.rfind('\n', at) == std::string::npos ? 0 : a.rfind('\n', at) + 1;
  return absl::StrCat("\n  ", a.substr(line, 240), "\n--- against\n  ",
                      b.substr(std::min(line, b.size()), 240));
}

std::string CompareAll(absl::string_view what, const std::vector<Tensor>& reference,
                       const std::vector<Tensor>& got, bool bitwise) {
  if (reference.size() != got.size()) return absl::StrCat(what, ": another number of results");
  for (size_t k = 0; k < reference.size(); ++k) {
    const OutputDifference d = Compare(reference[k], got[k], /*exact=*/true);
    if (bitwise ? d.bitwise : d.ok) continue;
    // Fractions: functions may round otherwise in another place of a vector.
    // Whole numbers, which are below 2^22, differ by whole numbers.
    const bool fractions = d.max_abs_diff != std::floor(d.max_abs_diff) || d.largest > 0x1p22;
    if (!bitwise && fractions && d.max_abs_diff <= 1e-6 * d.largest) continue;
    return absl::StrCat(what, ": result ", k, " (", TypeAndDims(reference[k]), ") differs by ",
                        d.max_abs_diff, ", its largest value is ", d.largest);
  }
  return "";
}

struct Reference {
  std::vector<Tensor> inputs, outputs;
  RunOptions options;
};

// One way of partitioning, against the reference; `local` gets the text.
std::string CheckPartitioned(const std::string& text, absl::string_view what,
                             const Reference& program, std::string* local, CheckCounts* counts) {
  absl::StatusOr<Module> module = ReadValid(text);
  if (!module.ok()) return Message(what, module.status());
  const auto partitioned = Partition(*std::move(module), program.options.partition);
  if (absl::IsUnimplemented(partitioned.status())) {
    ++counts->unsupported;
    return "";
  }
  if (!partitioned.ok()) return Message(absl::StrCat(what, ", partitioning"), partitioned.status());
  *local = PrintModule((*partitioned)->local.module);
  ++counts->partitioned;
  const std::string charged = WhyChargedOtherwise(**partitioned, program.options.partition.spmd);
  if (!charged.empty()) return absl::StrCat(what, ": ", charged);
  const auto outputs = RunPartitioned(**partitioned, program.inputs, program.options, nullptr);
  if (!outputs.ok()) return Message(absl::StrCat(what, ", running"), outputs.status());
  return CompareAll(what, program.outputs, *outputs, /*bitwise=*/false);
}

std::string CheckReplay(const std::string& text, const std::string& local, Reference program) {
  const auto propagated = PropagateShardings(*ReadValid(text), program.options.partition);
  if (!propagated.ok()) return Message("propagation", propagated.status());
  const auto shown = ExportShardings((*propagated)->program, (*propagated)->shardings.sharding);
  if (absl::IsUnimplemented(shown.status())) return "";
  if (!shown.ok()) return Message("export of shardings", shown.status());
  const std::string shown_text = PrintModule(*shown);
  absl::StatusOr<Module> module = ReadValid(shown_text);
  if (!module.ok()) return Message("propagated text", module.status());
  program.options.partition.propagate = false;
  const auto again = Partition(*std::move(module), program.options.partition);
  if (!again.ok()) return Message("propagated text, partitioning", again.status());
  const std::string replayed = PrintModule((*again)->local.module);
  if (replayed == local) return "";
  return "partitioning the propagated text gives another module: " +
         FirstDifference(local, replayed);
}

// A backend that lacks some collectives: each set that can stand for all others in its turn.
BackendLimits SomeBackend(uint64_t k) {
  std::vector<BackendLimits> sets;
  for (uint32_t has = 1; has < 1u << 5; ++has) {
    if (has != 1u << static_cast<int>(Collective::kReduceScatter)) sets.push_back({~has & 0x7f});
  }
  BackendLimits out = sets[k % sets.size()];
  // What programs have of these themselves, nothing can stand for.
  out.lacks &= ~(1u << static_cast<int>(Collective::kRaggedAllToAll));
  out.groups = static_cast<GroupForm>(k / sets.size() % 3);
  return out;
}

}  // namespace

std::string CheckProgram(const std::string& text, uint64_t seed, CheckCounts* counts,
                         const std::string& reference) {
  const absl::StatusOr<Module> module = ReadValid(text);
  if (!module.ok()) return Message("reading", module.status());
  ++counts->programs;
  counts->instructions += module->num_instructions();
  const std::string printed = PrintModule(*module);
  const absl::StatusOr<Module> again = ReadValid(printed);
  if (!again.ok()) return Message("reading printed text", again.status());
  if (PrintModule(*again) != printed) {
    return "printing is no fixed point: " + FirstDifference(printed, PrintModule(*again));
  }

  Reference program;
  RunOptions& options = program.options;
  options.partition.targets = &TestTargets();
  options.handlers = &TestHandlers();
  options.deadline = absl::Seconds(60);
  options.check_replicas = true;
  if (seed % 4 == 0) {  // plans for pairs of devices with a slow network between them
    CostModel& cost = options.partition.spmd.cost;
    cost.host_devices = 2;
    cost.network = cost.bandwidth / 20;
  }
  if (seed % 4 == 2) {  // and others that send little, whatever they compute and however often
    options.partition.spmd.cost.bandwidth = 1e6;
    options.partition.spmd.cost.latency = 1e-9;
  }
  if (seed % 4 == 1) options.partition.spmd.cost.backend = SomeBackend(seed / 4);
  program.inputs = RandomInputs(ParameterLeaves(*module), seed);
  const absl::StatusOr<Module> meaning = ReadValid(reference.empty() ? text : reference);
  if (!meaning.ok()) return Message("reading the reference", meaning.status());
  absl::StatusOr<std::vector<Tensor>> outputs =
      Evaluate(*meaning, program.inputs, options.handlers);
  if (absl::IsUnimplemented(outputs.status())) {
    ++counts->unsupported;
    return "";
  }
  if (!outputs.ok()) return Message("evaluating", outputs.status());
  program.outputs = *std::move(outputs);
  for (const Module* m : {&*module, &*again}) {
    if (!reference.empty()) break;
    const auto repeated = Evaluate(*m, program.inputs, options.handlers);
    if (!repeated.ok()) return Message("evaluating again", repeated.status());
    const std::string why = CompareAll("evaluating again", program.outputs, *repeated, true);
    if (!why.empty()) return why;
  }

  std::string local, plain_local;
  std::string why = CheckPartitioned(text, "partitioned", program, &local, counts);
  if (why.empty() && !local.empty()) why = CheckReplay(text, local, program);
  options.partition.propagate = false;
  if (why.empty()) {
    why = CheckPartitioned(text, "partitioned without propagation", program, &plain_local, counts);
  }
  return why;
}

}  // namespace shardcall
