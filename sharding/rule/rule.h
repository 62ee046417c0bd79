// SPDX-License-Identifier: Apache-2.0
// Sharding rules: how each dimension of each operand and result maps to
// factors. A matmul is `i k, k j -> i j` with k a reduction factor. The idea
// and the factor kinds are those of Shardy's op_sharding_rule and of JAX's
// SdyShardingRule strings.
//
// Extents: a factor has one extent per tensor, equal to Factor::size unless
// Extent() says otherwise (a slice's operand is longer than its result).
#ifndef SHARDCALL_SHARDING_RULE_RULE_H_
#define SHARDCALL_SHARDING_RULE_RULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/base/index_set.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/shape.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {
struct RuleTemplate;
}  // namespace internal
}  // namespace shardcall

namespace shardcall SHARDCALL_PUBLIC {

// A reduction factor is summed over in the results that lack it; results that have it are sharded
// by it (in a norm's backward pass, dx has the rows and dgain is their sum). Need-replication is
// for what the op or its author needs whole by its meaning. A permutation factor is one whose
// shards need data of others (windows, lines whose best is sought): an op runs on shards of it if
// there is a way to bring the data there.
enum class FactorKind : uint8_t { kPassThrough, kReduction, kNeedReplication, kPermutation };

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::kPassThrough;
  PartialOp reduction = PartialOp::kSum;  // of a reduction factor
  bool blocked = false;                   // propagation may not pass it, computation may
  // The value that padding of this factor must have in every operand where the op reads it
  // (reduction factors); converted to the element type of the operand.
  bool has_pad = false;
  double pad = 0;
  std::string name = {};  // "b", for messages and printing
};

using FactorList = absl::InlinedVector<int, 2>;  // major to minor, a compound dimension
struct TensorFactors {
  absl::InlinedVector<FactorList, 4> dims;
};

struct ShardingRule {
  std::vector<Factor> factors;
  std::vector<TensorFactors> operands;  // one per operand leaf
  std::vector<TensorFactors> results;   // one per result leaf
  bool custom = false;                  // written by a user
  // (tensor index: operands then results, factor) -> extent where it differs.
  std::vector<std::pair<std::pair<int, int>, int64_t>> extents;

  int num_tensors() const { return static_cast<int>(operands.size() + results.size()); }
  const TensorFactors& tensor(int i) const {
    return i < static_cast<int>(operands.size()) ? operands[i] : results[i - operands.size()];
  }
  int64_t Extent(int tensor, int factor) const;

  // "i k, k j -> i j", followed by the special factors:
  // "reduction={k:add} need_replication={..} permutation={..}".
  std::string ToString() const;
  // `#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, ...} reduction={k}>`
  std::string ToSdyText() const;
};

// The pass-through factors, not blocked, that occur in operands but in no result, so that the rule
// does not say how they combine. None where no result is an array.
IndexSet OpenFactors(const ShardingRule& rule, absl::Span<const Shape* const> results);

// What a user writes for a custom-call target: a rule string and the special factors. The names
// are those of JAX's SdyShardingRule; `...` stands for leading batch dims.
struct RuleText {
  std::string rule;  // "b s h, h -> b s h"
  std::vector<std::string> need_replication = {}, permutation = {}, blocked = {};
  std::vector<std::pair<std::string, PartialOp>> reduction = {};
  std::vector<std::pair<std::string, double>> pad = {};  // pad identity per factor
  // Of factors that stand only in compound dimensions. One that is the only such factor of a
  // compound needs none: its size follows from each call's shapes.
  std::vector<std::pair<std::string, int64_t>> sizes = {};
};

// Parsed once, without shapes. Errors E110 with a caret into the string.
absl::StatusOr<std::shared_ptr<const RuleTemplate>> ParseRule(const RuleText& text);
// The rule for given shapes; `operands` and `results` are leaf shapes. Errors
// E111: counts, ranks, sizes that contradict each other.
absl::StatusOr<ShardingRule> InstantiateRule(const RuleTemplate& rule,
                                             absl::Span<const Shape* const> operands,
                                             absl::Span<const Shape* const> results);
// The first k dims of every tensor are independent batch dims (all dims of a tensor of lower
// rank). All other dims need replication, and so do batch dims that no result has.
absl::StatusOr<ShardingRule> BatchRule(int k, absl::Span<const Shape* const> operands,
                                       absl::Span<const Shape* const> results);
// `#sdy.op_sharding_rule<...>` as JAX dumps it.
absl::StatusOr<ShardingRule> ParseSdyRule(absl::string_view text,
                                          absl::Span<const Shape* const> operands,
                                          absl::Span<const Shape* const> results);

}  // namespace shardcall

namespace shardcall {
inline namespace internal {

// Whether data crosses the shards of factor f, whatever its kind: because it is a permutation, or
// because its extent is not the same in all tensors, so that shards begin at other places.
inline bool IsCrossing(const ShardingRule& rule, int f) {
  if (rule.factors[f].kind == FactorKind::kPermutation) return true;
  for (const auto& [place, extent] : rule.extents) {
    if (place.second == f && extent != rule.factors[f].size) return true;
  }
  return false;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RULE_RULE_H_
