// SPDX-License-Identifier: Apache-2.0
// Reads StableHLO bytecode. A module that is read must be printable, and the verifier must be able
// to judge it.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "shardcall/partitioner/ir/stablehlo/reader.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/fuzz/require.h"

using namespace shardcall;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto module = ReadStablehloBytecode(bytes, std::make_shared<Context>());
  FuzzRequireDiagnosed(module.status());
  if (!module.ok()) return 0;
  if (VerifyModule(*module, "fuzz").ok()) PrintModule(*module);
  return 0;
}
