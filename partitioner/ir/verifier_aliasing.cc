// SPDX-License-Identifier: Apache-2.0
// output_to_operand_aliasing of fusions, custom calls and asynchronous starts.
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "partitioner/ir/shape_inference.h"
#include "partitioner/ir/verifier_internal.h"

namespace shardcall::verifier {
namespace {

// Reads `{1,0}` from `*text`, which is as the parser wrote it.
bool ReadIndex(absl::string_view* text, std::vector<int64_t>* index) {
  const size_t open = text->find('{'), close = text->find('}');
  if (open == absl::string_view::npos || close == absl::string_view::npos) return false;
  absl::string_view inner = text->substr(open + 1, close - open - 1);
  text->remove_prefix(close + 1);
  index->clear();
  while (!inner.empty()) {
    const size_t comma = inner.find(',');
    if (!absl::SimpleAtoi(inner.substr(0, comma), &index->emplace_back())) return false;
    inner = comma == absl::string_view::npos ? "" : inner.substr(comma + 1);
  }
  return true;
}

}  // namespace

const Shape* PartAt(const Shape* shape, absl::Span<const int64_t> index) {
  for (int64_t k : index) {
    if (!shape->IsTuple() || k < 0 || k >= static_cast<int64_t>(shape->tuple().size())) {
      return nullptr;
    }
    shape = shape->tuple()[k];
  }
  return shape;
}

bool CheckAliasing(const Module& m, const Instruction& i, absl::string_view text,
                   Fault* error) {
  const absl::Span<const InstrId> operands = m.operands(i);
  const std::string all(text);
  const auto fail = [&](std::string what, std::string expected, std::string found) {
    return Fail(error, "E022",
                absl::StrCat(OpcodeText(i.opcode), ": output_to_operand_aliasing ", what), "",
                std::move(expected), std::move(found));
  };
  if (text.size() < 2) return true;
  text = text.substr(1, text.size() - 2);
  std::vector<int64_t> output, inner;
  while (!text.empty()) {
    int64_t operand = 0;
    if (!ReadIndex(&text, &output)) return fail("is malformed", "{{0}: (1, {})}", all);
    const size_t open = text.find('('), comma = text.find(',');
    if (open > comma || comma == absl::string_view::npos ||
        !absl::SimpleAtoi(text.substr(open + 1, comma - open - 1), &operand)) {
      return fail("is malformed", "{{0}: (1, {})}", all);
    }
    text.remove_prefix(comma);
    if (!ReadIndex(&text, &inner)) return fail("is malformed", "{{0}: (1, {})}", all);
    text.remove_prefix(std::min(text.size(), text.find('{')));
    if (operand < 0 || operand >= static_cast<int64_t>(operands.size())) {
      return fail("names an operand that does not exist", absl::StrCat("[0,", operands.size(), ")"),
                  absl::StrCat(operand));
    }
    const Shape* result = PartAt(i.shape, output);
    const Shape* source = PartAt(m.instr(operands[operand]).shape, inner);
    if (result == nullptr || source == nullptr) {
      return fail("names a part that does not exist",
                  absl::StrCat("an index into ",
                               ShapeText(result == nullptr ? i.shape
                                                           : m.instr(operands[operand]).shape)),
                  all);
    }
    if (!CompatibleShapes(result, source)) {
      return fail("joins parts of different shapes", ShapeText(source), ShapeText(result));
    }
  }
  return true;
}

}  // namespace shardcall::verifier
