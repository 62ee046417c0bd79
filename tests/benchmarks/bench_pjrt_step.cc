// SPDX-License-Identifier: Apache-2.0
// A training step by --backend=pjrt's engine: partitioned here, compiled once, and run with
// what the step before gave, host arrays in and out.
//
//   bench_pjrt_step --plugin=xla_cpu_pjrt.so PROGRAM.mlir
//
// PROGRAM's first result is its loss; the others are its first parameters in the next step.
// Prints "ready", then for each line of standard input the seconds of a step:
// compare_jax.py runs it in turns with JAX.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "partitioner/api/whole_file.h"
#include "partitioner/bindings/pjrt/compile_options.h"
#include "partitioner/bindings/pjrt/pjrt_program.h"
#include "partitioner/bindings/pjrt_wrapper/take_over.h"
#include "partitioner/bindings/pjrt_wrapper/wrapper_settings.h"

namespace shardcall::pjrt {
namespace {

constexpr int kDevices = 8;
// {3: {12: true}}, appended to a CompileOptionsProto: results whose sharding is not given may
// get one, as JAX has it.
constexpr char kOpenResults[] = "\x1a\x02\x60\x01";

// Small numbers, and token 0.
Tensor SomeInput(const Shape& shape) {
  Tensor tensor = Tensor::Zeros(shape.element_type(), shape.dims());
  if (shape.element_type() != ElementType::kF32) return tensor;
  float* const values = tensor.MutableData<float>();
  for (int64_t k = 0; k < tensor.num_elements(); ++k) values[k] = 0.01f * static_cast<float>(k % 7 - 3);
  return tensor;
}

absl::Status Main(int argc, char** argv) {
  std::string plugin, program;
  for (int k = 1; k < argc; ++k) {
    absl::string_view arg = argv[k];
    std::string& said = absl::ConsumePrefix(&arg, "--plugin=") ? plugin : program;
    said = std::string(arg);
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const Plugin> opened, Plugin::Open(plugin));
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const Client> client,
                             Client::Create(std::move(opened), kDevices));
  Registry registry;
  SHARDCALL_RETURN_IF_ERROR(FillRegistry({}, &registry));
  SHARDCALL_ASSIGN_OR_RETURN(const std::string code, ReadWholeFile(program));
  const std::string options =
      PlainOptions(kDevices, /*shardy=*/true, /*spmd=*/true) + kOpenResults;
  const Converter converter(&client->plugin(), client->platform(), client->handle(), nullptr);
  SHARDCALL_ASSIGN_OR_RETURN(auto taken,
                             TakeOver({.format = kMlirFormat, .code = code, .options = options},
                                      {.plugin = &client->plugin(),
                                       .converter = &converter,
                                       .platform = client->platform(),
                                       .registry = &registry,
                                       .allow_replicate = {},
                                       .framework_handlers = {}}));
  const Module& local = absl::get<Replacement>(taken).program->local.module;
  SHARDCALL_ASSIGN_OR_RETURN(
      const std::shared_ptr<const LoadedProgram> step,
      LoadedProgram::Compile(client, local, kDevices, &registry.handlers));
  std::vector<std::vector<Tensor>> arguments(kDevices);
  for (std::vector<Tensor>& of_device : arguments) {
    for (InstrId p : local.comp(local.entry()).parameters) {
      of_device.push_back(SomeInput(*local.instr(p).shape));
    }
  }
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = std::chrono::steady_clock::now();
    SHARDCALL_ASSIGN_OR_RETURN(auto results, step->Run(arguments, absl::Seconds(60)));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    for (int d = 0; d < kDevices; ++d) {
      for (size_t k = 1; k < results[d].size(); ++k) arguments[d][k - 1] = std::move(results[d][k]);
    }
    std::printf("%.9f\n", seconds.count());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace shardcall::pjrt

int main(int argc, char** argv) {
  const absl::Status status = shardcall::pjrt::Main(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
