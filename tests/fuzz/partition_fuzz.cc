// SPDX-License-Identifier: Apache-2.0
// Whatever verifies is partitioned, or refused with a code. The result verifies
// (Partition reports one that does not as kInternal), is read again from its
// text, and comes out the same from the propagated text.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/fuzz/require.h"

namespace shardcall {
namespace {

absl::StatusOr<Module> ParseValid(std::string text) {
  absl::StatusOr<Module> module = ParseModule(std::make_shared<const std::string>(std::move(text)),
                                              std::make_shared<Context>(), "f.hlo");
  if (!module.ok()) return module;
  const absl::Status status = VerifyModule(*module, "f.hlo");
  if (!status.ok()) return status;
  return module;
}

void Try(const std::string& text) {
  absl::StatusOr<Module> module = ParseValid(text);
  if (!module.ok()) return;
  static const TargetRegistry* const kTargets = [] {
    auto* targets = new TargetRegistry;
    FuzzRequireDiagnosed(RegisterBuiltinTargets(*targets));
    return targets;
  }();
  PartitionOptions options;
  options.targets = kTargets;
  if (!module->header.has_num_partitions) options.num_partitions = 4;
  options.allow_replicate = {"all"};
  const auto propagated = PropagateShardings(*ParseValid(text), options);
  const auto partitioned = Partition(*std::move(module), options);
  FuzzRequireDiagnosed(propagated.status(), text);
  FuzzRequireDiagnosed(partitioned.status(), text);
  if (!partitioned.ok()) return;
  const std::string local = PrintModule((*partitioned)->local.module);
  const absl::StatusOr<Module> read = ParseValid(local);
  FuzzRequire(read.ok(), "the partitioned text is read and verifies",
              std::string(read.status().ToString()) + "\n" + local);
  FuzzRequireSame(local, PrintModule(*read), "the partitioned text prints the same again");

  const absl::StatusOr<Module> shown =
      ExportShardings((*propagated)->program, (*propagated)->shardings.sharding);
  FuzzRequireDiagnosed(shown.status(), text);
  if (!shown.ok()) return;
  absl::StatusOr<Module> replayed = ParseValid(PrintModule(*shown));
  FuzzRequire(replayed.ok(), "the propagated text is read and verifies",
              std::string(replayed.status().ToString()) + "\n" + PrintModule(*shown));
  options.propagate = false;
  const auto again = Partition(*std::move(replayed), options);
  FuzzRequire(again.ok(), "the propagated text is partitioned",
              std::string(again.status().ToString()) + "\n" + PrintModule(*shown));
  FuzzRequireSame(local, PrintModule((*again)->local.module),
                  "partitioning the propagated text gives the same");
}

}  // namespace
}  // namespace shardcall

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shardcall::Try(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
