// SPDX-License-Identifier: Apache-2.0
// Compares a handler with the reference of its target (partition_like), on one device.
#ifndef SHARDCALL_PARTITIONER_CHECK_REFERENCE_CHECK_H_
#define SHARDCALL_PARTITIONER_CHECK_REFERENCE_CHECK_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "shardcall/partitioner/check/call_sizes.h"
#include "shardcall/partitioner/check/check_rule.h"

namespace shardcall {
inline namespace internal {

class ReferenceCheck {
 public:
  // All must outlive this object; findings and counts go to `out`.
  ReferenceCheck(CallSizes* sizes, uint64_t seed, const TrialOptions& options, RuleCheck* out)
      : sizes_(*sizes), seed_(seed), options_(options), out_(*out) {}

  // In several sizes of each factor. Returns the factors whose size is a constant in the reference:
  // the kind that was found for them from the reference is not that of the handler.
  std::set<int> Run();

 private:
  using Sizes = CallSizes::Sizes;
  void AddFinding(const std::string& factor, const Sizes& sizes, std::string message);
  // The sizes in which the reference is written; none if they cannot be determined.
  std::optional<Sizes> WrittenSizes() const;
  // If both agree in those sizes, reports each factor in other sizes of which they differ, and
  // returns these factors.
  std::set<int> FindConstantSizes();

  CallSizes& sizes_;
  const uint64_t seed_;
  const TrialOptions& options_;
  RuleCheck& out_;
  const CheckedCall& call_ = sizes_.call();
  const Sizes& base_ = sizes_.base();
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_REFERENCE_CHECK_H_
