// SPDX-License-Identifier: Apache-2.0
// Finds calls that a target's handler takes: types, and sizes for the factors of one call.
#ifndef SHARDCALL_PARTITIONER_CHECK_CALL_SIZES_H_
#define SHARDCALL_PARTITIONER_CHECK_CALL_SIZES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/check/check_rule.h"

namespace shardcall {
inline namespace internal {

class CallSizes {
 public:
  using Sizes = std::vector<int64_t>;  // by factor

  // All must outlive this object; findings go to `out`.
  CallSizes(const CheckedCall& call, uint64_t seed, const TrialOptions& options, RuleCheck* out);

  // Finds types and sizes that the handler takes. Sizes are small and distinct if possible; those
  // of a given call keep their ratios. E190 if there are none. A handler that crashes, reads
  // outside of its buffers or does not return is reported as a finding and becomes `faulty`: no
  // further trials are made.
  absl::Status Find();
  bool faulty() const { return faulty_; }
  const CheckedCall& call() const { return call_; }  // with the types found
  const Sizes& base() const { return base_; }
  // The given call in a size of 0, which is tested too; empty if there is none.
  const Sizes& empty() const { return empty_; }

  bool Takes(const Sizes& sizes, TrialResult* why = nullptr);
  // Factors that always have the same size as `factor`, itself included.
  const std::vector<int>& linked(int factor) const { return linked_[factor]; }
  void Link(std::vector<int> group) { linked_[group[0]] = std::move(group); }
  void Unlink(int factor) { linked_[factor] = {factor}; }
  // The base sizes with another size for a factor, those linked to it, and factors derived from
  // them.
  Sizes With(int factor, int64_t size) const;
  // The sizes on a device that has `tile` elements of the factor.
  Sizes Shard(Sizes whole, int factor, int64_t tile) const;
  // False if no result has elements; then every rule is correct.
  static bool HasResults(const CheckedCall& call, absl::Span<const int64_t> sizes);
  // Reports a fault of the handler, independent of the rule.
  void ReportHandler(const Sizes& sizes, const TrialResult& result);

 private:
  // What the handler says of a call that it does not take.
  struct Answer {
    TrialResult result;
    std::vector<ElementType> types;
    Sizes sizes;
  };
  struct Answers {
    std::optional<Answer> refusal, fault;
  };
  // Sets the base to the first sizes that the handler takes, with the types of call(). The last
  // refusal with the likeliest types is kept, else the first one, and the first fault.
  bool TakesOneOf(const std::vector<Sizes>& tries, bool likeliest, Answers* said);
  // The same for the call without results, which call() then is; else `why` says why not.
  bool TakesWithoutResult(const std::vector<Sizes>& tries, std::string* why);
  // E190. `tried_given`: the program's own sizes are among those that were tried.
  absl::Status Refused(const Answer& last, const std::string& without_result,
                       bool tried_given) const;
  // The sizes to try if sizes are given, or some of them are open.
  std::vector<Sizes> GivenSizes(const Sizes& given) const;
  std::vector<Sizes> OpenSizes(const Sizes& given, const std::vector<int>& open) const;
  // If the program gives a size of 0: sets the base to larger sizes, if the handler takes any.
  void FillEmpty();
  bool IsTooLarge(const Sizes& sizes) const;
  // Whether the declared range of every non-empty operand is non-empty.
  bool HasInputs(const Sizes& sizes) const;
  absl::Status CheckInputs(const Sizes& given) const;  // E313 if they do not fit

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

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_CALL_SIZES_H_
