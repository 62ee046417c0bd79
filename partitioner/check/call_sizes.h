// SPDX-License-Identifier: Apache-2.0
// Which calls of a target its handler takes: types and sizes for the factors of one call.
#ifndef SHARDCALL_PARTITIONER_CHECK_CALL_SIZES_H_
#define SHARDCALL_PARTITIONER_CHECK_CALL_SIZES_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/check/check_rule.h"

namespace shardcall::inline internal {

class CallSizes {
 public:
  using Sizes = std::vector<int64_t>;  // by factor

  // All must outlive it; findings go to `out`.
  CallSizes(const CheckedCall& call, uint64_t seed, const TrialOptions& options, RuleCheck* out);

  // Finds types and sizes that the handler takes: the sizes small and distinct, if it can
  // be, and those of a given call in the relations that they have. E190 if there are none;
  // a handler that crashed, read outside of its buffers or did not return is a finding,
  // and `faulty`: nothing more is asked of it.
  absl::Status Find();
  bool faulty() const { return faulty_; }
  const CheckedCall& call() const { return call_; }  // with those types
  const Sizes& base() const { return base_; }
  // The given call in a size of 0, if there is one, which is tried too; else empty.
  const Sizes& empty() const { return empty_; }

  bool Takes(const Sizes& sizes, TrialResult* why = nullptr);
  // Factors that are given one size with `factor`, which is among them.
  const std::vector<int>& linked(int factor) const { return linked_[factor]; }
  void Link(std::vector<int> group) { linked_[group[0]] = std::move(group); }
  void Unlink(int factor) { linked_[factor] = {factor}; }
  // The base with a factor, and what it is linked to, of another size; and what follows
  // from it.
  Sizes With(int factor, int64_t size) const;
  // What a device has of `whole` where it has so much of the factor.
  Sizes Shard(Sizes whole, int factor, int64_t tile) const;
  // Of results without elements every rule holds.
  static bool HasResults(const CheckedCall& call, absl::Span<const int64_t> sizes);
  // A finding of the handler, whatever the rule.
  void ReportHandler(const Sizes& sizes, const TrialResult& result);

 private:
  // What to try where the call's sizes are given, or some of them are open.
  std::vector<Sizes> GivenSizes(const Sizes& given) const;
  std::vector<Sizes> OpenSizes(const Sizes& given, const std::vector<int>& open) const;
  // Where the program gives a size of 0: the base in larger sizes, if the handler takes any.
  void FillEmpty();
  bool IsTooLarge(const Sizes& sizes) const;
  // Whether a declared range has an element for every operand that has any.
  bool HasInputs(const Sizes& sizes) const;
  absl::Status CheckInputs(const Sizes& given) const;  // E313 where they do not fit

  CheckedCall call_;
  const uint64_t seed_;
  const TrialOptions& options_;
  RuleCheck& out_;
  Sizes base_;
  Sizes empty_;
  std::vector<std::vector<int>> linked_;  // by factor
  std::map<Sizes, TrialResult> takes_;
  bool faulty_ = false;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_CHECK_CALL_SIZES_H_
