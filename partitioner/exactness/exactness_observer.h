// SPDX-License-Identifier: Apache-2.0
// Tracks, for one device of a run, the exactness of each value that it holds: see exactness.h.
// Devices exchange it at collectives (exactness_devices.h).
#ifndef SHARDCALL_PARTITIONER_EXACTNESS_EXACTNESS_OBSERVER_H_
#define SHARDCALL_PARTITIONER_EXACTNESS_EXACTNESS_OBSERVER_H_

#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/exactness/exactness.h"
#include "shardcall/partitioner/exactness/order_of_sums.h"
#include "shardcall/partitioner/runtime/execute/step_observer.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall {
inline namespace internal {

// The exactness of a value.
struct Exactness {
  bool exact = true;
  // Whether the partitioned program may hold the value as partial sums, still to be added, that
  // are multiples of 2^granule and whose magnitudes sum to at most `bound`.
  bool partial = false;
  double bound = 0;
  int granule = INT_MAX;
};

class ExactnessObserver : public StepObserver {
 public:
  ExactnessObserver(std::shared_ptr<const OrderOfSums> sums, const ExactOptions& options)
      : sums_(std::move(sums)),
        draws_(options.draws),
        nudge_(options.nudge),
        steps_left_(options.most_steps) {}

  bool IsExact(const Tensor& t) const { return Known(t).exact; }

  bool Enters(const Step& step) const override;
  absl::Status Before(StepRun& run, std::vector<Tensor>& slots) override;
  void After(const Step& step, std::vector<Tensor>& slots) override;

  // Brings: the exactness of the operands of the current step, combined into one, with bound and
  // granule; it is sent to the other devices. Met reports the values of the `group`: the step's
  // results are made of them, or are their sums if `added`, in elements of `type`.
  const Exactness& Brings() const { return pending_.back().brings; }
  void Met(absl::Span<const Exactness> group, bool added, ElementType type);

 private:
  struct Pending {
    Exactness result;
    Exactness brings;
    Sums sums = Sums::kNone;
    bool inner_exact = true;
    std::vector<Tensor> magnitudes;  // of the sums' terms, by result; else `magnitude`
    double magnitude = 0;            // an estimate for such sums
    double roundings = 1;            // of as many terms, one after the other, for unknown ones
  };

  Exactness Known(const Tensor& t) const;
  // The exactness with bound and granule, of partial sums or of the complete value.
  Exactness Full(const Tensor& t) const;
  // For an op that sums nothing, but whose operands may be partial sums that are added after it.
  void PassParts(StepRun& run, Exactness* out) const;
  // What bounds a sum of products of the operands' elements.
  struct OperandMeasures {
    double more = 1;                  // factor by which partial sums may exceed the complete values
    double product = 1, largest = 1;  // of the largest elements; `product` of those >= 1
    int64_t most = 1, fewest = INT64_MAX;  // elements of an operand
    int least = INT_MAX, sum = 0;          // of the granules
  };
  OperandMeasures MeasureOperands(StepRun& run) const;
  void Sum(StepRun& run, std::vector<Tensor>& slots, Pending* p) const;
  // Runs the same op on magnitudes, into p->magnitudes.
  static bool SumMagnitudes(StepRun& run, std::vector<Tensor>& slots, Pending* p);
  // Moves every element by up to a few of the last bits of the largest term of its sum, for each of
  // `roundings`. The copies of a value on several devices are moved equally.
  void Nudge(const Tensor* magnitudes, double magnitude, double roundings, Tensor* t) const;

  // Makes the step draw the random numbers of the matching device of the partitioned program.
  void SetDraws(StepRun& run) const;

  const std::shared_ptr<const OrderOfSums> sums_;
  const std::shared_ptr<const absl::flat_hash_map<std::string, std::vector<int>>> draws_;
  absl::flat_hash_map<const void*, Exactness> known_;  // by buffer; all others are exact
  std::vector<Pending> pending_;
  const uint64_t nudge_;
  int64_t steps_left_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_EXACTNESS_EXACTNESS_OBSERVER_H_
