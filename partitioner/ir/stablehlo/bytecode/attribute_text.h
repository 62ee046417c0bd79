// SPDX-License-Identifier: Apache-2.0
// Attributes as MLIR prints them, which is how HLO holds them: shardings of Shardy in frontend
// attributes, and the attributes of typed custom calls.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_ATTRIBUTE_TEXT_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_ATTRIBUTE_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

// "a\22b": in quotes, with MLIR's escapes.
std::string QuotedText(absl::string_view text);
// `name`, or "a name" in quotes, as MLIR prints names of symbols.
std::string SymbolName(absl::string_view name);

// Numbers, texts, arrays and dictionaries of them. E035 (kUnimplemented) for others, and for more
// text than a custom call can need.
absl::StatusOr<std::string> AttributeText(const Bytecode& code, const Attribute& a);

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_BYTECODE_ATTRIBUTE_TEXT_H_
