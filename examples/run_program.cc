// SPDX-License-Identifier: Apache-2.0
// Runs a program that JAX dumped over its devices and compares the results with
// JAX's:
//
//   run_program examples/programs/ring_attention
//   mpirun -np 4 run_program examples/programs/ring_attention --backend=mpi
//
// reads NAME.hlo, NAME.inputs.npz and NAME.outputs.npz. Every process reads and
// partitions alike; each holds and computes its own shards.
#include <fstream>
#include <iterator>

#include "distributed.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/io/npz.h"

namespace shardcall {
namespace {

constexpr double kTolerance = 1e-6;

absl::Status Main(const std::string& name, Devices& devices) {
  std::ifstream file(name + ".hlo", std::ios::binary);
  if (!file) return absl::NotFoundError("cannot read " + name + ".hlo");
  auto text = std::make_shared<const std::string>(std::istreambuf_iterator<char>(file),
                                                  std::istreambuf_iterator<char>());
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ParseModule(text, std::make_shared<Context>(), name + ".hlo"));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                             ReadNpz(name + ".inputs.npz", "arg", ParameterLeaves(module)));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> want,
                             ReadNpz(name + ".outputs.npz", "out", ResultLeaves(module)));
  TargetRegistry targets;
  HandlerRegistry handlers;
  SHARDCALL_RETURN_IF_ERROR(RegisterBuiltinTargets(targets));
  SHARDCALL_RETURN_IF_ERROR(RegisterBuiltinHandlers(handlers));
  return RunOn(devices, std::move(module), targets, handlers, inputs, want, kTolerance);
}

}  // namespace
}  // namespace shardcall

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: run_program NAME [--backend=inprocess|mpi|nccl]\n");
    return 2;
  }
  return shardcall::OnDevices(argc > 2 ? argv[2] : "", [&](shardcall::Devices& devices) {
    return shardcall::Main(argv[1], devices);
  });
}
