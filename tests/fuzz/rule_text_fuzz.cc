// SPDX-License-Identifier: Apache-2.0
// Sharding rules as a user writes them, one input a line: the rule, then lines
// `pad k 0`, `reduction k add`, `size k 4`, `need_replication k`, ..; and rules
// as JAX dumps them. Both are put against shapes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "shardcall/sharding/context.h"
#include "shardcall/sharding/rule/rule.h"
#include "tests/fuzz/require.h"

namespace shardcall {
namespace {

struct Shapes {
  std::vector<const Shape*> operands, results;
};

std::vector<Shapes> SomeShapes(Context& c) {
  const auto f32 = ElementType::kF32;
  const Shape* a = c.MakeArray(f32, {4, 6});
  const Shape* b = c.MakeArray(f32, {6, 8});
  const Shape* v = c.MakeArray(f32, {6});
  const Shape* big = c.MakeArray(f32, {2, 3, 4, 6});
  return {{{a}, {a}},
          {{a, b}, {c.MakeArray(f32, {4, 8})}},
          {{a, v}, {a}},
          {{a}, {}},
          {{big, b}, {c.MakeArray(f32, {2, 3, 4, 8})}},
          {{big}, {c.MakeArray(f32, {6, 24})}},
          {{a, a, v}, {a, v}},
          {{c.MakeScalar(f32)}, {c.MakeArray(f32, {0, 4})}}};
}

void ShowInstance(const absl::StatusOr<ShardingRule>& rule, const Shapes& shapes,
                  const std::string& text) {
  FuzzRequireDiagnosed(rule.status(), text);
  if (!rule.ok()) return;
  (void)rule->ToString();
  const std::string sdy = rule->ToSdyText();
  const absl::StatusOr<ShardingRule> again = ParseSdyRule(sdy, shapes.operands, shapes.results);
  FuzzRequireDiagnosed(again.status(), sdy);
  if (again.ok()) FuzzRequireSame(sdy, again->ToSdyText(), "a rule prints the same again");
}

RuleText ReadRule(const std::string& text) {
  static constexpr PartialOp kOps[] = {PartialOp::kSum, PartialOp::kMax, PartialOp::kMin};
  RuleText rule;
  bool first = true;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (std::exchange(first, false)) {
      rule.rule = std::string(line);
      continue;
    }
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() < 2) continue;
    int64_t integer = 0;
    double number = 0;
    if (words[0] == "need_replication") rule.need_replication.push_back(words[1]);
    if (words[0] == "permutation") rule.permutation.push_back(words[1]);
    if (words[0] == "blocked") rule.blocked.push_back(words[1]);
    if (words[0] == "reduction") rule.reduction.push_back({words[1], kOps[words.size() % 3]});
    if (words.size() < 3) continue;
    if (words[0] == "pad" && absl::SimpleAtod(words[2], &number)) {
      rule.pad.push_back({words[1], number});
    }
    if (words[0] == "size" && absl::SimpleAtoi(words[2], &integer)) {
      rule.sizes.push_back({words[1], integer});
    }
  }
  return rule;
}

void Try(const std::string& text) {
  Context context;
  const std::vector<Shapes> all = SomeShapes(context);
  const auto rule = ParseRule(ReadRule(text));
  FuzzRequireDiagnosed(rule.status(), text);
  for (const Shapes& s : all) {
    if (rule.ok()) ShowInstance(InstantiateRule(**rule, s.operands, s.results), s, text);
    ShowInstance(ParseSdyRule(text, s.operands, s.results), s, text);
  }
}

}  // namespace
}  // namespace shardcall

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shardcall::Try(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
