// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/size_expression.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

using Op = SizeExpression::Op;
using Step = SizeExpression::Step;

constexpr int kDeepest = 64;  // nesting of parentheses

struct Function {
  absl::string_view name;
  int fewest, most;  // arguments
  // What combines two arguments, and what is done with the last value; kNumber: nothing.
  Op combine, finish;
};
constexpr Function kFunctions[] = {
    {"floor", 1, 1, Op::kNumber, Op::kFloor},    {"ceil", 1, 1, Op::kNumber, Op::kCeil},
    {"cdiv", 2, 2, Op::kDivide, Op::kCeil},      {"ceildiv", 2, 2, Op::kDivide, Op::kCeil},
    {"floordiv", 2, 2, Op::kDivide, Op::kFloor}, {"min", 2, 16, Op::kMin, Op::kNumber},
    {"max", 2, 16, Op::kMax, Op::kNumber}};

// Recursive descent: sum := product (+|- product)*; product := factor ((*|/|//)? factor)*.
class Parser {
 public:
  Parser(absl::string_view text, std::vector<std::string>* factors, std::vector<Step>* steps)
      : text_(text), factors_(*factors), steps_(*steps) {}

  absl::Status Whole() {
    SHARDCALL_RETURN_IF_ERROR(Sum(0));
    SkipSpace();
    return pos_ == text_.size() ? absl::OkStatus() : Error(pos_, "an operator, or the end");
  }

 private:
  void SkipSpace() {
    while (pos_ < text_.size() && absl::ascii_isspace(text_[pos_])) ++pos_;
  }
  bool Take(absl::string_view token) {
    SkipSpace();
    if (text_.substr(pos_, token.size()) != token) return false;
    pos_ += token.size();
    return true;
  }
  char Peek() {
    SkipSpace();
    return pos_ < text_.size() ? text_[pos_] : '\0';
  }
  void Push(Op op, int64_t value = 0) {
    if (op != Op::kNumber) steps_.push_back({op, value});
  }

  absl::Status Error(size_t at, absl::string_view expected) const {
    return ToStatus(
        {.code = "E124",
         .message = "a formula for an attribute cannot be read",
         .where = absl::StrCat("column ", at + 1),
         .expected = std::string(expected),
         .found = at < text_.size() ? absl::StrCat("\"", text_.substr(at, 12), "\"") : "the end",
         .fix = "Write a formula over the rule's factors, such as \"m / 16\", "
                "\"cdiv(m, 16) * n\" or \"max(m, 4)\"",
         .excerpt = absl::StrCat(text_, "\n", std::string(at, ' '), "^")});
  }

  absl::Status Sum(int depth) {
    SHARDCALL_RETURN_IF_ERROR(Product(depth));
    while (Peek() == '+' || Peek() == '-') {
      const Op op = text_[pos_++] == '+' ? Op::kAdd : Op::kSubtract;
      SHARDCALL_RETURN_IF_ERROR(Product(depth));
      Push(op);
    }
    return absl::OkStatus();
  }

  absl::Status Product(int depth) {
    SHARDCALL_RETURN_IF_ERROR(Value(depth));
    for (;;) {
      // "2 m" and "2 (m + 1)": a number before a name or a parenthesis multiplies it.
      const bool after_number = steps_.back().op == Op::kNumber;
      const bool whole = Take("//");
      const char c = Peek();
      Op op = Op::kDivide;
      if (!whole && (c == '*' || c == '/')) {
        op = c == '*' ? Op::kMultiply : Op::kDivide;
        ++pos_;
      } else if (!whole) {
        if (!after_number || !(absl::ascii_isalpha(c) || c == '_' || c == '(')) break;
        op = Op::kMultiply;
      }
      SHARDCALL_RETURN_IF_ERROR(Value(depth));
      Push(op);
      if (whole) Push(Op::kFloor);
    }
    return absl::OkStatus();
  }

  absl::Status Value(int depth) {
    if (depth > kDeepest) return Error(pos_, absl::StrCat("at most ", kDeepest, " parentheses"));
    if (Take("-")) {
      SHARDCALL_RETURN_IF_ERROR(Value(depth + 1));
      Push(Op::kNegate);
      return absl::OkStatus();
    }
    const char c = Peek();
    const size_t at = pos_;
    if (Take("(")) {
      SHARDCALL_RETURN_IF_ERROR(Sum(depth + 1));
      return Take(")") ? absl::OkStatus() : Error(pos_, "\")\"");
    }
    while (pos_ < text_.size() && (absl::ascii_isalnum(text_[pos_]) || text_[pos_] == '_')) ++pos_;
    const absl::string_view word = text_.substr(at, pos_ - at);
    if (absl::ascii_isdigit(c)) {
      int64_t value = 0;
      if (!absl::SimpleAtoi(word, &value)) return Error(at, "an integer of 64 bits");
      steps_.push_back({Op::kNumber, value});
      return absl::OkStatus();
    }
    if (word.empty()) return Error(at, "a number, a factor or \"(\"");
    if (Peek() == '(') return Call(word, at, depth);
    const auto known = std::find(factors_.begin(), factors_.end(), word);
    Push(Op::kFactor, known - factors_.begin());
    if (known == factors_.end()) factors_.emplace_back(word);
    return absl::OkStatus();
  }

