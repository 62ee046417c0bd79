// SPDX-License-Identifier: Apache-2.0
// Programs in files: text, or binary by content or by the suffixes .pb and .mlirbc.
#include <chrono>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/pjrt/read_program.h"
#include "shardcall/partitioner/ir/stablehlo/writer.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/tools/command.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::StatusOr<Module> LoadModule(const std::string& path, const Session& session,
                                  double* parse_us) {
  const std::string name = path == "-" ? "<stdin>" : path;
  SHARDCALL_ASSIGN_OR_RETURN(std::string text, ReadInput(path, session.max_input));
  pjrt::ReadOptions options{.converter = session.converter};
  if (absl::EndsWith(path, ".pb")) options.form = pjrt::ReadOptions::Form::kBinary;
  if (absl::EndsWith(path, ".hlo") || absl::EndsWith(path, ".txt")) {
    options.form = pjrt::ReadOptions::Form::kText;
  }
  const auto start = std::chrono::steady_clock::now();
  SHARDCALL_ASSIGN_OR_RETURN(
      Module module, pjrt::ReadProgram(std::make_shared<const std::string>(std::move(text)), name,
                                       session.targets, options));
  if (parse_us != nullptr) {
    *parse_us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  }
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, name));
  return module;
}

absl::Status WriteModule(const std::string& path, const Module& module, ProtoForm input,
                         const PrintOptions& text) {
  if (absl::EndsWith(path, ".mlirbc")) {
    SHARDCALL_ASSIGN_OR_RETURN(const std::string bytes, WriteStablehloBytecode(module));
    return WriteOutput(path, bytes);
  }
  if (!absl::EndsWith(path, ".pb")) return WriteOutput(path, PrintModule(module, text));
  ProtoForm form = absl::EndsWith(path, ".hlo.pb") ? ProtoForm::kHlo : input;
  // A snapshot's arguments belong to the program that it was read with.
  if (form == ProtoForm::kSnapshot && ProtoFormOf(module) != form) form = ProtoForm::kHlo;
  SHARDCALL_ASSIGN_OR_RETURN(const std::string bytes, WriteModuleProto(module, form));
  return WriteOutput(path, bytes);
}

}  // namespace internal
}  // namespace shardcall
