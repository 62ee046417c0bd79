// SPDX-License-Identifier: Apache-2.0
// The trials of one call: each factor over 2, 3 and 4 devices, factors in pairs, and what
// rules hold in place of a wrong one. Split over call_checker.cc (what is tried, and the
// handler by itself), reference_check.cc, factor_trials.cc, callback_trials.cc,
// improvements.cc and callback_costs.cc (rules that would send less).
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

  // Finds what is incorrect. E190 if the handler takes no sizes.
  absl::Status Run();
  // After Run, by kind and factor: what the rule keeps whole and could be sharded
  // (missing), and what makes it send more than it need (needless).
  std::map<std::string, RuleFinding> Improvements();

  bool faulty() const { return sizes_.faulty(); }

 private:
  using Sizes = CallSizes::Sizes;
  struct Failure {
    RuleTrial trial;
    TrialResult result;
  };
  struct Tested {
    int runs = 0, uneven = 0;  // of `runs`, those whose size the devices do not divide
    std::string reason = "the handler takes no two sizes of it";
    std::string uneven_reason = "the handler takes none";
    std::optional<Failure> failure;
  };

  // Its shape function, where the target has one, against the results that it gives.
  void CheckShapes();
  int NumFactors() const { return static_cast<int>(call_.rule.factors.size()); }
  // Whether it can be sharded before any other in every dimension it is part of.
  bool IsMajor(int f) const;
  static bool InEveryResult(const CheckedCall& call, int f);
  static bool InAResult(const CheckedCall& call, int f);
  bool InAnOperand(int f) const;
  bool InATensor(int f) const;

  // The trial with both kinds of inputs. True if one of them was compared.
  bool Try(RuleTrial trial, Tested* tested);
  // One factor over 2, 3 and 4 devices: shards of the first tile size at which
  // the handler takes the whole and the shard, then a whole that is one less,
  // then one that leaves the last device nothing.
  Tested TestFactor(const CheckedCall& call, int f);
  // The same with the given call that has a size of 0, if there is one.
  std::optional<Failure> TestEmpty(const CheckedCall& call, int f);
  // The same with the call's own sizes alone.
  Tested TestGiven(const CheckedCall& call, int f);
  void CheckPairs(const std::vector<int>& factors);
  // `call` with another kind of factor `f` that holds.
  std::optional<CheckedCall> Better(const CheckedCall& call, int f, bool with_replication);
  void AddFinding(RuleVerdict verdict, const std::string& factor, std::string message,
                  const CheckedCall& better, std::map<std::string, RuleFinding>* out) const;
  void FindMissing(std::map<std::string, RuleFinding>* out);
  void FindNeedless(std::map<std::string, RuleFinding>* out);
  // Factors that the handler takes in one size only although the rule keeps them
  // apart.
  void FindOneAsSeveral(std::map<std::string, RuleFinding>* out);
  // Calls `visit` for each such group, with its factors linked.
  void FindGroups(absl::FunctionRef<void(const std::vector<int>& group)> visit);
  // Callbacks that send more than a rule that holds (callback_costs.cc).
  void FindCallbackCosts(std::map<std::string, RuleFinding>* out);
  // The call's callbacks against `better` with `factors` sharded.
  void CompareCallbacks(const CheckedCall& better, const std::vector<int>& factors,
                        std::map<std::string, RuleFinding>* out);
  // By each device; -1 if it cannot be partitioned.
  double BytesSent(const CheckedCall& call, const Sizes& sizes,
                   const CheckedCall::Mesh& mesh) const;
  // The handler's numbers against the reference's, in every size of a factor
  // (reference_check.cc).
  void CheckReference();
  void AddReferenceFinding(const std::string& factor, const Sizes& sizes, std::string message);
  // The sizes that the reference is written in; none if it cannot be told.
  std::optional<Sizes> WrittenSizes() const;
  // Where the two agree in those sizes: a finding for each factor in other sizes of which
  // they do not. False if there is none.
  bool FindConstantSizes();
  void Report(int f, const Failure& failure);
  void CheckCallbacks();
  // One dimension of operand t in such sizes over 2, 3 and 4 devices. False if it failed.
  bool CheckCallbacksDim(const Sizes& sizes, int t, int dim);

  static constexpr int64_t kTrialDevices[] = {2, 3, 4};

  CallSizes sizes_;
  const CheckedCall& call_ = sizes_.call();
  const Sizes& base_ = sizes_.base();
  const uint64_t seed_;
  const TrialOptions& options_;
  RuleCheck& out_;
  std::vector<int> sound_;  // factors that were tested and hold
  // Factors whose size the reference has as a constant: their kind is not that of the
  // handler, whatever it is.
  std::set<int> constant_in_reference_;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_CHECK_CALL_CHECKER_H_
