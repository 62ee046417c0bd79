// SPDX-License-Identifier: Apache-2.0
// A rule string after parsing, without shapes. Internal to sharding/.
#ifndef SHARDCALL_SHARDING_RULE_RULE_TEMPLATE_H_
#define SHARDCALL_SHARDING_RULE_RULE_TEMPLATE_H_

#include <string>
#include <vector>

#include "shardcall/sharding/rule/rule.h"

namespace shardcall {
inline namespace internal {

struct RuleTemplate {
  struct NamedFactor {
    Factor factor;           // `size` is -1 unless the text gives it
    bool whole_dim = false;  // is the only factor of some dimension
  };
  struct Value {
    int ellipsis = -1;  // index into `ellipses`, or -1
    std::vector<std::vector<int>> dims;
  };

  std::string rule;
  std::vector<NamedFactor> factors;
  std::vector<std::string> ellipses;  // "...", "...1"
  std::vector<Value> operands, results;
};

// E111 if one of the shapes is null.
absl::Status CheckShapes(absl::Span<const Shape* const> operands,
                         absl::Span<const Shape* const> results);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RULE_RULE_TEMPLATE_H_
