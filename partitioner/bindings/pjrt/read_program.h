// SPDX-License-Identifier: Apache-2.0
// Reads programs in every form: HLO as text or binary, StableHLO as text or bytecode.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_READ_PROGRAM_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_READ_PROGRAM_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

struct ReadOptions {
  // Of HLO: text, binary, or (kTold) determined from the bytes.
  enum class Form : uint8_t { kTold, kText, kBinary } form = Form::kTold;
  std::string converter = {};  // a PJRT plugin for StableHLO; empty: FindConverter
};

// Reads the program without verifying it. Shapes that calls in text omit are inferred by
// `targets`. Errors: those of the readers and of Converter; E035 for StableHLO that
// ReadStablehloBytecode does not convert, if no plugin that converts it is found. The module keeps
// the text.
absl::StatusOr<Module> ReadProgram(std::shared_ptr<const std::string> bytes,
                                   const std::string& name, const TargetRegistry& targets,
                                   const ReadOptions& options = {});

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_READ_PROGRAM_H_
