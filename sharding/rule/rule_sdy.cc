// SPDX-License-Identifier: Apache-2.0
// `#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, k=4, j=2} reduction={k}>`.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/text_cursor.h"
#include "shardcall/sharding/rule/rule.h"
#include "shardcall/sharding/rule/rule_template.h"

namespace shardcall {
namespace {

class Parser {
 public:
  explicit Parser(absl::string_view text) : in_(text, "sharding rule", "E110") {}

  absl::StatusOr<ShardingRule> Parse(absl::Span<const Shape* const> operands,
                                     absl::Span<const Shape* const> results) {
    SHARDCALL_RETURN_IF_ERROR(in_.Expect("#sdy.op_sharding_rule<"));
    SHARDCALL_RETURN_IF_ERROR(Side(&out_.operands));
    SHARDCALL_RETURN_IF_ERROR(in_.Expect("->"));
    SHARDCALL_RETURN_IF_ERROR(Side(&out_.results));
    SHARDCALL_RETURN_IF_ERROR(Sizes());
    if (in_.Consume("reduction=")) SHARDCALL_RETURN_IF_ERROR(Kind(FactorKind::kReduction));
    if (in_.Consume("need_replication=")) {
      SHARDCALL_RETURN_IF_ERROR(Kind(FactorKind::kNeedReplication));
    }
    if (in_.Consume("permutation=")) SHARDCALL_RETURN_IF_ERROR(Kind(FactorKind::kPermutation));
    if (in_.Consume("blocked_propagation=")) {
      SHARDCALL_RETURN_IF_ERROR(ForEachInSet([&](int f, size_t) {
        out_.factors[f].blocked = true;
        return absl::OkStatus();
      }));
    }
    if (in_.Consume(",")) {
      if (!in_.ConsumeWord("custom")) return in_.Error("custom");
      out_.custom = true;
    }
    SHARDCALL_RETURN_IF_ERROR(in_.Expect(">"));
    SHARDCALL_RETURN_IF_ERROR(in_.ExpectEnd());
    SHARDCALL_RETURN_IF_ERROR(Check(operands, out_.operands, 0, "operand"));
    SHARDCALL_RETURN_IF_ERROR(
        Check(results, out_.results, static_cast<int>(operands.size()), "result"));
    std::sort(out_.extents.begin(), out_.extents.end());
    return std::move(out_);
  }

 private:
  // One letter from i to z, or z_1, z_2, ..; empty if none comes next.
  std::string Symbol() {
    const absl::string_view text = in_.text();
    size_t end = in_.position();
    if (end >= text.size() || text[end] < 'i' || text[end] > 'z') return "";
    const size_t begin = end++;
    if (text[begin] == 'z' && end + 1 < text.size() && text[end] == '_' &&
        absl::ascii_isdigit(text[end + 1])) {
      ++end;
      while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
    }
    in_.set_position(end);
    return std::string(text.substr(begin, end - begin));
  }

  absl::Status Side(std::vector<TensorFactors>* out) {
    SHARDCALL_RETURN_IF_ERROR(in_.Expect("("));
    if (in_.Consume(")")) return absl::OkStatus();
    do {
      SHARDCALL_RETURN_IF_ERROR(in_.Expect("["));
      TensorFactors& tensor = out->emplace_back();
      if (in_.Consume("]")) continue;
      do {
        in_.SkipSpace();
        FactorList& dim = tensor.dims.emplace_back();
        for (std::string symbol = Symbol(); !symbol.empty(); symbol = Symbol()) {
          auto [it, added] = index_.try_emplace(symbol, out_.factors.size());
          if (added) out_.factors.push_back({.size = -1, .name = symbol});
          dim.push_back(static_cast<int>(it->second));
        }
        if (dim.empty()) return in_.Error("factors named i to z or z_1, z_2, ..");
      } while (in_.Consume(","));
      SHARDCALL_RETURN_IF_ERROR(in_.Expect("]"));
    } while (in_.Consume(","));
    return in_.Expect(")");
  }

  absl::StatusOr<int> KnownFactor() {
    in_.SkipSpace();
    const size_t at = in_.position();
    const std::string symbol = Symbol();
    auto it = index_.find(symbol);
    if (it == index_.end()) {
      in_.set_position(at);
      return in_.Error("a factor that the operands or results use");
    }
    return static_cast<int>(it->second);
  }

