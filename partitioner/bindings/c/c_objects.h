// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles of shardcall_c_program.h.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_C_OBJECTS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_C_OBJECTS_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/bindings/c/c_internal.h"

// Keeps its bytes, and the targets from which it inferred shapes that are not in them: each
// function that changes a module parses it again, in its own Context, so that threads need not
// wait for each other.
struct Shardcall_Module {
  Shardcall_Module(std::string b, std::string n, std::shared_ptr<const shardcall::Registry> r,
                   shardcall::Module m)
      : bytes(std::move(b)), name(std::move(n)), registry(std::move(r)), module(std::move(m)) {}
  std::string bytes, name;
  std::shared_ptr<const shardcall::Registry> registry;
  mutable std::mutex mutex;  // for `module`, whose Context is not thread-safe
  shardcall::Module module;
};

struct Shardcall_Program {
  std::shared_ptr<const shardcall::Registry> registry;  // outlives the program
  shardcall::RunOptions options;
  std::shared_ptr<shardcall::PartitionedProgram> program;
  mutable std::mutex mutex;
};

struct Shardcall_Buffers {
  std::vector<shardcall::Tensor> tensors;
  std::vector<std::vector<int64_t>> dims;
  std::vector<Shardcall_Buffer> buffers;
};

namespace shardcall {
inline namespace internal {

// Text or binary, verified.
absl::StatusOr<Module> ReadCModule(absl::string_view bytes, const std::string& name,
                                   const TargetRegistry& targets);

// Reads the options, with a snapshot of the registry, which `*registry` keeps alive.
absl::StatusOr<RunOptions> ReadCOptions(absl::string_view function,
                                        const Shardcall_Options* options,
                                        std::shared_ptr<const Registry>* registry);

// Copies the inputs; E313 if they do not match the entry's parameters: all, or input k.
absl::StatusOr<std::vector<Tensor>> ReadCInputs(const Module& module,
                                                const Shardcall_Buffer* inputs, int32_t num_inputs);
absl::StatusOr<Tensor> ReadCInput(int32_t k, const LeafShape& leaf, const Shardcall_Buffer& input);
Shardcall_Buffers* MakeCBuffers(std::vector<Tensor> tensors);

// The implementation of the C functions that run and verify: on `engine`, or on threads if it is
// null.
absl::Status RunC(absl::string_view function, const Shardcall_Program* program, Engine* engine,
                  const Shardcall_Buffer* inputs, int32_t num_inputs, Shardcall_Buffers** outputs);
absl::Status VerifyC(absl::string_view function, const Shardcall_Module* module,
                     const Shardcall_Options* options, Engine* engine, uint64_t seed,
                     Shardcall_Text** json);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_C_C_OBJECTS_H_
