// SPDX-License-Identifier: Apache-2.0
// What a signature of a target says of the attributes of its calls: a value that each of some
// attributes has. Attributes are those of typed calls, in the dictionary of the backend_config.
//
//   {{"mode", {"gelu", "relu"}}, {"axis", {1}}}   of calls with {mode = "gelu", axis = 1 : i64}
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_ATTRIBUTE_CONDITION_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_ATTRIBUTE_CONDITION_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct AttributeCondition {
  // monostate: the call does not have the attribute. Numbers are compared by value, whatever their
  // width: 1 is 1 : i32, and 0.1 is 0.1 : f32. A bool is neither.
  using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;
  std::string name;
  std::vector<Value> any_of;
  friend bool operator==(const AttributeCondition&, const AttributeCondition&) = default;
};
using AttributeConditions = std::vector<AttributeCondition>;

// The conditions of the attributes in `dictionary`, "{mode = \"gelu\", axis = 1 : i64}". E131
// where it does not parse, E110 where a value is an array or a dictionary.
absl::StatusOr<AttributeConditions> AttributeConditionsOf(absl::string_view dictionary);

// Whether a call with this backend_config satisfies all conditions. A backend_config without a
// dictionary has no attribute.
bool Satisfies(absl::string_view backend_config, absl::Span<const AttributeCondition> conditions);
// Whether some call satisfies both.
bool Compatible(absl::Span<const AttributeCondition> a, absl::Span<const AttributeCondition> b);
// Whether each call that satisfies `a` satisfies `b`.
bool Implies(absl::Span<const AttributeCondition> a, absl::Span<const AttributeCondition> b);

// `{mode = "gelu" or "relu", axis = 1}`.
std::string AttributeConditionsText(absl::Span<const AttributeCondition> conditions);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_ATTRIBUTE_CONDITION_H_