  absl::Status Sizes() {
    if (in_.Consume("{")) {
      if (!in_.Consume("}")) {
        do {
          SHARDCALL_ASSIGN_OR_RETURN(int f, KnownFactor());
          SHARDCALL_RETURN_IF_ERROR(in_.Expect("="));
          const size_t at = in_.position();
          SHARDCALL_ASSIGN_OR_RETURN(int64_t size, in_.Integer());
          if (size < 0 || out_.factors[f].size >= 0) {
            return in_.ErrorAt(at, "a factor needs one size of at least 0");
          }
          out_.factors[f].size = size;
        } while (in_.Consume(","));
        SHARDCALL_RETURN_IF_ERROR(in_.Expect("}"));
      }
    }
    for (const Factor& f : out_.factors) {
      if (f.size < 0) {
        return in_.ErrorAt(in_.position(), absl::StrCat("factor ", f.name, " has no size"), "", "",
                           absl::StrCat("add ", f.name, "=N to the sizes"));
      }
    }
    return absl::OkStatus();
  }

  template <typename F>
  absl::Status ForEachInSet(const F& f) {
    SHARDCALL_RETURN_IF_ERROR(in_.Expect("{"));
    if (in_.Consume("}")) return absl::OkStatus();
    do {
      in_.SkipSpace();
      const size_t at = in_.position();
      SHARDCALL_ASSIGN_OR_RETURN(int factor, KnownFactor());
      SHARDCALL_RETURN_IF_ERROR(f(factor, at));
    } while (in_.Consume(","));
    return in_.Expect("}");
  }

  absl::Status Kind(FactorKind kind) {
    return ForEachInSet([&](int f, size_t at) {
      if (out_.factors[f].kind != FactorKind::kPassThrough) {
        return in_.ErrorAt(at, absl::StrCat("factor ", out_.factors[f].name,
                                            " stands twice among the special factors"));
      }
      out_.factors[f].kind = kind;
      return absl::OkStatus();
    });
  }

  // Checks the tensors against the shapes. A factor that is alone in a dimension may have another
  // extent there, as in a concatenate; the sizes of a compound must multiply to the extent.
  absl::Status Check(absl::Span<const Shape* const> shapes,
                     const std::vector<TensorFactors>& tensors, int first, absl::string_view what) {
    auto error = [&](std::string message, int64_t expected, int64_t found) {
      return ToStatus({.code = "E111",
                       .message = std::move(message),
                       .expected = absl::StrCat(expected),
                       .found = absl::StrCat(found),
                       .fix = "correct the rule, or drop the attribute and register the target",
                       .excerpt = absl::StrCat("  ", in_.text())});
    };
    if (shapes.size() != tensors.size()) {
      return error(absl::StrCat("a sharding rule does not fit the number of ", what, "s"),
                   shapes.size(), tensors.size());
    }
    for (size_t t = 0; t < tensors.size(); ++t) {
      const auto& dims = tensors[t].dims;
      if (static_cast<int>(dims.size()) != shapes[t]->rank()) {
        return error(absl::StrCat("a sharding rule does not fit the rank of ", what, " ", t),
                     shapes[t]->rank(), dims.size());
      }
      std::vector<bool> seen(out_.factors.size(), false);
      for (size_t d = 0; d < dims.size(); ++d) {
        int64_t product = 1;
        for (int f : dims[d]) {
          if (seen[f]) {
            return error(
                absl::StrCat("factor ", out_.factors[f].name, " stands twice in ", what, " ", t), 1,
                2);
          }
          seen[f] = true;
          if (__builtin_mul_overflow(product, out_.factors[f].size, &product)) product = -1;
        }
        const int64_t size = shapes[t]->dim(static_cast<int>(d));
        if (product == size) continue;
        if (dims[d].size() > 1) {
          return error(absl::StrCat("the factors of dimension ", d, " of ", what, " ", t,
                                    " do not give its size"),
                       size, product);
        }
        out_.extents.push_back({{first + static_cast<int>(t), dims[d][0]}, size});
      }
    }
    return absl::OkStatus();
  }

  TextCursor in_;
  ShardingRule out_;
  absl::flat_hash_map<std::string, size_t> index_;
};

}  // namespace

absl::StatusOr<ShardingRule> ParseSdyRule(absl::string_view text,
                                          absl::Span<const Shape* const> operands,
                                          absl::Span<const Shape* const> results) {
  SHARDCALL_RETURN_IF_ERROR(CheckShapes(operands, results));
  return Parser(text).Parse(operands, results);
}

}  // namespace shardcall
