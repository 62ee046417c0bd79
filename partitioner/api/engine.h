// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_API_ENGINE_H_
#define SHARDCALL_PARTITIONER_API_ENGINE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Executes per-device programs instead of shardcall's runtime, on devices that all belong to this
// process, such as those of a PJRT plugin (bindings/pjrt). One thread at a time uses one.
class Engine {
 public:
  virtual ~Engine() = default;
  // Runs `local` on every device: arguments[d] are the flat leaves of device d, and the results
  // are indexed likewise. `handlers` (null: none) serve its custom calls.
  virtual absl::StatusOr<std::vector<std::vector<Tensor>>> Execute(
      const Module& local, std::vector<std::vector<Tensor>> arguments,
      const HandlerRegistry* handlers, absl::Duration deadline) = 0;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_ENGINE_H_
