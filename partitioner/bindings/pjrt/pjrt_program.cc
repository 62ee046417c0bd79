// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/pjrt_program.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/timed_call.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

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

namespace {

absl::Status Misfit(std::string what, std::string expected, std::string found) {
  return ToStatus({.code = "E313",
                   .message = std::move(what),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "Give every device one array per flat leaf of the parameters"});
}

}  // namespace

template <typename List>
absl::Status LoadedProgram::CheckCounts(const List& arguments) const {
  if (static_cast<int>(arguments.size()) != num_devices_) {
    return Misfit("wrong number of lists of arguments", absl::StrCat(num_devices_, " devices"),
                  absl::StrCat(arguments.size()));
  }
  for (size_t d = 0; d < arguments.size(); ++d) {
    if (arguments[d].size() == parameters_.size()) continue;
    return Misfit(absl::StrCat("wrong number of arguments for device ", d),
                  absl::StrCat(parameters_.size()), absl::StrCat(arguments[d].size()));
  }
  return absl::OkStatus();
}

absl::Status LoadedProgram::CheckArgument(int device, size_t k, const Tensor& given) const {
  if (device < 0 || device >= num_devices_ || k >= parameters_.size()) {
    return Misfit("there is no such argument",
                  absl::StrCat(parameters_.size(), " arguments of ", num_devices_, " devices"),
                  absl::StrCat("argument ", k, " of device ", device));
  }
  const bool there = given.data() != nullptr || given.byte_size() == 0;
  if (there && given.type() == parameters_[k].type && given.dims() == parameters_[k].dims) {
    return absl::OkStatus();
  }
  return Misfit(absl::StrCat("argument ", k, " of device ", device, " does not fit its parameter"),
                TypeAndDims(parameters_[k].type, parameters_[k].dims), TypeAndDims(given));
}

absl::StatusOr<DeviceBuffer::Ref> LoadedProgram::Put(int device, size_t k,
                                                     const Tensor& tensor) const {
  SHARDCALL_RETURN_IF_ERROR(CheckArgument(device, k, tensor));
  return DeviceBuffer::FromHost(client_, tensor, client_->devices()[device],
                                parameters_[k].minor_to_major);
}

absl::StatusOr<LoadedProgram::Arrays> LoadedProgram::ExecuteNow(const Arrays& arguments) const {
  std::vector<std::vector<abi::Buffer*>> in(num_devices_), out(num_devices_);
  std::vector<abi::Buffer* const*> in_lists;
  std::vector<abi::Buffer**> out_lists;
  for (int d = 0; d < num_devices_; ++d) {
    for (const DeviceBuffer::Ref& argument : arguments[d]) in[d].push_back(argument->handle());
    in_lists.push_back(in[d].data());
    out[d].resize(results_.size(), nullptr);
    out_lists.push_back(out[d].data());
  }
  // The same list for all devices.
  std::vector<int64_t> lent;
  for (size_t k = 0; k < parameters_.size(); ++k) {
    const bool shared = std::any_of(arguments.begin(), arguments.end(),
                                    [k](const auto& of) { return of[k].use_count() > 1; });
    if (shared) lent.push_back(static_cast<int64_t>(k));
  }
  Padded<abi::ExecuteOptions> options;
  options.value.non_donatable = lent.data();
  options.value.num_non_donatable = lent.size();
  std::vector<abi::Event*> done(num_devices_, nullptr);
  Padded<abi::ExecuteArgs> execute;
  execute.value.executable = executable_;
  execute.value.options = &options.value;
  execute.value.arguments = in_lists.data();
  execute.value.num_devices = num_devices_;
  execute.value.num_args = parameters_.size();
  execute.value.outputs = out_lists.data();
  execute.value.done = done.data();
  SHARDCALL_RETURN_IF_ERROR(client_->plugin().Call(Function::kLoadedExecutableExecute, &execute));
  Arrays results(num_devices_);
  for (int d = 0; d < num_devices_; ++d) {
    for (abi::Buffer* buffer : out[d]) results[d].push_back(DeviceBuffer::Own(client_, buffer));
  }
  absl::Status status;
  for (abi::Event* event : done) status.Update(Await(client_->plugin(), event));
  SHARDCALL_RETURN_IF_ERROR(status);
  return results;
}

