// SPDX-License-Identifier: Apache-2.0
// Reads StableHLO bytecode. What the verifier accepts must be printed so that it reads back, and be
// written so that it is read again.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "shardcall/partitioner/ir/stablehlo/reader.h"
#include "shardcall/partitioner/ir/stablehlo/writer.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/fuzz/require.h"

using namespace shardcall;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto module = ReadStablehloBytecode(bytes, std::make_shared<Context>());
  FuzzRequireDiagnosed(module.status());
  if (!module.ok()) return 0;
  if (!VerifyModule(*module, "fuzz").ok()) return 0;
  // What was read is printed so that it reads back, and written so that it is read again.
  const auto text = std::make_shared<const std::string>(PrintModule(*module));
  const auto parsed = ParseModule(text, std::make_shared<Context>(), "fuzz");
  FuzzRequire(parsed.ok(), "what is printed is read", std::string(parsed.status().ToString()));
  const auto written = WriteStablehloBytecode(*module);
  FuzzRequireDiagnosed(written.status());
  if (written.ok()) {
    FuzzRequireDiagnosed(ReadStablehloBytecode(*written, std::make_shared<Context>()).status());
  }
  return 0;
}
