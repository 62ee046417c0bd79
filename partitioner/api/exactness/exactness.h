// SPDX-License-Identifier: Apache-2.0
// Which results of a program are the same to the bit in whatever order its sums are made,
// by the values that it computes.
//
// An op that computes each element from its own operands, or moves elements, gives the
// same bits wherever it runs. An op that sums is exact if all its terms are multiples of
// one power of two and the sum of their magnitudes has no more bits than the type: then
// so is every part of it, in any order, over any shards. So f32 takes whole numbers to
// 2^24, and eighths to 2^21. A partitioner may add parts later, after what is linear:
// their bounds go on with them. What reads an inexact value is inexact.
#ifndef SHARDCALL_PARTITIONER_API_EXACTNESS_EXACTNESS_H_
#define SHARDCALL_PARTITIONER_API_EXACTNESS_EXACTNESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/api/exactness/order_of_sums.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {

struct ExactResults {
  std::vector<Tensor> outputs;
  std::vector<bool> exact;  // by output
  bool all() const;
};

struct ExactOptions {
  const HandlerRegistry* handlers = nullptr;
  absl::Duration deadline = absl::Seconds(60);
  // Where it is not 0, inexact sums are off by a few of their last bits, each by another
  // number that follows from it: what another order could do.
  uint64_t nudge = 0;
  int64_t most_steps = INT64_MAX;  // of each device; more fail (kAborted)
  // Whose random numbers each device draws, by the name of the instruction and by device.
  // Null, or none for it: its own.
  std::shared_ptr<const absl::flat_hash_map<std::string, std::vector<int>>> draws;
};

// The plain evaluator, which looks at every step. Sums are made twice, the second time
// of magnitudes, where their number and size do not say that they are exact.
class ExactEvaluator {
 public:
  // In the global mode manual regions are run by every device on its own slices, and the
  // rest as on one device; else a program that has one is refused (E310).
  static absl::StatusOr<ExactEvaluator> Create(const Module& module, bool global_mode = false);

  // `num_devices`, `mesh`: of the global mode.
  absl::StatusOr<ExactResults> Run(std::vector<Tensor> inputs, const ExactOptions& options,
                                   int num_devices = 1, const BaseMesh* mesh = nullptr) const;

 private:
  std::shared_ptr<const DeviceProgram> program_;
  std::shared_ptr<const OrderOfSums> sums_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_EXACTNESS_EXACTNESS_H_
