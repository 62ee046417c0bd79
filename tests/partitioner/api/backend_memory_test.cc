// SPDX-License-Identifier: Apache-2.0
// What a backend is taken to make of a program, to count its memory, computes the same.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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

// Runs the program, and what a backend is taken to make of it. False if that is the same program,
// or if it does not run here.
bool ExpectSameResults(PartitionedProgram* program, const RunOptions& running,
                       const MemoryRules& rules, bool exact, const std::string& name) {
  std::optional<Module> run = AsXlaRuns(program->local.module, rules);
  if (!run.has_value()) return false;
  EXPECT_TRUE(VerifyModule(*run, "").ok()) << name << VerifyModule(*run, "");
  if (!IsSmall(program->local.module)) return false;
  const Module& global = program->global->program.module;
  std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(global), 1);
  if (!exact) MakePositive(&inputs);  // sums in another order differ by their rounding only
  const auto wanted = RunPartitioned(*program, inputs, running, nullptr);
  if (!wanted.ok()) return false;
  program->local.module = *std::move(run);
  const auto got = RunPartitioned(*program, inputs, running, nullptr);
  EXPECT_TRUE(got.ok()) << name << got.status();
  if (!got.ok()) return false;
  for (size_t k = 0; k < wanted->size(); ++k) {
    const OutputDifference difference = Compare((*wanted)[k], (*got)[k], exact);
    EXPECT_TRUE(difference.ok) << name << " result " << k << " differs by "
                               << difference.max_abs_diff << " of " << difference.largest;
  }
  return true;
}

TEST(BackendMemory, ProgramsComputeTheSameAsTheyAreTakenToRun) {
  const TextOptions options = {.allow_replicate = {"all"}};
  int ran = 0;
  for (const auto& path : CorpusFiles("", ".gspmd.hlo")) {
    for (const MemoryRules* rules : {&kXlaCpuMemory, &kXlaGpuMemory}) {
      auto program = PartitionText(FileText(path), options);
      if (!program.ok()) continue;
      ran += ExpectSameResults(program->get(), ToRunOptions(options), *rules, false, path);
    }
  }
  EXPECT_GE(ran, 20);
}

TEST(BackendMemory, ASelectAndScatterSelectsAndAddsTheSameInItsExpansion) {
  for (const char* const window :
       {"size=3x3 stride=2x2 pad=0_1x1_1", "size=2x1 stride=1x2", "size=6x5 pad=5_5x4_4"}) {
    for (const std::string type : {"f32", "s32"}) {
      const std::string windows = absl::StrContains(window, "stride=2x2") ? "[3,3]"
                                  : absl::StrContains(window, "2x1")      ? "[5,3]"
                                                                          : "[11,9]";
      const std::string text = absl::StrReplaceAll(
          R"(HloModule m, num_partitions=2
ge {
  l = TYPE[] parameter(0)
  r = TYPE[] parameter(1)
  ROOT g = pred[] compare(l, r), direction=GE
}
add {
  l = TYPE[] parameter(0)
  r = TYPE[] parameter(1)
  ROOT s = TYPE[] add(l, r)
}
ENTRY e {
  x = TYPE[6,5] parameter(0)
  s = TYPEWINDOWS parameter(1)
  init = TYPE[] constant(1)
  ROOT y = TYPE[6,5] select-and-scatter(x, s, init), window={OPTIONS}, select=ge, scatter=add
})",
          {{"WINDOWS", windows}, {"OPTIONS", window}, {"TYPE", type}});
      auto program = PartitionText(text, {});
      ASSERT_TRUE(program.ok()) << program.status();
      EXPECT_TRUE(ExpectSameResults(program->get(), ToRunOptions({}), kXlaCpuMemory, true, text));
    }
  }
}

struct ConvolutionCase {
  const char *x, *w, *y, *window, *labels;
  bool reversed = false;  // the filter, as in the gradient of an input
};

TEST(BackendMemory, ConvolutionsComputeTheSameAsCallsOfCuDnn) {
  const ConvolutionCase cases[] = {
      {"[2,9,8,3]", "[3,3,3,4]", "[2,5,4,4]", "size=3x3 stride=2x2 pad=1_1x0_1", "b01f_01io->b01f"},
      {"[2,9,8,3]", "[3,3,3,4]", "[2,7,6,4]", "size=3x3", "b01f_01io->b01f"},
      {"[2,3,9,8]", "[4,3,3,3]", "[2,4,8,8]", "size=3x3 pad=0_1x2_0", "bf01_oi01->bf01"},
      {"[2,9,8,3]", "[3,3,3,4]", "[2,5,5,4]", "size=3x3 pad=-1_-1x-1_0", "b01f_01io->b01f"},
      {"[2,4,4,3]", "[3,2,3,4]", "[2,8,7,4]", "size=3x2 pad=2_1x0_1 lhs_dilate=2x2",
       "b01f_01io->b01f"},
      // Gradients of inputs: one of as much as is made, and one of less.
      {"[2,4,4,3]", "[3,3,4,3]", "[2,8,8,4]", "size=3x3 pad=2_1x0_3 lhs_dilate=2x2",
       "b01f_01oi->b01f", true},
      {"[2,4,4,3]", "[3,3,4,3]", "[2,7,7,4]", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2",
       "b01f_01oi->b01f", true},
      {"[2,4,4,3]", "[1,1,4,3]", "[2,8,8,4]", "size=1x1 pad=0_1x0_1 lhs_dilate=2x2",
       "b01f_01oi->b01f"},
      // Gradients of filters.
      {"[2,8,8,3]", "[2,4,4,5]", "[3,3,3,5]", "size=4x4 pad=0_1x0_1 rhs_dilate=2x2",
       "f01b_i01o->01bf"},
      {"[2,8,8,3]", "[2,8,8,5]", "[3,3,3,5]", "size=8x8 pad=1_1x2_0", "f01b_i01o->01bf"},
      {"[2,9,8,4]", "[3,3,2,4]", "[2,9,8,4]", "size=3x3 pad=1_1x0_2", "b01f_01io->b01f"},
      {"[2,9,3]", "[3,3,4]", "[2,5,4]", "size=3 stride=2 pad=0_2", "b0f_0io->b0f"},
  };
  for (const ConvolutionCase& c : cases) {
    const bool grouped = absl::StrContains(c.w, "[3,3,2,4]");
    std::string text = absl::StrReplaceAll(
        R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32$X parameter(0)
  w = f32$W parameter(1)
  $V
  ROOT y = f32$Y convolution(x, v), window={$OPTIONS}, dim_labels=$LABELS$GROUPS
})",
        {{"$X", c.x},
         {"$W", c.w},
         {"$Y", c.y},
         {"$OPTIONS", c.window},
         {"$LABELS", c.labels},
         {"$GROUPS", grouped ? ", feature_group_count=2" : ""},
         {"$V", absl::StrCat("v = f32", c.w,
                             c.reversed ? " reverse(w), dimensions={0,1}" : " negate(w)")}});
    auto program = PartitionText(text, {});
    ASSERT_TRUE(program.ok()) << program.status() << text;
    EXPECT_TRUE(ExpectSameResults(program->get(), ToRunOptions({}), kXlaGpuMemory, true, text))
        << text;
  }
}

}  // namespace
}  // namespace shardcall
