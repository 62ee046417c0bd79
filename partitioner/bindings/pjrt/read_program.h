// SPDX-License-Identifier: Apache-2.0
// Programs in every form: HLO as text or binary, StableHLO as text or bytecode.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_READ_PROGRAM_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_READ_PROGRAM_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall::pjrt {

struct ReadOptions {
  // Of HLO: text, or binary, or (kTold) what the bytes themselves say.
  enum class Form : uint8_t { kTold, kText, kBinary } form = Form::kTold;
  std::string converter = {};  // a PJRT plugin for StableHLO; empty: FindConverter
};

// Reads, for VerifyModule to verify. Shapes that calls in text leave out follow from
// `targets`. Errors: those of the readers, E035 for StableHLO where no plugin is found that
// converts it, and those of Converter. The text is kept by the module.
absl::StatusOr<Module> ReadProgram(std::shared_ptr<const std::string> bytes,
                                   const std::string& name, const TargetRegistry& targets,
                                   const ReadOptions& options = {});

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_READ_PROGRAM_H_
