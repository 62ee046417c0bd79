// SPDX-License-Identifier: Apache-2.0
// Binary HLO: what is read is written, read and written again to the same bytes,
// and says the same as text. An input that is HLO text goes through the binary
// form and comes back as the same text.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/fuzz/require.h"

namespace shardcall {
namespace {

absl::StatusOr<Module> ReadText(std::string text) {
  return ParseModule(std::make_shared<const std::string>(std::move(text)),
                     std::make_shared<Context>(), "fuzz.hlo");
}

absl::StatusOr<Module> ReadBinary(absl::string_view bytes) {
  return ReadModuleProto(bytes, std::make_shared<Context>(), "fuzz.pb");
}

void TryText(std::string text) {
  const absl::StatusOr<Module> module = ReadText(std::move(text));
  if (!module.ok() || !VerifyModule(*module, "fuzz.hlo").ok()) return;
  const absl::StatusOr<std::string> bytes = WriteModuleProto(*module);
  FuzzRequireDiagnosed(bytes.status());
  if (!bytes.ok()) return;
  const absl::StatusOr<Module> read = ReadBinary(*bytes);
  FuzzRequire(read.ok(), "written bytes are read",
              std::string(read.status().ToString()) + "\n" + PrintModule(*module));
  FuzzRequireSame(PrintModule(*module), PrintModule(*read), "text survives the binary form");
}

void TryBinary(absl::string_view bytes) {
  const absl::StatusOr<Module> module = ReadBinary(bytes);
  FuzzRequireDiagnosed(module.status());
  if (!module.ok()) return;
  const absl::Status verified = VerifyModule(*module, "fuzz.pb");
  FuzzRequireDiagnosed(verified);
  const ProtoForm form = ProtoFormOf(*module);
  const absl::StatusOr<std::string> written = WriteModuleProto(*module, form);
  FuzzRequireDiagnosed(written.status());
  if (!written.ok()) return;
  const absl::StatusOr<Module> again = ReadBinary(*written);
  FuzzRequire(again.ok(), "written bytes are read", std::string(again.status().ToString()));
  const absl::StatusOr<std::string> twice = WriteModuleProto(*again, form);
  FuzzRequire(twice.ok(), "what was read is written", std::string(twice.status().ToString()));
  FuzzRequireSame(*written, *twice, "writing is a fixed point");
  if (!verified.ok()) return;
  const std::string printed = PrintModule(*module);
  FuzzRequireSame(printed, PrintModule(*again), "both messages print alike");
  const absl::StatusOr<Module> text = ReadText(printed);
  FuzzRequire(text.ok(), "a valid binary's text is read",
              std::string(text.status().ToString()) + "\n" + printed);
  FuzzRequireSame(printed, PrintModule(*text), "it prints the same again");
}

}  // namespace
}  // namespace shardcall

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (shardcall::LooksLikeProto(bytes)) {
    shardcall::TryBinary(bytes);
  } else {
    shardcall::TryText(std::string(bytes));
  }
  return 0;
}
