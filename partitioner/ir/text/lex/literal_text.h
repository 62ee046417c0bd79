// SPDX-License-Identifier: Apache-2.0
// Values as HLO text, with the same digits as XLA. The exception is negative zero: it is `-0.0`
// here, while XLA prints `-0`, which it reads back as +0.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_LEX_LITERAL_TEXT_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_LEX_LITERAL_TEXT_H_

#include <charconv>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/literal.h"

namespace shardcall {
inline namespace internal {

// The value of a constant, without its shape: `2.5`, `{1, 2}`, `{ { 1, 2 }, { 3, 4 } }`, `( 1, {2,
// 3} )`. `{...}` only for a literal that is elided already. `prefix` is called before each array.
using LiteralPrefix = std::function<void(const Literal& array)>;
void AppendLiteral(const Literal& literal, std::string* out, const LiteralPrefix& prefix = {});

// One real number, with the number of digits of its type: f32 has 6, or 9 if 6 do not read back
// equal.
void AppendReal(ElementType type, uint64_t bits, std::string* out);
// `value` as AppendReal prints an f64.
std::string NumberText(double value);
// `text` in double quotes, escaped as in C.
std::string StringText(absl::string_view text);
template <typename Int>
void AppendInt(Int value, std::string* out) {
  char buffer[24];
  out->append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr - buffer);
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_LEX_LITERAL_TEXT_H_
