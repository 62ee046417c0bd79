// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt/pjrt_executable.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/api/program_io.h"
#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/partitioner/runtime/io/shard_io.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

inline namespace internal {
namespace pjrt {

struct ExecutableState {
  std::shared_ptr<const PartitionedProgram> program;
  std::shared_ptr<const LoadedProgram> loaded;
  std::vector<LeafShape> inputs, outputs;  // global shapes
  std::vector<bool> donates;               // by input
  absl::Duration deadline;
  bool check_replicas = false;

  const LocalProgram& local() const { return program->local; }
  const LocalState* state(bool is_output, size_t k) const {
    return is_output ? local().outputs[k] : local().parameters[k];
  }
  const ProgramSource::Leaf& leaf(bool is_output, size_t k) const {
    return is_output ? loaded->results()[k] : loaded->parameters()[k];
  }
};

}  // namespace pjrt
}  // namespace internal

namespace {

using pjrt::DeviceBuffer;
using pjrt::ExecutableState;

// An unspecified layout is the plugin's default, row-major.
bool SameLayout(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  const auto is_default = [](absl::Span<const int64_t> order) {
    return std::is_sorted(order.rbegin(), order.rend());
  };
  return a == b || (is_default(a) && is_default(b));
}

std::string LiesAs(const ExecutableState& of, bool is_output, size_t k) {
  const pjrt::ProgramSource::Leaf& leaf = of.leaf(is_output, k);
  const LocalState* state = of.state(is_output, k);
  return absl::StrCat(state == nullptr ? "a token" : state->sharding->ToString(), ", shards of ",
                      TypeAndDims(leaf.type, leaf.dims),
                      leaf.minor_to_major.empty()
                          ? ""
                          : absl::StrCat("{", absl::StrJoin(leaf.minor_to_major, ","), "}"));
}

// Whether a parameter is donated, by flat leaf.
std::vector<bool> DonatedLeaves(const Module& module, size_t num_leaves) {
  std::vector<bool> donated(num_leaves);
  std::vector<int> first{0};
  const std::vector<InstrId>& parameters = module.comp(module.entry()).parameters;
  for (InstrId p : parameters) first.push_back(first.back() + module.instr(p).shape->num_leaves());
  const auto set = [&](int64_t parameter, absl::Span<const int64_t> index) {
    const Shape* shape = module.instr(parameters[parameter]).shape;
    donated[first[parameter] + FirstLeafAt(shape, index)] = true;
  };
  for (const AliasEntry& a : module.header.aliases) set(a.parameter, a.parameter_index);
  for (const DonorEntry& d : module.header.donors) set(d.parameter, d.parameter_index);
  return donated;
}

// Copies the shards of an array to the host.
absl::StatusOr<std::vector<Tensor>> CopyShards(const pjrt::Plugin& plugin, ElementType type,
                                               absl::Span<const DeviceBuffer::Ref> shards) {
  pjrt::HostCopies copies(plugin);
  for (const DeviceBuffer::Ref& shard : shards) {
    SHARDCALL_RETURN_IF_ERROR(copies.Start(*shard, type));
  }
  return copies.Finish();
}

}  // namespace

absl::StatusOr<Tensor> PjrtArray::ToHost() const {
  if (from_ == nullptr) {
    return ToStatus({.code = "E313",
                     .message = "an array that was moved from, or never made, has no elements",
                     .fix = "Copy what Put or Execute gave"});
  }
  if (!IsArrayType(type_)) return Tensor::Token();
  const pjrt::Plugin& plugin = from_->loaded->client()->plugin();
  const auto parts = std::make_shared<absl::StatusOr<std::vector<Tensor>>>();
  SHARDCALL_RETURN_IF_ERROR(pjrt::WithinDeadline(
      from_->deadline, plugin, [from = from_, shards = shards_, type = type_, parts] {
        *parts = CopyShards(from->loaded->client()->plugin(), type, shards);
      }));
  SHARDCALL_RETURN_IF_ERROR(parts->status());
  if (is_output_) return JoinOutput(from_->local(), k_, **parts, from_->check_replicas);
  return Unshard(**parts, *from_->state(false, k_), dims_);
}

absl::StatusOr<PjrtExecutable> PjrtExecutable::Compile(
    std::shared_ptr<const pjrt::Client> client, std::shared_ptr<const PartitionedProgram> program,
    const RunOptions& options) {
  if (client == nullptr || program == nullptr) {
    return ToStatus({.code = "E313",
                     .message = "there is nothing to compile, or nothing to compile for",
                     .expected = "a client and a partitioned program",
                     .found = "null",
                     .fix = "Give what Partition made"});
  }
  auto state = std::make_shared<ExecutableState>();
  const Module& whole = program->global->program.module;
  state->inputs = ParameterLeaves(whole);
  state->outputs = ResultLeaves(whole);
  state->donates = DonatedLeaves(program->local.module, state->inputs.size());
  state->deadline = options.deadline;
  state->check_replicas = options.check_replicas;
  SHARDCALL_ASSIGN_OR_RETURN(
      state->loaded,
      pjrt::LoadedProgram::Compile(std::move(client), program->local.module,
                                   static_cast<int>(program->global->program.num_partitions),
                                   options.handlers));
  state->program = std::move(program);
  return PjrtExecutable(std::move(state));
}

