// SPDX-License-Identifier: Apache-2.0
// output_to_operand_aliasing of fusions, custom calls and asynchronous starts.
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/partitioner/ir/verifier/verifier_internal.h"

namespace shardcall {
inline namespace internal {
namespace verifier {

bool CheckAliasing(const Module& m, const Instruction& i, absl::string_view text, Fault* error) {
  const absl::Span<const InstrId> operands = m.operands(i);
  const std::string all(text);
  const auto fail = [&](std::string what, std::string expected, std::string found) {
    return Fail(error, "E022",
                absl::StrCat(OpcodeText(i.opcode), ": output_to_operand_aliasing ", what), "",
                std::move(expected), std::move(found));
  };
  std::vector<OutputAlias> aliases;
  if (!ParseOutputAliasing(text, &aliases)) return fail("is malformed", "{{0}: (1, {})}", all);
  for (const auto& [output, operand, inner] : aliases) {
    if (operand < 0 || operand >= static_cast<int64_t>(operands.size())) {
      return fail("names an operand that does not exist", absl::StrCat("[0,", operands.size(), ")"),
                  absl::StrCat(operand));
    }
    const Shape* result = PartAt(i.shape, output);
    const Shape* source = PartAt(m.instr(operands[operand]).shape, inner);
    if (result == nullptr || source == nullptr) {
      return fail(
          "names a part that does not exist",
          absl::StrCat("an index into ",
                       ShapeText(result == nullptr ? i.shape : m.instr(operands[operand]).shape)),
          all);
    }
    if (!CompatibleShapes(result, source)) {
      return fail("joins parts of different shapes", ShapeText(source), ShapeText(result));
    }
  }
  return true;
}

}  // namespace verifier
}  // namespace internal
}  // namespace shardcall
