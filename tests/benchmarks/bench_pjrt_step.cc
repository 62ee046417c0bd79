// SPDX-License-Identifier: Apache-2.0
// A training step by --backend=pjrt's engine: partitioned here, compiled once, and run with
// what the step before gave, which stays on the devices.
//
//   bench_pjrt_step --plugin=xla_cpu_pjrt.so [--host] PROGRAM.mlir
//
// PROGRAM's first result is its loss; the others are its first parameters in the next step.
// With --host all of them are copied to the host after each step, and given back. Prints "ready",
// then for each line of standard input the seconds of a step: compare_jax.py runs it in turns with
// JAX.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "shardcall/partitioner/bindings/pjrt/compile_options.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_executable.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/take_over.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper_settings.h"
#include "shardcall/sharding/base/whole_file.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

constexpr int kDevices = 8;
// {3: {12: true}}, appended to a CompileOptionsProto: results whose sharding is not given may
// get one, as JAX has it.
constexpr char kOpenResults[] = "\x1a\x02\x60\x01";

// Small numbers, and token 0.
Tensor SomeInput(const LeafShape& leaf) {
  Tensor tensor = Tensor::Zeros(leaf.type, leaf.dims);
  if (leaf.type != ElementType::kF32) return tensor;
  float* const values = tensor.MutableData<float>();
  for (int64_t k = 0; k < tensor.num_elements(); ++k)
    values[k] = 0.01f * static_cast<float>(k % 7 - 3);
  return tensor;
}

absl::StatusOr<std::vector<PjrtArray>> PutAll(const PjrtExecutable& step,
                                              const std::vector<Tensor>& inputs) {
  std::vector<PjrtArray> arrays(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(arrays[k], step.Put(k, inputs[k]));
  }
  return arrays;
}

absl::Status Main(int argc, char** argv) {
  std::string plugin, program;
  bool on_host = false;
  for (int k = 1; k < argc; ++k) {
    absl::string_view arg = argv[k];
    if (arg == "--host") {
      on_host = true;
      continue;
    }
    std::string& said = absl::ConsumePrefix(&arg, "--plugin=") ? plugin : program;
    said = std::string(arg);
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const Plugin> opened, Plugin::Open(plugin));
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const Client> client,
                             Client::Create(std::move(opened), kDevices));
  Registry registry;
  SHARDCALL_RETURN_IF_ERROR(FillRegistry({}, &registry));
  SHARDCALL_ASSIGN_OR_RETURN(const std::string code, ReadWholeFile(program));
  const std::string options = PlainOptions(kDevices, /*shardy=*/true, /*spmd=*/true) + kOpenResults;
  const Converter converter(&client->plugin(), client->platform(), client->handle(), nullptr);
  SHARDCALL_ASSIGN_OR_RETURN(auto taken,
                             TakeOver({.format = kMlirFormat, .code = code, .options = options},
                                      {.plugin = &client->plugin(),
                                       .converter = &converter,
                                       .platform = client->platform(),
                                       .registry = &registry,
                                       .allow_replicate = {},
                                       .framework_handlers = {}}));
  const std::shared_ptr<const PartitionedProgram> partitioned =
      std::move(absl::get<Replacement>(taken).program);
  RunOptions run;
  run.handlers = &registry.handlers;
  SHARDCALL_ASSIGN_OR_RETURN(const PjrtExecutable step,
                             PjrtExecutable::Compile(client, partitioned, run));
  std::vector<Tensor> inputs;
  for (const LeafShape& leaf : ParameterLeaves(partitioned->global->program.module)) {
    inputs.push_back(SomeInput(leaf));
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<PjrtArray> arrays, PutAll(step, inputs));
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<PjrtArray> given = arrays;
    for (size_t k = 1; k < step.num_outputs(); ++k) arrays[k - 1] = PjrtArray();
    SHARDCALL_ASSIGN_OR_RETURN(std::vector<PjrtArray> results, step.Execute(std::move(given)));
    if (on_host) {
      for (size_t k = 1; k < results.size(); ++k) {
        SHARDCALL_ASSIGN_OR_RETURN(inputs[k - 1], results[k].ToHost());
      }
      SHARDCALL_ASSIGN_OR_RETURN(arrays, PutAll(step, inputs));
    } else {
      for (size_t k = 1; k < results.size(); ++k) arrays[k - 1] = std::move(results[k]);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%.9f\n", seconds.count());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

int main(int argc, char** argv) {
  const absl::Status status = shardcall::pjrt::Main(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
