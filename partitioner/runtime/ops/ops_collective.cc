// SPDX-License-Identifier: Apache-2.0
// Collectives with equal blocks: all-reduce, all-gather, reduce-scatter, all-to-all and
// collective-broadcast. The Communicator exchanges whole buffers in group order, so that a
// dimension attribute becomes a strided copy here.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "shardcall/collectives/split.h"
#include "shardcall/partitioner/ir/attribute_names.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/device_groups.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/ops/lane_program.h"
#include "shardcall/partitioner/runtime/reduce_kind.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

struct CollectiveData : OpData {
  DeviceGroups groups;
  int dimension = -1;
  // For reductions: the kind, or else the computation.
  bool known_kind = false;
  ReduceKind kind = ReduceKind::kSum;
  LaneProgram program;
};

// To blocks [g, outer, part, inner] of an array [outer, g * part, inner].
Tensor ToBlocks(const Tensor& t, int d, int64_t g) {
  Dims dims(t.dims().begin(), t.dims().end());
  dims[d] /= g;
  Dims split = dims;
  split.insert(split.begin() + d, g);  // [.., g, part, ..]
  Dims perm = {d};
  for (int k = 0; k < static_cast<int>(split.size()); ++k) {
    if (k != d) perm.push_back(k);
  }
  return Transpose(t.As(t.type(), split), perm);
}

// The reverse: [g, .., part, ..] to [.., g * part, ..].
Tensor FromBlocks(const Tensor& blocks, int d) {
  Dims perm;
  for (int k = 1; k < blocks.rank(); ++k) {
    if (k - 1 == d) perm.push_back(0);
    perm.push_back(k);
  }
  Tensor t = Transpose(blocks, perm);
  Dims dims;
  for (int k = 1; k < blocks.rank(); ++k) dims.push_back(blocks.dim(k));
  dims[d] *= blocks.dim(0);
  return std::move(t).As(t.type(), dims);
}

Dims WithGroup(int64_t g, const Dims& dims) {
  Dims out = dims;
  out.insert(out.begin(), g);
  return out;
}

absl::Status NeedCommunicator(const StepRun& run) {
  if (run.device().comm != nullptr) return absl::OkStatus();
  return run.Error("E312", "a collective over several devices, but the run has no communicator");
}

// A reduction by a computation that backends do not support: all-gather, then fold in group order.
absl::Status FoldAll(StepRun& run, const CollectiveData& data, absl::Span<const int> group,
                     const Tensor& in, Tensor* out) {
  const int64_t bytes = in.byte_size();
  Tensor all(in.type(), WithGroup(static_cast<int64_t>(group.size()), in.dims()));
  SHARDCALL_RETURN_IF_ERROR(
      run.device().comm->AllGather(group, in.data(), all.MutableData(), bytes, {run.step().name}));
  *out = Tensor::FromBytes(in.type(), in.dims(), all.data());
  constexpr int64_t kLanes = 1024;
  LaneRunner runner(data.program, kLanes);
  for (size_t j = 1; j < group.size(); ++j) {
    for (int64_t i = 0; i < in.num_elements(); i += kLanes) {
      const int64_t at = i * in.element_bytes();
      void* acc = out->MutableData() + at;
      const void* params[] = {acc, all.data() + static_cast<int64_t>(j) * bytes + at};
      runner.Run(params, &acc, std::min(kLanes, in.num_elements() - i));
    }
  }
  return absl::OkStatus();
}

absl::Status AllReduce(StepRun& run, const CollectiveData& data, absl::Span<const int> group,
                       int k) {
  Tensor in = run.Take(k);
  if (group.size() > 1) {
    if (data.known_kind) {
      Tensor out = run.NewResult(k);
      SHARDCALL_RETURN_IF_ERROR(run.device().comm->AllReduce(group, data.kind, in.type(), in.data(),
                                                             out.MutableData(), in.num_elements(),
                                                             {run.step().name}));
      in = std::move(out);
    } else {
      Tensor out;
      SHARDCALL_RETURN_IF_ERROR(FoldAll(run, data, group, in, &out));
      in = std::move(out);
    }
  }
  run.Set(k, std::move(in));
  return absl::OkStatus();
}

