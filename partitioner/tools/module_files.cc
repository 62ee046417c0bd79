// SPDX-License-Identifier: Apache-2.0
// Programs in files: text, or binary where the name ends in .pb or the content
// says so.
#include <stdlib.h>

#include <chrono>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "partitioner/bindings/pjrt/find_plugin.h"
#include "partitioner/bindings/pjrt/to_hlo.h"
#include "partitioner/ir/parser.h"
#include "partitioner/ir/printer.h"
#include "partitioner/ir/stablehlo_input.h"
#include "partitioner/ir/verifier.h"
#include "partitioner/tools/command.h"
#include "sharding/status.h"

namespace shardcall {

namespace {

// StableHLO as HLO, by the converter that is named, or else found.
absl::StatusOr<Module> ReadStablehlo(absl::string_view program, absl::string_view name,
                                     const std::string& named) {
  std::string plugin = named.empty() ? pjrt::FindConverter() : named;
  if (plugin.empty()) return StablehloIsNotHlo(name);
  // XLA tells its log of each dump else; what the user has set stays.
  setenv("TF_CPP_MIN_LOG_LEVEL", "1", /*overwrite=*/0);
  SHARDCALL_ASSIGN_OR_RETURN(const std::unique_ptr<const pjrt::Converter> converter,
                             pjrt::Converter::Open(plugin));
  SHARDCALL_ASSIGN_OR_RETURN(const std::string hlo, converter->ToHlo(program));
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ReadModuleProto(hlo, std::make_shared<Context>(), name));
  if (const int64_t partitions = StablehloPartitions(program); partitions > 0) {
    module.header.num_partitions = partitions;
    module.header.has_num_partitions = true;
  }
  return module;
}

}  // namespace

absl::StatusOr<Module> LoadModule(const std::string& path, const Session& session,
                                  double* parse_us) {
  const std::string name = path == "-" ? "<stdin>" : path;
  SHARDCALL_ASSIGN_OR_RETURN(std::string text, ReadInput(path));
  const bool named_text = absl::EndsWith(path, ".hlo") || absl::EndsWith(path, ".txt");
  const bool binary = absl::EndsWith(path, ".pb") || (!named_text && LooksLikeProto(text));
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<Module> module =
      LooksLikeStablehlo(text) ? ReadStablehlo(text, name, session.converter)
      : binary ? ReadModuleProto(text, std::make_shared<Context>(), name)
             : ParseModule(std::make_shared<const std::string>(std::move(text)),
                           std::make_shared<Context>(), name, &session.targets);
  if (!module.ok()) return module.status();
  if (parse_us != nullptr) {
    *parse_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
                    .count();
  }
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(*module, name));
  return module;
}

absl::Status WriteModule(const std::string& path, const Module& module, ProtoForm input,
                         const PrintOptions& text) {
  if (!absl::EndsWith(path, ".pb")) return WriteOutput(path, PrintModule(module, text));
  ProtoForm form = absl::EndsWith(path, ".hlo.pb") ? ProtoForm::kHlo : input;
  // The arguments of a snapshot are those of the program that was read.
  if (form == ProtoForm::kSnapshot && ProtoFormOf(module) != form) form = ProtoForm::kHlo;
  SHARDCALL_ASSIGN_OR_RETURN(const std::string bytes, WriteModuleProto(module, form));
  return WriteOutput(path, bytes);
}

}  // namespace shardcall
