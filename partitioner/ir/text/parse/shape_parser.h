// SPDX-License-Identifier: Apache-2.0
// Shapes: arrays with their layouts, tuples, buffers, tokens.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_SHAPE_PARSER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_SHAPE_PARSER_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/text/lex/text_reader.h"
#include "shardcall/sharding/shape.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class ShapeParser : TextReader {
 public:
  ShapeParser(Lexer* lex, Context* context) : TextReader(lex, context) {}
  bool Parse(const Shape** out);

 private:
  bool ParseArray(const Shape** out);
  bool ParseNewArray(const Shape** out);
  bool ParseLayout(int rank, std::vector<int64_t>* minor_to_major, std::string* suffix);
  bool ParseLayoutSuffix(std::string* suffix);
  bool ParseTiles(std::string* suffix);

  absl::flat_hash_map<absl::string_view, const Shape*> memo_;
  std::vector<int64_t> dims_, layout_;
  std::string suffix_;
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_SHAPE_PARSER_H_