absl::Status AllGather(StepRun& run, const CollectiveData& data, absl::Span<const int> group,
                       int k) {
  Tensor in = run.Take(k);
  if (group.size() > 1) {
    Tensor all(in.type(), WithGroup(static_cast<int64_t>(group.size()), in.dims()));
    SHARDCALL_RETURN_IF_ERROR(run.device().comm->AllGather(group, in.data(), all.MutableData(),
                                                           in.byte_size(), {run.step().name}));
    in = FromBlocks(all, data.dimension);
  }
  run.Set(k, std::move(in));
  return absl::OkStatus();
}

absl::Status ReduceScatter(StepRun& run, const CollectiveData& data, absl::Span<const int> group,
                           int k) {
  Tensor in = run.Take(k);
  const int64_t g = static_cast<int64_t>(group.size());
  if (g > 1) {
    const Tensor blocks = ToBlocks(in, data.dimension, g);
    Tensor out = run.NewResult(k);
    if (data.known_kind) {
      SHARDCALL_RETURN_IF_ERROR(run.device().comm->ReduceScatter(
          group, data.kind, in.type(), blocks.data(), out.MutableData(), out.num_elements(),
          {run.step().name}));
    } else {
      Tensor all;
      SHARDCALL_RETURN_IF_ERROR(FoldAll(run, data, group, blocks, &all));
      int64_t mine = 0;
      while (group[mine] != run.device().device) ++mine;
      std::memcpy(out.MutableData(), all.data() + mine * out.byte_size(), out.byte_size());
    }
    in = std::move(out);
  }
  run.Set(k, std::move(in));
  return absl::OkStatus();
}

absl::Status AllToAll(StepRun& run, const CollectiveData& data, absl::Span<const int> group) {
  const int64_t g = static_cast<int64_t>(group.size());
  if (data.dimension >= 0) {  // array form, one operand
    Tensor in = run.Take(0);
    if (g > 1) {
      const Tensor blocks = ToBlocks(in, data.dimension, g);
      Tensor received(blocks.type(), blocks.dims());
      SHARDCALL_RETURN_IF_ERROR(run.device().comm->AllToAll(
          group, blocks.data(), received.MutableData(), blocks.byte_size() / g, {run.step().name}));
      in = FromBlocks(received, data.dimension);
    }
    run.Set(0, std::move(in));
    return absl::OkStatus();
  }
  if (run.num_inputs() != g || run.num_results() != g) {
    return run.Error("E312", "the number of operands differs from the size of the group");
  }
  // Tuple form: operand j is sent to member j, result i is received from member i.
  if (g == 1) {
    run.Set(0, run.Take(0));
    return absl::OkStatus();
  }
  const int64_t bytes = run.in(0).byte_size();
  std::vector<const void*> send;
  std::vector<void*> receive;
  std::vector<Tensor> results;
  for (int k = 0; k < g; ++k) {
    results.push_back(run.NewResult(k));
    if (run.in(k).byte_size() != bytes || results[k].byte_size() != bytes) {
      return run.Error("E312", "operands and results differ in size");
    }
    send.push_back(run.in(k).data());
    receive.push_back(results[k].MutableData());
  }
  SHARDCALL_RETURN_IF_ERROR(
      AllToAllBuffers(*run.device().comm, group, send, receive, bytes, {run.step().name}));
  for (int k = 0; k < g; ++k) run.Set(k, std::move(results[k]));
  return absl::OkStatus();
}

