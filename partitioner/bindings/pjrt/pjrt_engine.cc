// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/pjrt_engine.h"

#include "shardcall/partitioner/bindings/pjrt/pjrt_program.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

absl::Status PjrtEngine::NeedDevices(int count) {
  if (client_ != nullptr && static_cast<int>(client_->devices().size()) >= count) {
    return absl::OkStatus();
  }
  client_.reset();  // release the devices before the next client takes them
  SHARDCALL_ASSIGN_OR_RETURN(client_, pjrt::Client::Create(plugin_, count, options_));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<Tensor>>> PjrtEngine::Execute(
    const Module& local, std::vector<std::vector<Tensor>> arguments,
    const HandlerRegistry* handlers, absl::Duration deadline) {
  const int n = static_cast<int>(arguments.size());
  SHARDCALL_RETURN_IF_ERROR(NeedDevices(n));
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const pjrt::LoadedProgram> program,
                             pjrt::LoadedProgram::Compile(client_, local, n, handlers));
  return program->Run(std::move(arguments), deadline);
}

absl::StatusOr<PjrtExecutable> PjrtEngine::Compile(
    std::shared_ptr<const PartitionedProgram> program, const RunOptions& options) {
  if (program != nullptr) {
    SHARDCALL_RETURN_IF_ERROR(
        NeedDevices(static_cast<int>(program->global->program.num_partitions)));
  }
  return PjrtExecutable::Compile(client_, std::move(program), options);
}

absl::StatusOr<std::unique_ptr<PjrtEngine>> MakePjrtEngine(const std::string& plugin,
                                                           pjrt::CreateOptions options) {
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const pjrt::Plugin> opened,
                             pjrt::Plugin::Open(plugin));
  return std::make_unique<PjrtEngine>(std::move(opened), std::move(options));
}

}  // namespace shardcall
