// SPDX-License-Identifier: Apache-2.0
// Determines, from the values that a program computes, which of its results are bitwise equal in
// whatever order its sums are evaluated.
//
// An op that computes each element from its own operands, or moves elements, gives the same bits
// wherever it runs. A sum is exact if all its terms are multiples of one power of two and the sum
// of their magnitudes fits into the bits of the type: then every partial sum is exact too, in any
// order, over any shards. So f32 is exact for whole numbers up to 2^24, and for eighths up to
// 2^21. A partitioner may move the addition of partial sums behind linear ops, so bounds are
// propagated through those. A value computed from an inexact one is inexact.
#ifndef SHARDCALL_PARTITIONER_EXACTNESS_EXACTNESS_H_
#define SHARDCALL_PARTITIONER_EXACTNESS_EXACTNESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/exactness/order_of_sums.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {
inline namespace internal {

struct ExactResults {
  std::vector<Tensor> outputs;
  std::vector<bool> exact;  // by output
  bool all() const;
};

struct ExactOptions {
  const HandlerRegistry* handlers = nullptr;
  absl::Duration deadline = absl::Seconds(60);
  // If not 0, inexact sums are perturbed in their last few bits, by amounts that depend on this
  // seed: a model of summing in another order.
  uint64_t nudge = 0;
  int64_t most_steps = INT64_MAX;  // limit for each device; kAborted beyond it
  // For each random-number instruction, by name: the device whose numbers each device draws. Null,
  // or no entry: its own.
  std::shared_ptr<const absl::flat_hash_map<std::string, std::vector<int>>> draws;
};

// The plain evaluator with an observer of every step. A sum is evaluated a second time, on
// magnitudes, unless the number and size of its terms already show that it is exact.
class ExactEvaluator {
 public:
  // In global mode every device runs manual regions on its own slices, and the rest of the program
  // as if there were one device. Without it a program with a manual region is refused (E310).
  static absl::StatusOr<ExactEvaluator> Create(const Module& module, bool global_mode = false);

  // `num_devices`, `mesh`: for global mode.
  absl::StatusOr<ExactResults> Run(std::vector<Tensor> inputs, const ExactOptions& options,
                                   int num_devices = 1, const BaseMesh* mesh = nullptr) const;

 private:
  std::shared_ptr<const DeviceProgram> program_;
  std::shared_ptr<const OrderOfSums> sums_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_EXACTNESS_EXACTNESS_H_
