// SPDX-License-Identifier: Apache-2.0
// PJRT plugins as an engine: XLA's CPUs, GPUs and TPUs run what is partitioned here.
//
//   SHARDCALL_ASSIGN_OR_RETURN(auto engine, MakePjrtEngine("libplugin.so"));
//   RunOptions options;
//   options.backend = Backend::kPjrt;
//   options.engine = engine.get();
//
// Who runs a program often compiles it once (pjrt_executable.h).
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_ENGINE_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_ENGINE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/api/engine.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_client.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_executable.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// One thread at a time; what it has compiled needs it no longer.
class PjrtEngine final : public Engine {
 public:
  PjrtEngine(std::shared_ptr<const pjrt::Plugin> plugin, pjrt::CreateOptions options)
      : plugin_(std::move(plugin)), options_(std::move(options)) {}

  // Compiles and runs once, host arrays in and out.
  absl::StatusOr<std::vector<std::vector<Tensor>>> Execute(
      const Module& local, std::vector<std::vector<Tensor>> arguments,
      const HandlerRegistry* handlers, absl::Duration deadline) override;

  // See PjrtExecutable::Compile; E334, E335 for the devices.
  absl::StatusOr<PjrtExecutable> Compile(std::shared_ptr<const PartitionedProgram> program,
                                         const RunOptions& options);

 private:
  absl::Status NeedDevices(int count);

  const std::shared_ptr<const pjrt::Plugin> plugin_;
  const pjrt::CreateOptions options_;
  std::shared_ptr<const pjrt::Client> client_;
};

// Loads the plugin; its client is made when a program is run or compiled, for as many
// devices, and kept: arrays of programs on more devices than those before it are of another
// client. E333, E334.
absl::StatusOr<std::unique_ptr<PjrtEngine>> MakePjrtEngine(const std::string& plugin,
                                                           pjrt::CreateOptions options = {});

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_ENGINE_H_
