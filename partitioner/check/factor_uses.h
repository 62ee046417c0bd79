// SPDX-License-Identifier: Apache-2.0
// Where a call's rule uses its factors.
#ifndef SHARDCALL_PARTITIONER_CHECK_FACTOR_USES_H_
#define SHARDCALL_PARTITIONER_CHECK_FACTOR_USES_H_

#include <vector>

#include "shardcall/partitioner/check/checked_call.h"

namespace shardcall {
inline namespace internal {

inline int NumFactors(const CheckedCall& call) {
  return static_cast<int>(call.rule.factors.size());
}
// Whether a dimension of the tensor has the factor.
bool Has(const TensorFactors& tensor, int factor);
// Whether the factor is the most major one in every dimension that has it, and some dimension has.
bool IsMajor(const CheckedCall& call, int factor);
bool InAnOperand(const CheckedCall& call, int factor);
bool InAResult(const CheckedCall& call, int factor);
bool InEveryResult(const CheckedCall& call, int factor);

// The call with all of `group` as its first factor.
CheckedCall Merged(const CheckedCall& call, const std::vector<int>& group);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_FACTOR_USES_H_
