// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/stablehlo/stablehlo_input.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

TEST(StablehloInput, ModulesAreRecognisedAsTextAndBytecode) {
  for (const char* text :
       {"module @jit_f attributes {mhlo.num_partitions = 8 : i32} {\n", "module {\n}\n",
        "  // a comment\n#loc = loc(\"x\")\n!t = tensor<2xf32>\nmodule @m {", "builtin.module {",
        "\"builtin.module\"() ({", "func.func @main(%a: tensor<2xf32>) {",
        "ML\xefR\x06StableHLO"}) {
    EXPECT_TRUE(LooksLikeStablehlo(text)) << text;
  }
}

TEST(StablehloInput, HloAndOtherTextIsNot) {
  for (const char* text :
       {"", "HloModule m\n", "// only a comment", "// a comment\nHloModule m\n", "modular {",
        "module", "\x0a\x05hello", "ENTRY main { ROOT a = f32[] parameter(0) }", "ML", "#"}) {
    EXPECT_FALSE(LooksLikeStablehlo(text)) << text;
  }
}

TEST(StablehloInput, TheTextSaysForHowManyDevicesItIs) {
  EXPECT_EQ(StablehloPartitions("module @f attributes {mhlo.num_partitions = 16 : i32} {}"), 16);
  EXPECT_EQ(StablehloPartitions("module @f {}"), 0);
  EXPECT_EQ(StablehloPartitions("module attributes {mhlo.num_partitions = x} {}"), 0);
  EXPECT_EQ(StablehloPartitions("ML\xefR mhlo.num_partitions = 16 : i32"), 0);
}

TEST(StablehloInput, ReadersOfHloSayWhatItIs) {
  const auto text = std::make_shared<const std::string>("module @jit_f {\n}\n");
  const absl::StatusOr<Module> parsed = ParseModule(text, std::make_shared<Context>(), "f.mlir");
  EXPECT_EQ(DiagnosticCode(parsed.status()), "E035");
  EXPECT_NE(parsed.status().message().find("--converter"), std::string::npos);
  EXPECT_EQ(DiagnosticCode(ReadModuleProto("ML\xefR\x06StableHLO_v1.13.3",
                                           std::make_shared<Context>(), "f.mlirbc")
                               .status()),
            "E035");
}

}  // namespace
}  // namespace shardcall
