// SPDX-License-Identifier: Apache-2.0
// Attribute values with a syntax of their own: lists, slices, paddings, windows, dimension labels,
// precisions, aliasing and device groups.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_SLOT_PARSER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_SLOT_PARSER_H_

#include <string>

#include "shardcall/partitioner/ir/text/lex/text_reader.h"
#include "shardcall/partitioner/ir/text/parse/scratch.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class SlotParser : TextReader {
 public:
  SlotParser(Lexer* lex, Context* context) : TextReader(lex, context) {}
  bool ParseString(Slot* slot);
  bool ParseIntsOrLists(Scratch* s, Slot* slot);
  bool ParseSliceRanges(Scratch* s, Slot* slot);
  bool ParsePadding(Scratch* s, Slot* slot);
  bool ParseWindow(Scratch* s, Slot* slot);
  bool ParseDimLabels(Slot* slot);
  bool ParsePrecision(Slot* slot);
  bool ParseAliasing(Slot* slot);
  bool ParseReplicaGroups(Scratch* s, Slot* slot);

 private:
  bool ParseWindowField(Scratch* s, absl::string_view field, int64_t rank, size_t begin);
  bool ParseIotaGroups(Scratch* s);
  bool ParseMeshGroups(Scratch* s);
};

// `mesh['a'=2,'b'=4] {'b'}`: device groups along the axes of the sharding's one
// dimension.
std::string MeshGroupsText(const HloSharding& sharding);

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_SLOT_PARSER_H_
