// SPDX-License-Identifier: Apache-2.0
// What passes that build a new module share: copying.
#ifndef SHARDCALL_PARTITIONER_PASS_COPY_MODULE_H_
#define SHARDCALL_PARTITIONER_PASS_COPY_MODULE_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/pass/pass.h"

namespace shardcall {

// A module with the header and the texts of `m`, and empty computations in place
// of those with `keep` (by computation).
PassResult BeginCopy(const Module& m, const std::vector<bool>& keep);

// The instruction for the new module, without its operands: computations that it
// calls are the new ones.
Instruction CopyOf(const Module& m, InstrId id, const PassResult& out);
// Its control predecessors and other rare attributes.
void CopyRare(const Module& m, InstrId from, InstrId to, PassResult* out);
// All of it, behind what the new computation has. Operands have been copied.
InstrId CopyInstruction(const Module& m, InstrId id, PassResult* out);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_COPY_MODULE_H_
