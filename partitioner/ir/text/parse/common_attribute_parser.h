// SPDX-License-Identifier: Apache-2.0
// Values of the attributes that every instruction may have.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_COMMON_ATTRIBUTE_PARSER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_COMMON_ATTRIBUTE_PARSER_H_

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/text/lex/text_reader.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class CommonAttributeParser : TextReader {
 public:
  // `module`: has the stack frames to which metadata refers.
  CommonAttributeParser(Lexer* lex, const Module* module)
      : TextReader(lex, &module->context()), module_(*module) {}
  bool ParseSharding(const HloSharding** out);
  bool ParseFrontend(const FrontendAttributes** out);
  bool ParseMetadata(const Metadata** out);
  bool ParseBackendConfig(absl::string_view* out);

 private:
  const Module& module_;
  absl::flat_hash_map<absl::string_view, const HloSharding*> sharding_memo_;
  absl::flat_hash_map<absl::string_view, const FrontendAttributes*> frontend_memo_;
  // Instructions that follow each other often have the same metadata.
  absl::string_view last_metadata_text_;  // from `{` to `}`
  const Metadata* last_metadata_ = nullptr;
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_COMMON_ATTRIBUTE_PARSER_H_
