// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/partitioner/pass/pass.h"

namespace shardcall {

void AssignNames(Module* module) {
  UniqueNames comps(module->context().arena(), module->num_computations());
  UniqueNames instrs(module->context().arena(), module->num_instructions());
  for (int c = 0; c < module->num_computations(); ++c) {
    Computation& comp = module->mutable_comp(CompId(c));
    comp.name = comps.Take(comp.name.empty() ? "computation" : comp.name);
  }
  // Names from the program are kept, so they are taken first; generated names avoid them.
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < module->num_instructions(); ++i) {
      Instruction& instr = module->mutable_instr(InstrId(i));
      if (pass == 0 && !instr.name.empty()) instr.name = instrs.Take(instr.name);
      if (pass == 1 && instr.name.empty()) instr.name = instrs.Take(OpcodeText(instr.opcode));
    }
  }
}

}  // namespace shardcall
