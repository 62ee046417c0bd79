// SPDX-License-Identifier: Apache-2.0
// Reads HLO text, as XLA and JAX write it, into a Module. Names and strings of the module are views
// into the text, which the module keeps alive. Reading does not verify: shapes that contradict the
// op are accepted (see verifier.h).
//
// The first error ends the reading. Its text has line and column, what was
// expected and found, a fix, and the source line with a caret:
//   E004 Unknown opcode at x.hlo:3:21: expected an HLO opcode, found 'addd'. Fix: did you mean
//   'add'?
//     %s = f32[] addd(%a, %b)
//                ^
// The codes are E001 to E020 of sharding/DIAGNOSTICS.md.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/shapes/target_shapes.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// `file_name` is used in error messages only. A custom call that is written without its shape gets
// the one that `targets` infers. If `targets` rejects the call, the error has its reason (E112 if
// no shape can be inferred). Without `targets` a missing shape is E015.
absl::StatusOr<Module> ParseModule(std::shared_ptr<const std::string> text,
                                   std::shared_ptr<Context> context, absl::string_view file_name,
                                   const TargetShapes* targets = nullptr);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSER_H_
