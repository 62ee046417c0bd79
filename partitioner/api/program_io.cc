// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/program_io.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/runtime/io/shard_io.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

void AppendLeaves(const Shape* shape, std::vector<LeafShape>* out) {
  for (int k = 0; k < shape->num_leaves(); ++k) {
    const Shape* leaf = shape->leaf(k);
    out->push_back({leaf->element_type(), Dims(leaf->dims().begin(), leaf->dims().end())});
  }
}

// "output 1, %y": with the name of the local instruction that computes it.
std::string OutputText(const LocalProgram& local, size_t k) {
  const Module& m = local.module;
  const InstrId root = m.comp(m.entry()).root;
  const bool parts =
      m.instr(root).opcode == Opcode::kTuple && m.operands(root).size() == local.outputs.size();
  return absl::StrCat("output ", k, ", %", m.instr(parts ? m.operand(root, k) : root).name);
}

absl::Status Misfit(std::string what, std::string expected, std::string found) {
  return ToStatus({.code = "E313",
                   .message = std::move(what),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "Give arguments as the program declares its parameters"});
}

}  // namespace

std::vector<LeafShape> ParameterLeaves(const Module& module) {
  std::vector<LeafShape> out;
  for (InstrId p : module.comp(module.entry()).parameters) {
    AppendLeaves(module.instr(p).shape, &out);
  }
  return out;
}

std::vector<LeafShape> ResultLeaves(const Module& module) {
  std::vector<LeafShape> out;
  AppendLeaves(module.instr(module.comp(module.entry()).root).shape, &out);
  return out;
}

absl::Status CheckInput(size_t k, const LeafShape& leaf, const Tensor& input) {
  const bool there = input.data() != nullptr || input.byte_size() == 0;
  if (there && input.type() == leaf.type && input.dims() == leaf.dims) return absl::OkStatus();
  return Misfit(absl::StrCat("input ", k, " does not fit its parameter"),
                TypeAndDims(leaf.type, leaf.dims), TypeAndDims(input));
}

absl::Status CheckInputCount(size_t expected, size_t found) {
  if (expected == found) return absl::OkStatus();
  return Misfit("wrong number of inputs", absl::StrCat(expected), absl::StrCat(found));
}

absl::Status CheckInputs(const PartitionedProgram& program, absl::Span<const Tensor> inputs) {
  const std::vector<LeafShape> leaves = ParameterLeaves(program.global->program.module);
  SHARDCALL_RETURN_IF_ERROR(CheckInputCount(leaves.size(), inputs.size()));
  for (size_t k = 0; k < leaves.size(); ++k) {
    SHARDCALL_RETURN_IF_ERROR(CheckInput(k, leaves[k], inputs[k]));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> JoinOutput(const LocalProgram& local, size_t k,
                                  absl::Span<const Tensor> parts, bool check_replicas) {
  if (local.outputs[k] == nullptr) return Tensor::Token();
  LocalState state = *local.outputs[k];
  Dims dims(local.output_shapes[k]->dims().begin(), local.output_shapes[k]->dims().end());
  std::vector<DimState> sizes;
  if (local.output_shapes[k]->IsArray() && local.output_shapes[k]->IsDynamic()) {
    // Not sharded: every device holds the whole value.
    dims = parts[0].dims();
    for (int64_t size : dims) sizes.push_back({.tile = size});
    state.dims = sizes;
  }
  absl::StatusOr<Tensor> whole = Unshard(parts, state, dims, {.check_replicas = check_replicas});
  if (!whole.ok()) return In(whole.status(), OutputText(local, k));
  return whole;
}

absl::StatusOr<std::vector<Tensor>> JoinOutputs(const LocalProgram& local,
                                                absl::Span<const std::vector<Tensor>> by_device,
                                                bool check_replicas) {
  std::vector<Tensor> out;
  for (size_t k = 0; k < local.outputs.size(); ++k) {
    std::vector<Tensor> parts;
    for (const std::vector<Tensor>& device : by_device) parts.push_back(device[k]);
    SHARDCALL_ASSIGN_OR_RETURN(Tensor whole, JoinOutput(local, k, parts, check_replicas));
    out.push_back(std::move(whole));
  }
  return out;
}

}  // namespace shardcall
