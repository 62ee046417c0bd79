// SPDX-License-Identifier: Apache-2.0
#include "tests/support/write_case.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/runtime/io/npz.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

absl::Status WriteCase(const std::string& directory, const std::string& name,
                       const std::string& text, const RunOptions& options, uint64_t seed) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module, ParseModule(std::make_shared<const std::string>(text),
                                                        std::make_shared<Context>(), "case.hlo"));
  const std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(module), seed);
  SHARDCALL_ASSIGN_OR_RETURN(const std::unique_ptr<PartitionedProgram> program,
                             Partition(std::move(module), options.partition));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                             RunPartitioned(*program, inputs, options, nullptr));
  std::error_code ignored;  // a folder that cannot be made is told by the first file
  std::filesystem::create_directories(directory, ignored);
  const std::string place = absl::StrCat(directory, "/", name);
  SHARDCALL_RETURN_IF_ERROR(WriteNpz(place + ".inputs.npz", "arg", inputs));
  SHARDCALL_RETURN_IF_ERROR(WriteNpz(place + ".outputs.npz", "out", outputs));
  WriteFile(place + ".hlo", text);
  WriteFile(place + ".json", ReportJson(*program, options.partition.spmd));
  WriteFile(place + ".local.hlo", PrintModule(program->local.module));
  return absl::OkStatus();
}

void WriteCaseIfAsked(const std::string& text, const RunOptions& options, uint64_t seed) {
  static const char* const kDirectory = std::getenv("SHARDCALL_CASES");
  if (kDirectory == nullptr) return;
  static const char* const kEvery = std::getenv("SHARDCALL_CASES_EVERY");
  static int count = 0;
  if (count++ % std::max(1, kEvery == nullptr ? 1 : std::atoi(kEvery)) != 0) return;
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string name =
      test == nullptr ? "case" : absl::StrCat(test->test_suite_name(), ".", test->name());
  const absl::Status written =
      WriteCase(kDirectory, absl::StrCat(name, ".", count), text, options, seed);
  (void)written;  // what does not partition or run is the test's to say
}

}  // namespace shardcall
