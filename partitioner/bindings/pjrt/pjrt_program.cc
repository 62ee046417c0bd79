// SPDX-License-Identifier: Apache-2.0
#include "partitioner/bindings/pjrt/pjrt_program.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "partitioner/bindings/pjrt/compile_options.h"
#include "partitioner/bindings/pjrt/pjrt_buffers.h"
#include "partitioner/bindings/pjrt/pjrt_handlers.h"
#include "partitioner/bindings/pjrt/pjrt_types.h"
#include "partitioner/ir/proto/hlo_proto.h"
#include "partitioner/runtime/watched_threads.h"
#include "sharding/status.h"

namespace shardcall::pjrt {
namespace {

using abi::Function;
using abi::Padded;

constexpr absl::string_view kFormat = "hlo";

absl::Status NotForPjrt(std::string message, std::string where, std::string fix) {
  return ToStatus({.code = "E336",
                   .message = std::move(message),
                   .where = std::move(where),
                   .fix = std::move(fix)},
                  absl::StatusCode::kUnimplemented);
}

}  // namespace

absl::Status LoadedProgram::SetLeaves(const Module& local) {
  const Computation& entry = local.comp(local.entry());
  const auto append = [&](InstrId id, const Shape* laid_out, std::vector<Leaf>* out) {
    const Instruction& instr = local.instr(id);
    for (int k = 0; k < instr.shape->num_leaves(); ++k) {
      const Shape* leaf = instr.shape->leaf(k);
      if (leaf->IsArray() && BufferType(leaf->element_type()) == 0) {
        return NotForPjrt(absl::StrCat("PJRT has no arrays of ",
                                       ElementTypeName(leaf->element_type())),
                          absl::StrCat("%", instr.name), "Convert the value to another type");
      }
      out->push_back({leaf->element_type(), Dims(leaf->dims().begin(), leaf->dims().end()), {}});
      if (laid_out == nullptr || !laid_out->leaf(k)->has_layout()) continue;
      const absl::Span<const int64_t> order = laid_out->leaf(k)->minor_to_major();
      out->back().minor_to_major.assign(order.begin(), order.end());
    }
    return absl::OkStatus();
  };
  const std::vector<const Shape*>& layouts = local.header.entry_parameter_layouts;
  for (size_t p = 0; p < entry.parameters.size(); ++p) {
    const Instruction& instr = local.instr(entry.parameters[p]);
    tupled_ = tupled_ || instr.shape->IsTuple();
    if (tupled_ && entry.parameters.size() > 1) {
      return NotForPjrt("PJRT takes a tuple as the only parameter of a program",
                        absl::StrCat("%", instr.name), "Give the tuple's parts as parameters");
    }
    SHARDCALL_RETURN_IF_ERROR(append(
        entry.parameters[p], p < layouts.size() ? layouts[p] : nullptr, &parameters_));
  }
  return append(entry.root, nullptr, &results_);
}

absl::StatusOr<std::shared_ptr<const LoadedProgram>> LoadedProgram::Compile(
    std::shared_ptr<const Client> client, const Module& local, int num_devices,
    const HandlerRegistry* handlers) {
  std::shared_ptr<LoadedProgram> program(new LoadedProgram(client));
  program->num_devices_ = num_devices;
  SHARDCALL_RETURN_IF_ERROR(program->SetLeaves(local));
  ProtoOptions proto;
  if (handlers != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(proto.typed_calls,
                               RegisterHandlers(*client, local, num_devices, *handlers));
  }
  const Plugin& plugin = client->plugin();
  proto.list_groups = plugin.minor_version() < abi::kIotaGroupsMinorVersion;
  SHARDCALL_ASSIGN_OR_RETURN(const std::string code,
                             WriteModuleProto(local, ProtoForm::kModule, proto));
  const std::string options =
      PerDeviceOptions(client->device_ids().subspan(0, num_devices), program->tupled_);
  Padded<abi::Program> source;
  source.value.code = code.data();
  source.value.code_size = code.size();
  source.value.format = kFormat.data();
  source.value.format_size = kFormat.size();
  Padded<abi::CompileArgs> compile;
  compile.value.client = client->handle();
  compile.value.program = &source.value;
  compile.value.options = options.data();
  compile.value.options_size = options.size();
  SHARDCALL_RETURN_IF_ERROR(plugin.Call(Function::kClientCompile, &compile));
  program->executable_ = compile.value.executable;

  Padded<abi::GetExecutableArgs> executable;
  executable.value.loaded = program->executable_;
  SHARDCALL_RETURN_IF_ERROR(plugin.Call(Function::kLoadedExecutableGetExecutable, &executable));
  Padded<abi::NumOutputsArgs> outputs;
  outputs.value.executable = executable.value.executable;
  const absl::Status counted = plugin.Call(Function::kExecutableNumOutputs, &outputs);
  Padded<abi::ExecutableArgs> done;
  done.value.executable = executable.value.executable;
  plugin.Call(Function::kExecutableDestroy, &done).IgnoreError();
  SHARDCALL_RETURN_IF_ERROR(counted);
  if (outputs.value.num_outputs != program->results_.size()) {
    return NotForPjrt(absl::StrCat("the plugin gives ", outputs.value.num_outputs,
                                   " results of a program that has ", program->results_.size()),
                      absl::StrCat("%", local.instr(local.comp(local.entry()).root).name),
                      "Return a flat tuple of arrays");
  }
  return std::shared_ptr<const LoadedProgram>(std::move(program));
}

LoadedProgram::~LoadedProgram() {
  if (executable_ == nullptr) return;
  Padded<abi::LoadedExecutableArgs> args;
  args.value.executable = executable_;
  client_->plugin().Call(Function::kLoadedExecutableDestroy, &args).IgnoreError();
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
  const absl::Status ran = RunWithin(
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
