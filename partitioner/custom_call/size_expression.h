// SPDX-License-Identifier: Apache-2.0
// Formulas over the sizes of a rule's factors, for attributes of a call that follow its shard: the
// grid of a kernel, or a size that it is told.
//
//   m / 16            exactly; an error where a remainder is left
//   ceil(m / 16)      also cdiv(m, 16)
//   floor(m / 16)     also m // 16
//   max(2 m - 1, n)   min and max take two or more; 2 m is 2 * m
//
// + - * / and parentheses are as usual, and the values are rational numbers; the result must be an
// integer.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_SIZE_EXPRESSION_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_SIZE_EXPRESSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

class SizeExpression {
 public:
  // E124 with a caret into the text.
  static absl::StatusOr<SizeExpression> Parse(absl::string_view text);

  // The factors that it names, each once.
  const std::vector<std::string>& factors() const { return factors_; }
  // `size_of(k)` is the size of factors()[k]. E125: a result that is not an integer, a division by
  // zero, a value beyond 64 bits.
  absl::StatusOr<int64_t> Evaluate(absl::FunctionRef<int64_t(size_t)> size_of) const;

  enum class Op : uint8_t {
    kNumber,
    kFactor,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kNegate,
    kFloor,
    kCeil,
    kMin,
    kMax
  };
  // In postfix order: an op takes the values on top of a stack.
  struct Step {
    Op op = Op::kNumber;
    int64_t value = 0;  // the number, or the index of the factor
  };

 private:
  std::string text_;
  std::vector<std::string> factors_;
  std::vector<Step> steps_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_SIZE_EXPRESSION_H_
