// SPDX-License-Identifier: Apache-2.0
// What a backend is taken to make of a program, to count its memory, computes the same.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "shardcall/partitioner/ir/memory/memory_rules.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/pass/backend/as_xla_runs.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "tests/support/corpus.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

// Larger programs take too long to run, and more devices.
constexpr int kMostInstructions = 3000;
constexpr int64_t kMostElements = 1 << 16;
constexpr int kMostDevices = 8;

std::string FileText(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool IsSmall(const Module& m) {
  if (m.num_instructions() > kMostInstructions || m.header.num_partitions > kMostDevices) {
    return false;
  }
  for (int k = 0; k < m.num_instructions(); ++k) {
    if (m.instr(InstrId(k)).shape->num_elements() > kMostElements) return false;
  }
  return true;
}

TEST(BackendMemory, ProgramsComputeTheSameAsTheyAreTakenToRun) {
  int ran = 0;
  for (const auto& path : CorpusFiles("", ".gspmd.hlo")) {
    for (const MemoryRules* rules : {&kXlaCpuMemory, &kXlaGpuMemory}) {
      const TextOptions options = {.allow_replicate = {"all"}};
      const RunOptions running = ToRunOptions(options);
      auto partitioned = PartitionText(FileText(path), options);
      if (!partitioned.ok()) continue;
      PartitionedProgram* const program = partitioned->get();
      std::optional<Module> run = AsXlaRuns(program->local.module, *rules);
      if (!run.has_value()) continue;
      EXPECT_TRUE(VerifyModule(*run, "").ok()) << path << VerifyModule(*run, "");
      if (!IsSmall(program->local.module)) continue;
      const Module& global = program->global->program.module;
      std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(global), 1);
      MakePositive(&inputs);  // sums in another order differ by their rounding only
      const auto wanted = RunPartitioned(*program, inputs, running, nullptr);
      if (!wanted.ok()) continue;
      program->local.module = *std::move(run);
      const auto got = RunPartitioned(*program, inputs, running, nullptr);
      ASSERT_TRUE(got.ok()) << path << got.status();
      for (size_t k = 0; k < wanted->size(); ++k) {
        const OutputDifference difference = Compare((*wanted)[k], (*got)[k], false);
        EXPECT_TRUE(difference.ok) << path << " result " << k << " differs by "
                                   << difference.max_abs_diff << " of " << difference.largest;
      }
      ++ran;
    }
  }
  EXPECT_GE(ran, 20);
}

}  // namespace
}  // namespace shardcall
