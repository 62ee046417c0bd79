// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/source_line.h"

#include "absl/strings/str_cat.h"

namespace shardcall {
inline namespace internal {

std::string SourceLine(const Module& module, const Instruction& instr) {
  const Metadata* m = instr.metadata;
  if (m == nullptr) return "";
  if (!m->source_file.empty()) return absl::StrCat(m->source_file, ":", m->source_line);
  const StackTables& stack = module.header.stack;
  // Ids count from 1; one outside of its table means none.
  const auto at = [](const auto& table, int32_t id) {
    return id >= 1 && id <= static_cast<int32_t>(table.size()) ? &table[id - 1] : nullptr;
  };
  if (const auto* frame = at(stack.frames, m->stack_frame_id)) {
    if (const auto* location = at(stack.locations, frame->location)) {
      if (const auto* file = at(stack.files, location->file)) {
        return absl::StrCat(*file, ":", location->line);
      }
    }
  }
  return std::string(m->op_name);
}

}  // namespace internal
}  // namespace shardcall
