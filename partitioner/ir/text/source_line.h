// SPDX-License-Identifier: Apache-2.0
// The place in the user's source that an instruction came from.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_SOURCE_LINE_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_SOURCE_LINE_H_

#include <string>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// "model.py:41" from the metadata's own fields or its stack frame; the op_name if there is no line;
// empty if there is neither.
std::string SourceLine(const Module& module, const Instruction& instr);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_SOURCE_LINE_H_
