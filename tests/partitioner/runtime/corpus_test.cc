// SPDX-License-Identifier: Apache-2.0
// Programs that JAX dumped, run on one device (or, with a manual region, on
// global arrays by all) against the numbers that JAX computed: bitwise where nothing in the program
// rounds, else closely.
#include "tests/support/corpus.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/execute/executor.h"
#include "shardcall/partitioner/runtime/io/npz.h"
#include "shardcall/partitioner/runtime/lower/lower.h"
#include "tests/partitioner/runtime/compare.h"

namespace shardcall {
namespace {

namespace fs = std::filesystem;

std::string Text(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Stems of programs, "mlp_fwd_d4m2.sdy", that have inputs and outputs. Of calls of
// custom_partitioning no dump holds the function.
std::vector<std::string> Programs() {
  std::vector<std::string> programs;
  for (const fs::path& path : CorpusFiles()) {
    const std::string stem = path.stem().string();
    const std::string base = stem.substr(0, stem.rfind('.'));
    if (fs::exists(CorpusFolder() / (base + ".inputs.npz")) &&
        fs::exists(CorpusFolder() / (base + ".outputs.npz")) &&
        !absl::StrContains(Text(path), "\"CustomSPMDPartitioning\"")) {
      programs.push_back(stem);
    }
  }
  return programs;
}

// Ops whose results differ in the last place from one library to the next, and
// those that round sums.
bool IsInexact(const Module& m, const Instruction& i) {
  switch (i.opcode) {
    case Opcode::kExponential:
    case Opcode::kExponentialMinusOne:
    case Opcode::kLog:
    case Opcode::kLogPlusOne:
    case Opcode::kSine:
    case Opcode::kCosine:
    case Opcode::kTan:
    case Opcode::kTanh:
    case Opcode::kErf:
    case Opcode::kCbrt:
    case Opcode::kAtan2:
    case Opcode::kDivide:
    case Opcode::kSqrt:
    case Opcode::kRsqrt:
    case Opcode::kPower:
    case Opcode::kLogistic:
    case Opcode::kFft:
    case Opcode::kCholesky:
    case Opcode::kTriangularSolve:
      return IsFloat(m.instr(m.operands(i)[0]).shape->element_type()) ||
             IsComplex(m.instr(m.operands(i)[0]).shape->element_type());
    case Opcode::kCustomCall: {
      const absl::string_view target = i.as<CustomCallAttrs>().target;
      return target != "Sharding" && !absl::StartsWith(target, "xla.sdy.");
    }
    default: return false;
  }
}

// Eigenvectors and singular vectors of almost equal values turn with every rounding,
// and LAPACK rounds by the machine that it is on.
bool MakesVectors(const Instruction& i) {
  if (i.opcode != Opcode::kCustomCall) return false;
  const std::string target(absl::string_view(i.as<CustomCallAttrs>().target));
  return absl::StrContains(target, "syevd") || absl::StrContains(target, "gesdd");
}

double Tolerance(const Module& m, ElementType type) {
  bool inexact = false, vectors = false, bf16 = type == ElementType::kBF16;
  for (int i = 0; i < m.num_instructions(); ++i) {
    vectors = vectors || MakesVectors(m.instr(InstrId(i)));
    inexact = inexact || IsInexact(m, m.instr(InstrId(i)));
    const Shape& shape = *m.instr(InstrId(i)).shape;
    bf16 = bf16 || shape.element_type() == ElementType::kBF16;
  }
  if (!inexact) return 0;
  return bf16 ? 1e-2 : vectors ? 1e-5 : 1e-6;
}

TEST(Corpus, HasProgramsWithNumbers) { EXPECT_GT(Programs().size(), 40); }

class CorpusTest : public testing::TestWithParam<std::string> {};

TEST_P(CorpusTest, GivesTheNumbersOfJax) {
  const std::string stem = (CorpusFolder() / GetParam()).string();
  absl::StatusOr<Module> module =
      ParseModule(std::make_shared<const std::string>(Text(stem + ".hlo")),
                  std::make_shared<Context>(), GetParam());
  ASSERT_TRUE(module.ok()) << module.status();
  // With a manual region: all devices on global arrays, meeting in its collectives.
  LowerOptions options;
  options.global_mode = HasManualRegion(*module);
  absl::StatusOr<std::shared_ptr<const DeviceProgram>> program = Lower(*module, options);
  ASSERT_TRUE(program.ok()) << program.status();

  HandlerRegistry handlers;
  ASSERT_TRUE(RegisterBuiltinHandlers(handlers).ok());
  for (const auto& [target, instruction, config] : (*program)->targets) {
    const auto handler = handlers.Find(target, "Host", config);
    ASSERT_TRUE(handler.ok()) << handler.status();
  }
  const std::string base = stem.substr(0, stem.rfind('.'));
  auto arguments = ReadNpz(base + ".inputs.npz", "arg", (*program)->parameters);
  ASSERT_TRUE(arguments.ok()) << arguments.status();
  auto expected = ReadNpz(base + ".outputs.npz", "out", (*program)->results);
  ASSERT_TRUE(expected.ok()) << expected.status();
  absl::StatusOr<std::vector<Tensor>> results;
  if (options.global_mode) {
    auto all =
        RunOnThreads(**program, {*arguments}, static_cast<int>(module->header.num_partitions),
                     &handlers, absl::Seconds(60));
    ASSERT_TRUE(all.ok()) << all.status();
    for (const std::vector<Tensor>& device : *all) {
      for (size_t k = 0; k < device.size(); ++k) {
        EXPECT_TRUE(BitwiseEqual(device[k], (*all)[0][k])) << "devices differ in result " << k;
      }
    }
    results = (*all)[0];
  } else {
    DeviceContext device;
    device.handlers = &handlers;
    results = Execute(**program, *std::move(arguments), device);
  }
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), expected->size());
  for (size_t k = 0; k < results->size(); ++k) {
    EXPECT_EQ(Difference((*results)[k], (*expected)[k], Tolerance(*module, (*expected)[k].type())),
              "")
        << "result " << k;
  }
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(OfJax, CorpusTest, testing::ValuesIn(Programs()), TestName);

}  // namespace
}  // namespace shardcall