absl::Status Broadcast(StepRun& run, absl::Span<const int> group, bool found, int k) {
  Tensor t = run.Take(k);
  if (!found) {  // devices in no group get zeros
    t = Tensor::Zeros(t.type(), t.dims());
  } else if (group.size() > 1) {
    SHARDCALL_RETURN_IF_ERROR(
        run.device().comm->Broadcast(group, 0, t.MutableData(), t.byte_size(), {run.step().name}));
  }
  run.Set(k, std::move(t));
  return absl::OkStatus();
}

absl::Status RunCollective(StepRun& run) {
  const auto& data = run.data<CollectiveData>();
  const Opcode opcode = run.step().opcode;
  absl::Span<const int> group;
  bool found = false;
  SHARDCALL_RETURN_IF_ERROR(data.groups.Find(run, &group, &found));
  if (!found && opcode != Opcode::kCollectiveBroadcast) {
    return run.Error("E312", "this device is in none of the groups");
  }
  if (group.size() > 1) SHARDCALL_RETURN_IF_ERROR(NeedCommunicator(run));
  if (opcode == Opcode::kAllToAll) return AllToAll(run, data, group);
  for (int k = 0; k < run.num_results(); ++k) {
    const int64_t g = static_cast<int64_t>(group.size());
    const int64_t in = run.in(k).num_elements(), out = run.shape(k).num_elements();
    const bool gathers = opcode == Opcode::kAllGather || opcode == Opcode::kAllGatherStart;
    const bool scatters = opcode == Opcode::kReduceScatter;
    const bool fits = gathers    ? in * g == out
                      : scatters ? in == out * g && run.in(k).dim(data.dimension) % g == 0
                                 : in == out;
    if (!fits) {
      return run.Error("E312", "the result's size does not fit the operand's and the group's");
    }
    absl::Status status;
    if (gathers) {
      status = AllGather(run, data, group, k);
    } else if (scatters) {
      status = ReduceScatter(run, data, group, k);
    } else if (opcode == Opcode::kCollectiveBroadcast) {
      status = Broadcast(run, group, found, k);
    } else {
      status = AllReduce(run, data, group, k);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerCollective(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<CollectiveAttrs>();
  auto data = std::make_unique<CollectiveData>();
  SHARDCALL_RETURN_IF_ERROR(DeviceGroups::Make(context, attrs, &data->groups));
  data->dimension = static_cast<int>(attrs.dimension);
  const Opcode opcode = context.instr.opcode;
  const bool reduces = HasTrait(opcode, kAppliesToElements);
  const bool by_dimension = hlo_text::Requires(opcode, hlo_text::Attr::kDimensions);
  if (opcode != Opcode::kAllToAll && step->operands.size() != step->results.size()) {
    return context.Error("E311", "one result per operand is needed");
  }
  for (int k = 0; k < context.num_operands(); ++k) {
    const Shape& shape = *context.operand_shape(k);
    if (by_dimension && (attrs.dimension < 0 || attrs.dimension >= shape.rank())) {
      return context.Error("E311", "no such dimension");
    }
    if (reduces && shape.element_type() != context.operand_shape(0)->element_type()) {
      return context.Unimplemented("one reduction over operands of several types");
    }
  }
  if (reduces) {
    SHARDCALL_ASSIGN_OR_RETURN(data->program, CompileLanes(context.module, attrs.to_apply));
    const ElementType type = context.operand_shape(0)->element_type();
    if (data->program.num_parameters != 2 || data->program.results.size() != 1 ||
        data->program.result_type(0) != data->program.registers[0]) {
      return context.Error("E311", "the computation does not fit the operands");
    }
    // Elements of less than a byte must be brought into range after each step.
    data->known_kind =
        data->program.monoid && (type == ElementType::kPred || ElementTypeBits(type) >= 8);
    if (data->known_kind) data->kind = ReduceKindOf(*data->program.monoid, type);
    if (!data->known_kind && data->program.registers[0] != type) {
      return context.Unimplemented("a reduction whose computation has another type");
    }
  }
  step->fn = RunCollective;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