  absl::Status Call(absl::string_view name, size_t at, int depth) {
    const auto* function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                        [&](const Function& f) { return f.name == name; });
    if (function == std::end(kFunctions)) {
      return Error(at, "one of the functions ceil, floor, cdiv, min and max");
    }
    Take("(");
    int count = 0;
    do {
      SHARDCALL_RETURN_IF_ERROR(Sum(depth + 1));
      if (++count > 1) Push(function->combine);
    } while (count < function->most && Take(","));
    if (count < function->fewest) {
      return Error(pos_, absl::StrCat("\",\": ", name, " takes ", function->fewest, " values"));
    }
    if (!Take(")")) return Error(pos_, "\")\"");
    Push(function->finish);
    return absl::OkStatus();
  }

  const absl::string_view text_;
  std::vector<std::string>& factors_;
  std::vector<Step>& steps_;
  size_t pos_ = 0;
};

// A rational number in lowest terms; `down` is positive.
struct Rational {
  int64_t up = 0, down = 1;
};

// False beyond 64 bits, or for a division by zero.
bool Make(__int128 up, __int128 down, Rational* out) {
  if (down == 0) return false;
  if (down < 0) up = -up, down = -down;
  __int128 a = up < 0 ? -up : up, b = down;
  while (b != 0) std::swap(a %= b, b);
  if (a > 1) up /= a, down /= a;
  constexpr __int128 kMost = std::numeric_limits<int64_t>::max();
  if (up > kMost || up < -kMost || down > kMost) return false;
  *out = {static_cast<int64_t>(up), static_cast<int64_t>(down)};
  return true;
}

int64_t Floor(const Rational& a) { return a.up / a.down - (a.up % a.down < 0 ? 1 : 0); }

bool Less(const Rational& a, const Rational& b) {
  return static_cast<__int128>(a.up) * b.down < static_cast<__int128>(b.up) * a.down;
}

bool Apply(Op op, const Rational& a, const Rational& b, Rational* out) {
  using Wide = __int128;
  switch (op) {
    case Op::kAdd:
      return Make(Wide{a.up} * b.down + Wide{b.up} * a.down, Wide{a.down} * b.down, out);
    case Op::kSubtract:
      return Make(Wide{a.up} * b.down - Wide{b.up} * a.down, Wide{a.down} * b.down, out);
    case Op::kMultiply: return Make(Wide{a.up} * b.up, Wide{a.down} * b.down, out);
    case Op::kDivide: return Make(Wide{a.up} * b.down, Wide{a.down} * b.up, out);
    case Op::kMin: *out = Less(b, a) ? b : a; return true;
    default: *out = Less(a, b) ? b : a; return true;  // kMax
  }
}

}  // namespace

absl::StatusOr<SizeExpression> SizeExpression::Parse(absl::string_view text) {
  SizeExpression e;
  e.text_ = std::string(text);
  SHARDCALL_RETURN_IF_ERROR(Parser(text, &e.factors_, &e.steps_).Whole());
  return e;
}

absl::StatusOr<int64_t> SizeExpression::Evaluate(absl::FunctionRef<int64_t(size_t)> size_of) const {
  std::string sizes;
  for (size_t k = 0; k < factors_.size(); ++k) {
    absl::StrAppend(&sizes, k == 0 ? " for " : ", ", factors_[k], " = ", size_of(k));
  }
  const auto wrong = [&](std::string found, std::string fix) {
    return ToStatus({.code = "E125",
                     .message = absl::StrCat("the formula \"", text_, "\" gives no size", sizes),
                     .expected = "an integer",
                     .found = std::move(found),
                     .fix = std::move(fix)});
  };
  std::vector<Rational> stack;
  for (const Step& step : steps_) {
    if (step.op == Op::kNumber || step.op == Op::kFactor) {
      stack.push_back({step.op == Op::kNumber ? step.value : size_of(step.value), 1});
      continue;
    }
    Rational& top = stack.back();
    if (step.op == Op::kNegate) {
      top.up = -top.up;
    } else if (step.op == Op::kFloor || step.op == Op::kCeil) {
      top = {step.op == Op::kFloor ? Floor(top) : -Floor({-top.up, top.down}), 1};
    } else {
      const Rational b = top;
      stack.pop_back();
      if (!Apply(step.op, stack.back(), b, &stack.back())) {
        const bool zero = step.op == Op::kDivide && b.up == 0;
        return wrong(zero ? "a division by zero" : "a value beyond 64 bits",
                     zero ? "Divide by a number, or by max(.., 1)" : "Write smaller factors");
      }
    }
  }
  const Rational& result = stack.back();
  if (result.down == 1) return result.up;
  return wrong(
      absl::StrCat(result.up, "/", result.down),
      "Write cdiv(m, n) or ceil(..) where a part counts as one, floor(..) where it is left "
      "out; or shard in sizes that divide");
}

}  // namespace internal
}  // namespace shardcall
