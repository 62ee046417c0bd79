// SPDX-License-Identifier: Apache-2.0
// The target `InspectSharding`: reports at compile time how its operand is sharded, and is removed
// from the partitioned program; its result, if any, is the operand. Its backend_config is 16
// bytes, the address of a function and its data, as written by jax.debug.inspect_array_sharding:
//
//   const InspectShardingCallback callback([](absl::string_view op_sharding) {...});
//   ... custom_call_target="InspectSharding", custom_call_has_side_effect=true,
//       backend_config=callback.backend_config() ...
//
// A dumped program contains addresses of another process. So only callbacks that are registered in
// this process are called; others are ignored.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_INSPECT_SHARDING_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_INSPECT_SHARDING_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/bindings/xla/inspect_callback.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// The 16 bytes for a function in C, as from jaxlib's encode_inspect_sharding_callback. The
// function is called for them until they have been forgotten as often as they were encoded; Forget
// is false for unknown bytes.
std::string EncodeInspectShardingCallback(Shardcall_InspectSharding* function, void* data);
bool ForgetInspectShardingCallback(absl::string_view backend_config);

// The same for the lifetime of an object.
class InspectShardingCallback {
 public:
  // Called with a serialised xla.OpSharding of the operand. An error, or a throw, fails the
  // partitioning with E121. May be called from any thread that partitions.
  using Function = std::function<absl::Status(absl::string_view op_sharding)>;
  explicit InspectShardingCallback(Function function);
  // A function in C; null is a callback that fails.
  InspectShardingCallback(Shardcall_InspectSharding* function, void* data);
  InspectShardingCallback(const InspectShardingCallback&) = delete;
  InspectShardingCallback& operator=(const InspectShardingCallback&) = delete;
  ~InspectShardingCallback();

  // The 16 bytes; XLA may also call this callback, as long as this object lives.
  const std::string& backend_config() const { return backend_config_; }

 private:
  std::string backend_config_;
  std::unique_ptr<Function> function_;
};

// The callbacks of a module that this process has just made: all of them can be called as long as
// this object lives.
class InspectShardingCallbacksOf {
 public:
  explicit InspectShardingCallbacksOf(const Module& module);
  InspectShardingCallbacksOf(const InspectShardingCallbacksOf&) = delete;
  InspectShardingCallbacksOf& operator=(const InspectShardingCallbacksOf&) = delete;
  ~InspectShardingCallbacksOf();

 private:
  std::vector<std::string> encoded_;
};

// Registers the target. It is not part of RegisterBuiltinTargets, since it needs protobuf;
// sessions of the command register it.
absl::Status RegisterInspectSharding(TargetRegistry& registry);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_INSPECT_SHARDING_H_
