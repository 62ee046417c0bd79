// SPDX-License-Identifier: Apache-2.0
#include "partitioner/bindings/pjrt/pjrt_program.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/ffi/timed_call.h"
#include "partitioner/bindings/pjrt/pjrt_buffers.h"
#include "sharding/status.h"

namespace shardcall::pjrt {

using abi::Function;
using abi::Padded;

absl::StatusOr<std::shared_ptr<const LoadedProgram>> LoadedProgram::Compile(
    std::shared_ptr<const Client> client, const Module& local, int num_devices,
    const HandlerRegistry* handlers) {
  const Plugin& plugin = client->plugin();
  std::shared_ptr<LoadedProgram> program(new LoadedProgram(client));
  program->num_devices_ = num_devices;
  SHARDCALL_ASSIGN_OR_RETURN(
      ProgramSource source,
      MakeProgramSource(plugin, client->platform(), client->device_ids().subspan(0, num_devices),
                        local, handlers));
  const Padded<abi::Program> given = ProgramOf(kHloFormat, source.code);
  Padded<abi::CompileArgs> compile;
  compile.value.client = client->handle();
  compile.value.program = &given.value;
  compile.value.options = source.options.data();
  compile.value.options_size = source.options.size();
  SHARDCALL_RETURN_IF_ERROR(plugin.Call(Function::kClientCompile, &compile));
  program->executable_ = compile.value.executable;
  program->parameters_ = std::move(source.parameters);
  program->results_ = std::move(source.results);

  Padded<abi::GetExecutableArgs> executable;
  executable.value.loaded = program->executable_;
  SHARDCALL_RETURN_IF_ERROR(plugin.Call(Function::kLoadedExecutableGetExecutable, &executable));
  Padded<abi::NumOutputsArgs> outputs;
  outputs.value.executable = executable.value.executable;
  const absl::Status counted = plugin.Call(Function::kExecutableNumOutputs, &outputs);
  plugin.Destroy(executable.value.executable);
  SHARDCALL_RETURN_IF_ERROR(counted);
  if (outputs.value.num_outputs != program->results_.size()) {
    return ToStatus({.code = "E336",
                     .message = "the plugin has another number of results than the program",
                     .where = absl::StrCat("%", local.instr(local.comp(local.entry()).root).name),
                     .expected = absl::StrCat(program->results_.size()),
                     .found = absl::StrCat(outputs.value.num_outputs),
                     .fix = "Return a flat tuple of arrays"},
                    absl::StatusCode::kUnimplemented);
  }
  return std::shared_ptr<const LoadedProgram>(std::move(program));
}

LoadedProgram::~LoadedProgram() {
  if (executable_ != nullptr) client_->plugin().Destroy(executable_);
}

absl::Status LoadedProgram::CheckArguments(const ByDevice& arguments) const {
  const auto misfit = [](std::string what, std::string expected, std::string found) {
    return ToStatus({.code = "E313",
                     .message = std::move(what),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .fix = "Give every device one array per flat leaf of the parameters"});
  };
  if (static_cast<int>(arguments.size()) != num_devices_) {
    return misfit("wrong number of lists of arguments", absl::StrCat(num_devices_, " devices"),
                  absl::StrCat(arguments.size()));
  }
  for (size_t d = 0; d < arguments.size(); ++d) {
    if (arguments[d].size() != parameters_.size()) {
      return misfit(absl::StrCat("wrong number of arguments for device ", d),
                    absl::StrCat(parameters_.size()), absl::StrCat(arguments[d].size()));
    }
    for (size_t k = 0; k < parameters_.size(); ++k) {
      const Tensor& given = arguments[d][k];
      const bool there = given.data() != nullptr || given.byte_size() == 0;
      if (there && given.type() == parameters_[k].type && given.dims() == parameters_[k].dims) {
        continue;
      }
      return misfit(absl::StrCat("argument ", k, " of device ", d, " does not fit its parameter"),
                    TypeAndDims(parameters_[k].type, parameters_[k].dims), TypeAndDims(given));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadedProgram::ByDevice> LoadedProgram::RunNow(const ByDevice& arguments) const {
  const Plugin& plugin = client_->plugin();
  std::deque<DeviceBuffers> in, out;
  std::vector<abi::Buffer* const*> in_lists;
  std::vector<abi::Buffer**> out_lists;
  for (int d = 0; d < num_devices_; ++d) {
    in.emplace_back(*client_);
    for (size_t k = 0; k < arguments[d].size(); ++k) {
      SHARDCALL_RETURN_IF_ERROR(in.back().Add(arguments[d][k], client_->devices()[d],
                                              parameters_[k].minor_to_major));
    }
    in_lists.push_back(in.back().data());
    out.emplace_back(*client_);
    out.back().Resize(results_.size());
    out_lists.push_back(out.back().data());
  }
  Padded<abi::ExecuteOptions> options;
  std::vector<abi::Event*> done(num_devices_, nullptr);
  Padded<abi::ExecuteArgs> execute;
  execute.value.executable = executable_;
  execute.value.options = &options.value;
  execute.value.arguments = in_lists.data();
  execute.value.num_devices = num_devices_;
  execute.value.num_args = parameters_.size();
  execute.value.outputs = out_lists.data();
  execute.value.done = done.data();
  SHARDCALL_RETURN_IF_ERROR(plugin.Call(Function::kLoadedExecutableExecute, &execute));
  absl::Status status;
  for (abi::Event* event : done) status.Update(Await(plugin, event));
  SHARDCALL_RETURN_IF_ERROR(status);
  ByDevice results(num_devices_);
  for (int d = 0; d < num_devices_; ++d) {
    for (size_t k = 0; k < results_.size(); ++k) {
      if (!IsArrayType(results_[k].type)) {
        results[d].push_back(Tensor::Token());
        continue;
      }
      SHARDCALL_ASSIGN_OR_RETURN(Tensor result, out[d].ToHost(k, results_[k].type));
      results[d].push_back(std::move(result));
    }
  }
  return results;
}

absl::StatusOr<LoadedProgram::ByDevice> LoadedProgram::Run(ByDevice arguments,
                                                           absl::Duration deadline) const {
  SHARDCALL_RETURN_IF_ERROR(CheckArguments(arguments));
  const auto results = std::make_shared<absl::StatusOr<ByDevice>>();
  const absl::Status ran = CallWithin(
      deadline,
      [self = shared_from_this(), arguments = std::move(arguments), results] {
        *results = self->RunNow(arguments);
      },
      [&] {
        return ToStatus({.code = "E337",
                         .message = absl::StrCat("the program has not ended within ",
                                                 absl::FormatDuration(deadline),
                                                 " on the PJRT plugin \"",
                                                 client_->plugin().name(), "\""),
                         .fix = "See whether a handler or a collective waits without end, or "
                                "give a longer --deadline"},
                        absl::StatusCode::kDeadlineExceeded);
      });
  SHARDCALL_RETURN_IF_ERROR(ran);
  return std::move(*results);
}

}  // namespace shardcall::pjrt
