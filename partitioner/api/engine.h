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

// What executes per-device programs in place of our own runtime, with all devices in
// this process: a PJRT plugin's devices (bindings/pjrt).
class Engine {
 public:
  virtual ~Engine() = default;
  // Every device runs `local`: arguments[d] are device d's flat leaves, and so are the
  // results. `handlers` (null: none) are for its custom calls.
  virtual absl::StatusOr<std::vector<std::vector<Tensor>>> Execute(
      const Module& local, std::vector<std::vector<Tensor>> arguments,
      const HandlerRegistry* handlers, absl::Duration deadline) = 0;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_ENGINE_H_
