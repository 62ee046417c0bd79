// SPDX-License-Identifier: Apache-2.0
// Writes modules as HLO text in XLA's default form: `%` names, signatures, layouts, metadata and
// location tables. Constants are always printed in full. Instructions are in the module's order,
// and computations before those that call them. Instructions without a name get one from their
// opcode (`add`, `add.1`, ...), unique in the module. Reading the text and printing it again gives
// the same bytes.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PRINTER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PRINTER_H_

#include <string>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct PrintOptions {
  bool metadata = true;  // metadata={...} and the location tables
  // XLA's short form: no metadata, no `%` before names, no signatures, no comments between
  // operands. Unlike XLA, it keeps control predecessors, so that the text means the same program.
  bool short_form = false;
};

std::string PrintModule(const Module& module, const PrintOptions& options = {});

// One instruction on one line, for diagnostics: without metadata. Operands
// without a name are printed by id, like `%add.#12`.
std::string PrintInstruction(const Module& module, InstrId id);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PRINTER_H_
