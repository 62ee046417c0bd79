// SPDX-License-Identifier: Apache-2.0
// HLO text: read, verified, printed, read and printed again.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/fuzz/require.h"

namespace shardcall {
namespace {

absl::StatusOr<Module> Parse(std::string text) {
  return ParseModule(std::make_shared<const std::string>(std::move(text)),
                     std::make_shared<Context>(), "fuzz.hlo");
}

void Try(std::string text) {
  const absl::StatusOr<Module> module = Parse(std::move(text));
  FuzzRequireDiagnosed(module.status());
  if (!module.ok()) return;
  const absl::Status verified = VerifyModule(*module, "fuzz.hlo");
  FuzzRequireDiagnosed(verified);
  const std::string printed = PrintModule(*module);
  const absl::StatusOr<Module> again = Parse(printed);
  FuzzRequire(again.ok(), "printed text is read",
              std::string(again.status().ToString()) + "\n" + printed);
  FuzzRequireSame(printed, PrintModule(*again), "printing is a fixed point");
  FuzzRequire(VerifyModule(*again, "fuzz.hlo").ok() == verified.ok(),
              "printing keeps what the verifier says",
              std::string(verified.ToString()) + "\n" +
                  std::string(VerifyModule(*again, "fuzz.hlo").ToString()) + "\n" + printed);
}

}  // namespace
}  // namespace shardcall

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shardcall::Try(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
