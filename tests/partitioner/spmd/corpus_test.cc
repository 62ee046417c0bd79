// SPDX-License-Identifier: Apache-2.0
// Programs that JAX dumped: what their plans charge is what is emitted.
#include "tests/support/corpus.h"

#include <memory>

#include "gtest/gtest.h"
#include "shardcall/partitioner/bindings/manifest/manifest.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/whole_file.h"
#include "tests/support/charged.h"

namespace shardcall {
namespace {

TEST(Corpus, PlansChargeWhatIsEmitted) {
  TargetRegistry targets;
  ASSERT_TRUE(RegisterBuiltinTargets(targets).ok());
  for (const char* manifest : {"custom_calls.json", "custom_partitioning.json"}) {
    const std::string path = std::string(SHARDCALL_SOURCE_DIR) + "/tests/data/plugins/" + manifest;
    const absl::Status loaded = LoadManifestFile(path, &targets);
    ASSERT_TRUE(loaded.ok()) << loaded;
  }
  PartitionOptions options;
  options.targets = &targets;
  int partitioned = 0;
  for (const std::filesystem::path& path : CorpusFiles()) {
    const absl::StatusOr<std::string> text = ReadWholeFile(path.string());
    ASSERT_TRUE(text.ok()) << text.status();
    absl::StatusOr<Module> module =
        ParseModule(std::make_shared<const std::string>(*text), std::make_shared<Context>(),
                    path.filename().string());
    ASSERT_TRUE(module.ok()) << path << ": " << module.status();
    const auto program = Partition(*std::move(module), options);
    ASSERT_TRUE(program.ok()) << path << ": " << program.status();
    EXPECT_EQ(WhyChargedOtherwise(**program, options.spmd), "") << path;
    ++partitioned;
  }
  EXPECT_GE(partitioned, 20);
}

}  // namespace
}  // namespace shardcall
