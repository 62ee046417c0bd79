// SPDX-License-Identifier: Apache-2.0
#include "partitioner/bindings/pjrt/pjrt_engine.h"

#include <utility>

#include "partitioner/bindings/pjrt/pjrt_program.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

class PjrtEngine final : public Engine {
 public:
  PjrtEngine(std::shared_ptr<const pjrt::Plugin> plugin, pjrt::CreateOptions options)
      : plugin_(std::move(plugin)), options_(std::move(options)) {}

  absl::StatusOr<std::vector<std::vector<Tensor>>> Execute(
      const Module& local, std::vector<std::vector<Tensor>> arguments,
      const HandlerRegistry* handlers, absl::Duration deadline) override {
    const int n = static_cast<int>(arguments.size());
    if (client_ == nullptr || static_cast<int>(client_->devices().size()) < n) {
      client_.reset();  // before the next one takes the devices
      SHARDCALL_ASSIGN_OR_RETURN(client_, pjrt::Client::Create(plugin_, n, options_));
    }
    SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const pjrt::LoadedProgram> program,
                               pjrt::LoadedProgram::Compile(client_, local, n, handlers));
    return program->Run(std::move(arguments), deadline);
  }

 private:
  const std::shared_ptr<const pjrt::Plugin> plugin_;
  const pjrt::CreateOptions options_;
  std::shared_ptr<const pjrt::Client> client_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakePjrtEngine(const std::string& plugin,
                                                       pjrt::CreateOptions options) {
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const pjrt::Plugin> opened,
                             pjrt::Plugin::Open(plugin));
  return std::make_unique<PjrtEngine>(std::move(opened), std::move(options));
}

}  // namespace shardcall
