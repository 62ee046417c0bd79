// SPDX-License-Identifier: Apache-2.0
// Binary HLO: read, written, read and written again; what verifies is printed,
// and read as text.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "partitioner/ir/parser.h"
#include "partitioner/ir/printer.h"
#include "partitioner/ir/proto/hlo_proto.h"
#include "partitioner/ir/verifier.h"
#include "tests/fuzz/require.h"

namespace shardcall {
namespace {

void Try(absl::string_view bytes) {
  const absl::StatusOr<Module> module =
      ReadModuleProto(bytes, std::make_shared<Context>(), "fuzz.pb");
  FuzzRequireDiagnosed(module.status());
  if (!module.ok()) return;
  const absl::StatusOr<std::string> written = WriteModuleProto(*module, ProtoFormOf(*module));
  FuzzRequire(written.ok(), "what was read is written", std::string(written.status().ToString()));
  const absl::StatusOr<Module> again =
      ReadModuleProto(*written, std::make_shared<Context>(), "fuzz.pb");
  FuzzRequire(again.ok(), "what was written is read", std::string(again.status().ToString()));
  const absl::StatusOr<std::string> twice = WriteModuleProto(*again, ProtoFormOf(*again));
  FuzzRequire(twice.ok(), "it is written again", std::string(twice.status().ToString()));
  FuzzRequireSame(*written, *twice, "writing is a fixed point");
  const absl::Status verified = VerifyModule(*module, "fuzz.pb");
  FuzzRequireDiagnosed(verified);
  if (!verified.ok()) return;
  const std::string text = PrintModule(*module);
  FuzzRequireSame(text, PrintModule(*again), "both messages print alike");
  const absl::StatusOr<Module> parsed = ParseModule(std::make_shared<const std::string>(text),
                                                    std::make_shared<Context>(), "fuzz.hlo");
  FuzzRequire(parsed.ok(), "printed text is read",
              std::string(parsed.status().ToString()) + "\n" + text);
}

}  // namespace
}  // namespace shardcall

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shardcall::Try(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
