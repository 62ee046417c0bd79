// SPDX-License-Identifier: Apache-2.0
#include "tests/support/verify_text.h"

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/status.h"
#include "tests/support/test_targets.h"
#include "tests/support/write_case.h"

namespace shardcall {
namespace {

const TargetRegistry& ShippedTargets() {
  static const TargetRegistry* const kTargets = [] {
    auto* r = new TargetRegistry;
    SHARDCALL_CHECK(RegisterBuiltinTargets(*r).ok());
    return r;
  }();
  return *kTargets;
}

const HandlerRegistry& ShippedHandlers() {
  static const HandlerRegistry* const kHandlers = [] {
    auto* r = new HandlerRegistry;
    SHARDCALL_CHECK(RegisterBuiltinHandlers(*r).ok());
    return r;
  }();
  return *kHandlers;
}

}  // namespace

absl::StatusOr<Module> ParseText(const std::string& text) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module, ParseModule(std::make_shared<const std::string>(text),
                                                        std::make_shared<Context>(), "test.hlo"));
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, "test.hlo"));
  return module;
}

RunOptions ToRunOptions(const TextOptions& options) {
  RunOptions run;
  run.partition.num_partitions = options.num_partitions;
  run.partition.propagate = options.propagate;
  run.partition.targets = options.targets != nullptr ? options.targets : &ShippedTargets();
  run.partition.allow_replicate = options.allow_replicate;
  run.partition.spmd = options.spmd;
  run.partition.spmd.search = options.search;
  run.handlers = options.handlers != nullptr ? options.handlers : &ShippedHandlers();
  run.deadline = absl::Seconds(20);
  // Where programs overlap, every collective that can be apart from its end is, and
  // much is reordered.
  run.schedule.min_overlap_us = 0;
  run.schedule.cost.bandwidth = 1e5;
  return run;
}

absl::StatusOr<std::unique_ptr<PartitionedProgram>> PartitionText(const std::string& text,
                                                                  const TextOptions& options) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module, ParseText(text));
  return Partition(std::move(module), ToRunOptions(options).partition);
}

absl::StatusOr<VerifyResult> VerifyText(const std::string& text, const TextOptions& options) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module, ParseText(text));
  RunOptions run = ToRunOptions(options);
  run.overlap = text.size() % 2 == 0;  // about every second one
  return Verify(std::move(module), run, options.seed, {}, nullptr);
}

std::string WhyNotEqual(const std::string& text, const TextOptions& options) {
  const absl::StatusOr<VerifyResult> result = VerifyText(text, options);
  if (!result.ok()) return std::string(result.status().message());
  switch (result->status) {
    case VerifyResult::Status::kOk:
      // Kernels of one test alone are not known elsewhere.
      if (options.handlers == nullptr || options.handlers == &TestHandlers()) {
        WriteCaseIfAsked(text, ToRunOptions(options), options.seed);
      }
      return "";
    case VerifyResult::Status::kMismatch: return absl::StrCat("mismatch: ", result->reason);
    case VerifyResult::Status::kUnsupported: return absl::StrCat("unsupported: ", result->reason);
  }
  return "";
}

std::string LocalText(const PartitionedProgram& program) {
  PrintOptions options;
  options.metadata = false;
  return PrintModule(program.local.module, options);
}

int CountOpcode(const PartitionedProgram& program, Opcode opcode) {
  int n = 0;
  const Module& m = program.local.module;
  for (int i = 0; i < m.num_instructions(); ++i) n += m.instr(InstrId(i)).opcode == opcode;
  return n;
}

}  // namespace shardcall
