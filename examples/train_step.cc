// SPDX-License-Identifier: Apache-2.0
// A whole training step over all devices of its mesh, checked against numbers
// that another system computed:
//
//   train_step PROGRAM.hlo INPUTS.npz OUTPUTS.npz
//
// parses the program, partitions it, runs one device per thread, and compares
// every result with OUTPUTS.npz. It prints what the partitioner made of the
// program, what moves between the devices, and where the time goes. Exit 1 if
// something fails, 3 if a result is off by more than 1e-6 of its largest value.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/runtime/io/npz.h"
#include "shardcall/sharding/base/human_bytes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

constexpr double kTolerance = 1e-6;  // of an array's largest value

class Stopwatch {
 public:
  double Milliseconds() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

absl::StatusOr<std::shared_ptr<const std::string>> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError("cannot read " + path);
  return std::make_shared<const std::string>(std::istreambuf_iterator<char>(in),
                                             std::istreambuf_iterator<char>());
}

// Calls of registered targets; annotations that are written as custom calls are none.
int CountCustomCalls(const Module& module, const TargetRegistry& targets) {
  int calls = 0;
  for (int k = 0; k < module.num_instructions(); ++k) {
    const Instruction& i = module.instr(InstrId(k));
    if (i.opcode != Opcode::kCustomCall) continue;
    calls += targets.Find(i.as<CustomCallAttrs>().target, i.backend_config) != nullptr;
  }
  return calls;
}

void PrintCollectives(const LocalProgram& local) {
  std::printf("collectives\n");
  for (const auto& [opcode, total] : TotalsByOpcode(local)) {
    std::printf("  %-22s %4lld  %s\n", opcode.c_str(), static_cast<long long>(total.count),
                HumanBytes(total.bytes_weighted).c_str());
  }
  std::printf("sent by each device      %s\n", HumanBytes(TotalBytesMoved(local)).c_str());
}

// True if every result is close enough.
bool PrintDifferences(const std::vector<Tensor>& want, const std::vector<Tensor>& got) {
  double worst = 0;
  int worst_at = 0, bitwise = 0;
  bool ok = want.size() == got.size();
  for (size_t k = 0; k < std::min(want.size(), got.size()); ++k) {
    const OutputDifference d = Compare(want[k], got[k], /*exact=*/false);
    const double relative = d.largest > 0 ? d.max_abs_diff / d.largest : d.max_abs_diff;
    if (relative > worst) worst = relative, worst_at = static_cast<int>(k);
    bitwise += d.bitwise;
    ok = ok && d.ok && relative <= kTolerance;
  }
  std::printf("results                  %zu, %d of them bit for bit\n", want.size(), bitwise);
  std::printf("largest difference       %.2g of the largest value (result %d; %.0g is allowed)\n",
              worst, worst_at, kTolerance);
  return ok;
}

absl::StatusOr<bool> TrainStep(const std::string& program_path, const std::string& inputs_path,
                               const std::string& outputs_path) {
  TargetRegistry targets;    // how custom calls are sharded
  HandlerRegistry handlers;  // what they compute
  SHARDCALL_RETURN_IF_ERROR(RegisterBuiltinTargets(targets));
  SHARDCALL_RETURN_IF_ERROR(RegisterBuiltinHandlers(handlers));

  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const std::string> text, ReadFile(program_path));
  const Stopwatch parsing;
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ParseModule(text, std::make_shared<Context>(), program_path));
  const double parse_ms = parsing.Milliseconds();
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                             ReadNpz(inputs_path, "arg", ParameterLeaves(module)));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> want,
                             ReadNpz(outputs_path, "out", ResultLeaves(module)));
  const int calls = CountCustomCalls(module, targets);

  RunOptions options;
  options.partition.targets = &targets;
  options.handlers = &handlers;
  SHARDCALL_ASSIGN_OR_RETURN(std::unique_ptr<PartitionedProgram> program,
                             Partition(std::move(module), options.partition));
  const Stopwatch printing;
  const std::string printed = PrintModule(program->local.module);
  const double print_ms = printing.Milliseconds();
  const Stopwatch running;
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> got,
                             RunPartitioned(*program, inputs, options, /*communicator=*/nullptr));
  const double run_ms = running.Milliseconds();

  std::printf("devices                  %lld\n",
              static_cast<long long>(program->global->program.num_partitions));
  std::printf("instructions             %lld in (%d custom calls), %d out (%zu bytes of HLO)\n",
              static_cast<long long>(program->instructions_in), calls,
              program->local.module.num_instructions(), printed.size());
  PrintCollectives(program->local);
  std::printf("ops gathered for want of a strategy: %zu\n", program->plan.fallbacks.size());
  const bool ok = PrintDifferences(want, got);
  const StageTimes& t = program->times;
  std::printf(
      "time (ms)                parse %.2f, import %.2f, propagate %.2f, partition %.2f, "
      "cleanup %.2f, print %.2f, run %.1f\n",
      parse_ms, t.import / 1e3, t.propagate / 1e3, t.partition / 1e3, t.cleanup / 1e3, print_ms,
      run_ms);
  return ok;
}

}  // namespace
}  // namespace shardcall

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: train_step PROGRAM.hlo INPUTS.npz OUTPUTS.npz\n");
    return 2;
  }
  const absl::StatusOr<bool> ok = shardcall::TrainStep(argv[1], argv[2], argv[3]);
  if (!ok.ok()) {
    std::fprintf(stderr, "%s\n", std::string(ok.status().message()).c_str());
    return 1;
  }
  std::printf(*ok ? "equal to the reference\n" : "DIFFERS from the reference\n");
  return *ok ? 0 : 3;
}