absl::StatusOr<LoadedProgram::ByDevice> LoadedProgram::RunNow(const ByDevice& arguments) const {
  Arrays in(num_devices_);
  for (int d = 0; d < num_devices_; ++d) {
    for (size_t k = 0; k < arguments[d].size(); ++k) {
      SHARDCALL_ASSIGN_OR_RETURN(
          DeviceBuffer::Ref put,
          DeviceBuffer::FromHost(client_, arguments[d][k], client_->devices()[d],
                                 parameters_[k].minor_to_major));
      in[d].push_back(std::move(put));
    }
  }
  SHARDCALL_ASSIGN_OR_RETURN(const Arrays out, ExecuteNow(in));
  HostCopies copies(client_->plugin());
  for (const std::vector<DeviceBuffer::Ref>& of_device : out) {
    for (size_t k = 0; k < results_.size(); ++k) {
      if (!IsArrayType(results_[k].type)) continue;
      SHARDCALL_RETURN_IF_ERROR(copies.Start(*of_device[k], results_[k].type));
    }
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<Tensor> copied, copies.Finish());
  ByDevice results(num_devices_);
  auto next = copied.begin();
  for (std::vector<Tensor>& of_device : results) {
    for (const ProgramSource::Leaf& leaf : results_) {
      of_device.push_back(IsArrayType(leaf.type) ? std::move(*next++) : Tensor::Token());
    }
  }
  return results;
}

absl::StatusOr<LoadedProgram::ByDevice> LoadedProgram::Run(ByDevice arguments,
                                                           absl::Duration deadline) const {
  SHARDCALL_RETURN_IF_ERROR(CheckCounts(arguments));
  for (int d = 0; d < num_devices_; ++d) {
    for (size_t k = 0; k < arguments[d].size(); ++k) {
      SHARDCALL_RETURN_IF_ERROR(CheckArgument(d, k, arguments[d][k]));
    }
  }
  const auto results = std::make_shared<absl::StatusOr<ByDevice>>();
  SHARDCALL_RETURN_IF_ERROR(
      WithinDeadline(deadline, client_->plugin(),
                     [self = shared_from_this(), arguments = std::move(arguments), results] {
                       *results = self->RunNow(arguments);
                     }));
  return std::move(*results);
}

absl::StatusOr<LoadedProgram::Arrays> LoadedProgram::Execute(Arrays arguments,
                                                             absl::Duration deadline) const {
  SHARDCALL_RETURN_IF_ERROR(CheckCounts(arguments));
  for (int d = 0; d < num_devices_; ++d) {
    for (size_t k = 0; k < arguments[d].size(); ++k) {
      if (arguments[d][k] != nullptr && &arguments[d][k]->client() == client_.get()) continue;
      return Misfit(absl::StrCat("argument ", k, " of device ", d, " lies elsewhere"),
                    "an array on a device of the program's client",
                    arguments[d][k] == nullptr ? "nothing" : "an array of another client");
    }
  }
  // Shared with the thread, which may still run when this returns.
  const auto given = std::make_shared<const Arrays>(std::move(arguments));
  const auto results = std::make_shared<absl::StatusOr<Arrays>>();
  SHARDCALL_RETURN_IF_ERROR(WithinDeadline(
      deadline, client_->plugin(),
      [self = shared_from_this(), given, results] { *results = self->ExecuteNow(*given); }));
  return std::move(*results);
}

absl::Status WithinDeadline(absl::Duration deadline, const Plugin& plugin,
                            std::function<void()> body) {
  return CallWithin(deadline, std::move(body), [&] {
    return ToStatus({.code = "E337",
                     .message = absl::StrCat("the program has not ended within ",
                                             absl::FormatDuration(deadline),
                                             " on the PJRT plugin \"", plugin.name(), "\""),
                     .fix = "See whether a handler or a collective waits without end, or "
                            "give a longer deadline (--wait)"},
                    absl::StatusCode::kDeadlineExceeded);
  });
}

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
