// SPDX-License-Identifier: Apache-2.0
// The trials of one call: each factor over 2, 3 and 4 devices, factors in pairs, and the search for
// a valid rule in place of a wrong one. Split over call_checker.cc (the order of trials, and the
// handler alone), reference_check.cc, factor_trials.cc, callback_trials.cc, improvements.cc and
// callback_costs.cc (rules that send less).
#ifndef SHARDCALL_PARTITIONER_CHECK_CALL_CHECKER_H_
#define SHARDCALL_PARTITIONER_CHECK_CALL_CHECKER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "shardcall/partitioner/check/call_sizes.h"
#include "shardcall/partitioner/check/check_rule.h"

namespace shardcall::inline internal {

// Whether a dimension of the tensor has the factor.
inline bool Has(const TensorFactors& tensor, int factor) {
  return std::any_of(tensor.dims.begin(), tensor.dims.end(), [&](const FactorList& dim) {
    return std::find(dim.begin(), dim.end(), factor) != dim.end();
  });
}

// The call with all of `group` as its first factor.
CheckedCall Merged(const CheckedCall& call, const std::vector<int>& group);

class CallChecker {
 public:
  // All must outlive the checker; findings and counts go to `out`.
  CallChecker(const CheckedCall& call, uint64_t seed, const TrialOptions& options, RuleCheck* out)
      : sizes_(call, seed, options, out), seed_(seed), options_(options), out_(*out) {}

  // Finds errors of the rule. E190 if the handler takes no sizes.
  absl::Status Run();
  // After Run, by kind and factor: factors that need replication in the rule but could be sharded
  // (missing), and properties of the rule that make it send more than needed (needless).
  std::map<std::string, RuleFinding> Improvements();

  bool faulty() const { return sizes_.faulty(); }

 private:
  using Sizes = CallSizes::Sizes;
  struct Failure {
    RuleTrial trial;
    TrialResult result;
  };
  struct Tested {
    int runs = 0, uneven = 0;  // `uneven`: runs with a size that the devices do not divide
    std::string reason = "the handler takes no two sizes of it";
    std::string uneven_reason = "the handler takes none";
    std::optional<Failure> failure;
  };

  // Compares the target's shape function, if any, with the results' shapes.
  void CheckShapes();
  int NumFactors() const { return static_cast<int>(call_.rule.factors.size()); }
  // Whether the factor is the most major one in every dimension that has it.
  bool IsMajor(int f) const;
  static bool InEveryResult(const CheckedCall& call, int f);
  static bool InAResult(const CheckedCall& call, int f);
  bool InAnOperand(int f) const;
  bool InATensor(int f) const;

  // Runs the trial with both kinds of inputs. True if one of them was compared.
  bool Try(RuleTrial trial, Tested* tested);
  // Tests one factor over 2, 3 and 4 devices. Shards have the first tile size for which the handler
  // takes the whole and the shard. The whole is tested with that size, one less, and so small that
  // the last device has nothing.
  Tested TestFactor(const CheckedCall& call, int f);
  // The same for the given call with a size of 0, if there is one.
  std::optional<Failure> TestEmpty(const CheckedCall& call, int f);
  // The same with only the call's own sizes.
  Tested TestGiven(const CheckedCall& call, int f);
  void CheckPairs(const std::vector<int>& factors);
  // `call` with another kind of factor `f` that passes the trials.
  std::optional<CheckedCall> Better(const CheckedCall& call, int f, bool with_replication);
  void AddFinding(RuleVerdict verdict, const std::string& factor, std::string message,
                  const CheckedCall& better, std::map<std::string, RuleFinding>* out) const;
  void FindMissing(std::map<std::string, RuleFinding>* out);
  void FindNeedless(std::map<std::string, RuleFinding>* out);
  // Finds factors that the rule separates but that the handler takes only in one common size.
  void FindOneAsSeveral(std::map<std::string, RuleFinding>* out);
  // Calls `visit` for each such group, with its factors linked.
  void FindGroups(absl::FunctionRef<void(const std::vector<int>& group)> visit);
  // Finds callbacks that send more than a valid rule (callback_costs.cc).
  void FindCallbackCosts(std::map<std::string, RuleFinding>* out);
  // Compares the call's callbacks with `better`, with `factors` sharded.
  void CompareCallbacks(const CheckedCall& better, const std::vector<int>& factors,
                        std::map<std::string, RuleFinding>* out);
  // Bytes that each device sends; -1 if the call cannot be partitioned.
  double BytesSent(const CheckedCall& call, const Sizes& sizes,
                   const CheckedCall::Mesh& mesh) const;
  // Compares the handler with the reference in several sizes of each factor (reference_check.cc).
  void CheckReference();
  void AddReferenceFinding(const std::string& factor, const Sizes& sizes, std::string message);
  // The sizes in which the reference is written; none if they cannot be determined.
  std::optional<Sizes> WrittenSizes() const;
  // If both agree in those sizes, reports each factor in other sizes of which they differ. False if
  // there is none.
  bool FindConstantSizes();
  void Report(int f, const Failure& failure);
  void CheckCallbacks();
  // Tests one dimension of operand t, in these sizes, over 2, 3 and 4 devices. False on failure.
  bool CheckCallbacksDim(const Sizes& sizes, int t, int dim);

  static constexpr int64_t kTrialDevices[] = {2, 3, 4};

  CallSizes sizes_;
  const CheckedCall& call_ = sizes_.call();
  const Sizes& base_ = sizes_.base();
  const uint64_t seed_;
  const TrialOptions& options_;
  RuleCheck& out_;
  std::vector<int> sound_;  // factors that passed all trials
  // Factors whose size is a constant in the reference. So the kind found for them from the
  // reference is not that of the handler.
  std::set<int> constant_in_reference_;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_CHECK_CALL_CHECKER_H_