size_t PjrtExecutable::num_inputs() const { return state_->inputs.size(); }
size_t PjrtExecutable::num_outputs() const { return state_->outputs.size(); }

const std::vector<LeafShape>& PjrtExecutable::inputs() const { return state_->inputs; }
bool PjrtExecutable::Donates(size_t k) const { return k < num_inputs() && state_->donates[k]; }

absl::StatusOr<PjrtArray> PjrtExecutable::Put(size_t k, const Tensor& input) const {
  if (k >= num_inputs()) return CheckInputCount(num_inputs(), k + 1);
  SHARDCALL_RETURN_IF_ERROR(shardcall::CheckInput(k, state_->inputs[k], input));
  const int n = state_->loaded->num_devices();
  SHARDCALL_ASSIGN_OR_RETURN(
      const std::vector<std::vector<Tensor>> parts,
      ShardForDevices({input}, {state_->state(false, k)}, n, PadFill::kPoison));
  PjrtArray array;
  for (int d = 0; d < n; ++d) {
    SHARDCALL_ASSIGN_OR_RETURN(DeviceBuffer::Ref put, state_->loaded->Put(d, k, parts[d][0]));
    array.shards_.push_back(std::move(put));
  }
  array.from_ = state_;
  array.type_ = input.type();
  array.dims_ = input.dims();
  array.k_ = k;
  return array;
}

absl::Status PjrtExecutable::CheckInput(size_t k, const PjrtArray& input) const {
  const LeafShape& leaf = state_->inputs[k];
  const auto misfit = [k](absl::string_view how, std::string expected, std::string found) {
    return ToStatus({.code = "E313",
                     .message = absl::StrCat("input ", k, how),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .fix = "Put the array for this program: copy it to the host first (ToHost), "
                            "or let both programs state the same sharding"});
  };
  const ExecutableState* from = input.from_.get();
  if (from == nullptr || input.type() != leaf.type || input.dims() != leaf.dims) {
    return misfit(" does not fit its parameter", TypeAndDims(leaf.type, leaf.dims),
                  from == nullptr ? "nothing" : TypeAndDims(input.type(), input.dims()));
  }
  if (from->loaded->client() != state_->loaded->client()) {
    return misfit(" lies on other devices", "an array of the same engine", "that of another one");
  }
  if (from == state_.get() && !input.is_output_ && input.k_ == k) return absl::OkStatus();
  const LocalState *has = from->state(input.is_output_, input.k_), *takes = state_->state(false, k);
  const bool same = has == nullptr || takes == nullptr
                        ? has == takes
                        : SameParts(*has, *takes, leaf.dims, state_->loaded->num_devices()) &&
                              SameLayout(from->leaf(input.is_output_, input.k_).minor_to_major,
                                         state_->leaf(false, k).minor_to_major);
  if (same) return absl::OkStatus();
  return misfit(" does not lie on the devices as the program takes it", LiesAs(*state_, false, k),
                LiesAs(*from, input.is_output_, input.k_));
}

absl::Status PjrtExecutable::CheckInputs(absl::Span<const PjrtArray> inputs) const {
  SHARDCALL_RETURN_IF_ERROR(CheckInputCount(num_inputs(), inputs.size()));
  for (size_t k = 0; k < inputs.size(); ++k) {
    SHARDCALL_RETURN_IF_ERROR(CheckInput(k, inputs[k]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PjrtArray>> PjrtExecutable::Execute(
    std::vector<PjrtArray> inputs) const {
  SHARDCALL_RETURN_IF_ERROR(CheckInputs(inputs));
  const pjrt::LoadedProgram& loaded = *state_->loaded;
  pjrt::LoadedProgram::Arrays arguments(loaded.num_devices());
  for (PjrtArray& input : inputs) {
    for (int d = 0; d < loaded.num_devices(); ++d) {
      arguments[d].push_back(std::move(input.shards_[d]));
    }
  }
  inputs.clear();  // so that the arguments hold the only references
  SHARDCALL_ASSIGN_OR_RETURN(pjrt::LoadedProgram::Arrays results,
                             loaded.Execute(std::move(arguments), state_->deadline));
  std::vector<PjrtArray> outputs(num_outputs());
  for (size_t k = 0; k < outputs.size(); ++k) {
    outputs[k].from_ = state_;
    outputs[k].type_ = state_->outputs[k].type;
    outputs[k].dims_ = state_->outputs[k].dims;
    outputs[k].is_output_ = true;
    outputs[k].k_ = k;
    for (std::vector<DeviceBuffer::Ref>& of_device : results) {
      outputs[k].shards_.push_back(std::move(of_device[k]));
    }
  }
  return outputs;
}

}  // namespace shardcall
