// SPDX-License-Identifier: Apache-2.0
// PJRT plugins as an engine: XLA's CPUs, GPUs and TPUs run programs that are partitioned here.
//
//   SHARDCALL_ASSIGN_OR_RETURN(auto engine, MakePjrtEngine("libplugin.so"));
//   RunOptions options;
//   options.backend = Backend::kPjrt;
//   options.engine = engine.get();
//
// To run a program many times, compile it once (pjrt_executable.h).
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

// Not thread-safe; programs that it has compiled do not need it.
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

// Loads the plugin. Its client is made when a program is run or compiled, for that many devices,
// and kept. A program on more devices gets a new client, which cannot use arrays of the former
// one. E333, E334.
absl::StatusOr<std::unique_ptr<PjrtEngine>> MakePjrtEngine(const std::string& plugin,
                                                           pjrt::CreateOptions options = {});

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_ENGINE_H_
