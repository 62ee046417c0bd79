// SPDX-License-Identifier: Apache-2.0
// What one device of a run knows of the exactness of each value that it holds: see
// exactness.h. Devices tell each other where they meet (exactness_devices.h).
#ifndef SHARDCALL_PARTITIONER_API_EXACTNESS_EXACTNESS_OBSERVER_H_
#define SHARDCALL_PARTITIONER_API_EXACTNESS_EXACTNESS_OBSERVER_H_

#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/api/exactness/exactness.h"
#include "shardcall/partitioner/api/exactness/order_of_sums.h"
#include "shardcall/partitioner/runtime/execute/step_observer.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall {

// What is known of a value.
struct Exactness {
  bool exact = true;
  // A device may have parts of it that are still to be added, which are multiples of
  // 2^granule, and the magnitudes of which add up to `bound` at most.
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

  // What the step under way brings to other devices: all its operands in one, with bound
  // and granule. And what came of it: the op's results are made of the values of `group`,
  // their sums if they are `added`, in elements of `type`.
  const Exactness& Brings() const { return pending_.back().brings; }
  void Met(absl::Span<const Exactness> group, bool added, ElementType type);

 private:
  struct Pending {
    Exactness result;
    Exactness brings;
    Sums sums = Sums::kNone;
    bool inner_exact = true;
    std::vector<Tensor> magnitudes;  // of the terms' sums, by result; or
    double magnitude = 0;            // as it is usual for such sums
  };

  Exactness Known(const Tensor& t) const;
  // With bound and granule, of parts or of the whole.
  Exactness Full(const Tensor& t) const;
  // An op that sums nothing, of operands of which parts may be added after it.
  void PassParts(StepRun& run, Exactness* out) const;
  void Sum(StepRun& run, std::vector<Tensor>& slots, Pending* p) const;
  // The same op on magnitudes, into p->magnitudes.
  static bool SumMagnitudes(StepRun& run, std::vector<Tensor>& slots, Pending* p);
  // Moves every element by up to a few of the last bits of the largest part of its sum.
  // Copies of a value on several devices move alike.
  void Nudge(const Tensor* magnitudes, double magnitude, Tensor* t) const;

  // Lets the step draw what the device of the partitioned program does.
  void SetDraws(StepRun& run) const;

  const std::shared_ptr<const OrderOfSums> sums_;
  const std::shared_ptr<const absl::flat_hash_map<std::string, std::vector<int>>> draws_;
  absl::flat_hash_map<const void*, Exactness> known_;  // by buffer; the others are exact
  std::vector<Pending> pending_;
  const uint64_t nudge_;
  int64_t steps_left_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_EXACTNESS_EXACTNESS_OBSERVER_H_
