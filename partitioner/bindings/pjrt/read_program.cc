// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/read_program.h"

#include <stdlib.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/pjrt/find_plugin.h"
#include "shardcall/partitioner/bindings/pjrt/to_hlo.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/not_converted.h"
#include "shardcall/partitioner/ir/stablehlo/reader.h"
#include "shardcall/partitioner/ir/stablehlo/stablehlo_input.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

// The converter's error, or what it means if the program has a form that the converter's version of
// StableHLO does not have. XLA says which version it has where it cannot parse a program.
absl::Status MayBeTooOld(const absl::Status& failed, const std::string& converter,
                         absl::string_view name) {
  constexpr absl::string_view kSays = "Failed to parse using StableHLO ";
  const absl::string_view said = failed.message();
  const size_t at = said.find(kSays);
  if (at == absl::string_view::npos) return failed;
  const absl::string_view version = said.substr(at + kSays.size());
  absl::string_view reason = said.substr(0, said.find('\n'));
  if (const size_t begins = reason.find(" failed: "); begins != absl::string_view::npos) {
    reason.remove_prefix(begins + 9);
  }
  return ToStatus(
      {.code = "E334",
       .message = absl::StrCat("the converter \"", converter,
                               "\" cannot parse this StableHLO, and may be too old for it"),
       .where = std::string(name),
       .expected = absl::StrCat("StableHLO as of ", version.substr(0, version.find(','))),
       .found = std::string(reason),
       .fix = "Read it where the JAX that wrote it is installed, by shardcall.partition in Python, "
              "or write HLO: jax.jit(f).lower(..).as_text(\"hlo\"), or name a newer plugin"},
      failed.code());
}

// Converts StableHLO to HLO, by the converter `named`, or one that is found.
absl::StatusOr<Module> ReadStablehlo(absl::string_view program, absl::string_view name,
                                     const std::string& named) {
  absl::Status why = StablehloIsNotHlo(name);
  if (named.empty() && IsMlirBytecode(program)) {
    absl::StatusOr<Module> module = ReadStablehloBytecode(program, std::make_shared<Context>());
    why = module.status();
    if (module.ok()) {
      const absl::Status verified = VerifyModule(*module, name);
      if (verified.ok()) return module;
      why = StablehloNotConverted(verified.message());
    }
    if (!absl::IsUnimplemented(why)) return why;
  }
  const std::string plugin = named.empty() ? FindConverter() : named;
  if (plugin.empty()) return why;
  // Otherwise XLA logs each dump. A value set by the user is kept.
  setenv("TF_CPP_MIN_LOG_LEVEL", "1", /*overwrite=*/0);
  SHARDCALL_ASSIGN_OR_RETURN(const std::unique_ptr<const Converter> converter,
                             Converter::Open(plugin));
  const absl::StatusOr<std::string> hlo = converter->ToHlo(program);
  if (!hlo.ok()) return MayBeTooOld(hlo.status(), plugin, name);
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ReadModuleProto(*hlo, std::make_shared<Context>(), name));
  if (const int64_t partitions = StablehloPartitions(program); partitions > 0) {
    module.header.num_partitions = partitions;
    module.header.has_num_partitions = true;
  }
  return module;
}

}  // namespace

absl::StatusOr<Module> ReadProgram(std::shared_ptr<const std::string> bytes,
                                   const std::string& name, const TargetRegistry& targets,
                                   const ReadOptions& options) {
  const bool binary = options.form == ReadOptions::Form::kBinary ||
                      (options.form == ReadOptions::Form::kTold && LooksLikeProto(*bytes));
  if (LooksLikeStablehlo(*bytes)) return ReadStablehlo(*bytes, name, options.converter);
  if (binary) return ReadModuleProto(*bytes, std::make_shared<Context>(), name);
  return ParseModule(std::move(bytes), std::make_shared<Context>(), name, &targets);
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
