// SPDX-License-Identifier: Apache-2.0
// A module made from another one, and what came of its instructions.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_REWRITTEN_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_REWRITTEN_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

struct Rewritten {
  explicit Rewritten(Module m) : module(std::move(m)) {}
  // Names `origin` for the instructions that were added since the last call.
  void NoteOrigin(InstrId origin) { made_for.resize(module.num_instructions(), origin); }

  Module module;
  std::vector<InstrId> moved_to;  // by old instruction; invalid if it has no copy
  std::vector<InstrId> made_for;  // by new instruction: the old one
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_REWRITTEN_H_
