// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/exactness/exactness.h"

#include <algorithm>
#include <utility>

#include "shardcall/partitioner/exactness/exactness_devices.h"
#include "shardcall/partitioner/runtime/lower/lower.h"
#include "shardcall/partitioner/runtime/out_of_memory.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

bool ExactResults::all() const {
  return std::all_of(exact.begin(), exact.end(), [](bool e) { return e; });
}

absl::StatusOr<ExactEvaluator> ExactEvaluator::Create(const Module& module, bool global_mode) {
  return WithinMemory(module.header.name, [&]() -> absl::StatusOr<ExactEvaluator> {
    LowerOptions unfused;  // the observer needs every value
    unfused.fuse = false;
    unfused.global_mode = global_mode;
    ExactEvaluator evaluator;
    SHARDCALL_ASSIGN_OR_RETURN(evaluator.program_, Lower(module, unfused));
    evaluator.sums_ = std::make_shared<const OrderOfSums>(module);
    return evaluator;
  });
}

absl::StatusOr<ExactResults> ExactEvaluator::Run(std::vector<Tensor> inputs,
                                                 const ExactOptions& options, int num_devices,
                                                 const BaseMesh* mesh) const {
  return WithinMemory(program_->name, [&] {
    return RunExactly(program_, sums_, std::move(inputs), options, num_devices, mesh);
  });
}

}  // namespace internal
}  // namespace shardcall
