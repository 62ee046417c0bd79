// SPDX-License-Identifier: Apache-2.0
// Where in the user's source an instruction came from.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_SOURCE_LINE_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_SOURCE_LINE_H_

#include <string>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall::inline internal {

// "model.py:41" from the metadata's own fields or its stack frame; the op_name
// where there is no line; empty if there is neither.
std::string SourceLine(const Module& module, const Instruction& instr);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_SOURCE_LINE_H_
