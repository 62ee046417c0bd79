// SPDX-License-Identifier: Apache-2.0
// Collectives whose blocks differ between devices: collective-permute and ragged-all-to-all.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/device_groups.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

struct PermuteData : OpData {
  bool replicas = false;  // the pairs are of replicas: only (0, 0) is valid
  std::vector<std::pair<int, int>> pairs;
  // Of the pairs, so that no device has to look at all of them.
  int largest = -1;                    // the largest device
  absl::flat_hash_set<int> to_itself;  // devices d with a pair (d, d)
};

absl::Status DevicesThatLack(const StepRun& run, const PermuteData& data, int count) {
  for (const auto& [source, target] : data.pairs) {
    if (source < count && target < count) continue;
    return run.Error("E312", absl::StrCat("the pairs name device ", std::max(source, target),
                                          ", but the run has ", count));
  }
  return absl::OkStatus();
}

absl::Status RunPermute(StepRun& run) {
  const auto& data = run.data<PermuteData>();
  const int device = run.device().device, count = run.device().num_devices;
  if (!data.replicas && data.largest >= count) return DevicesThatLack(run, data, count);
  // With one device, or for a pair (d, d) of replicas.
  const bool to_itself = data.to_itself.contains(data.replicas ? 0 : device);
  for (int k = 0; k < run.num_results(); ++k) {
    Tensor in = run.Take(k);
    if (in.num_elements() != run.shape(k).num_elements()) {
      return run.Error("E312", "the result's size does not fit the operand's");
    }
    if (data.replicas || run.device().comm == nullptr) {
      run.Set(k, to_itself ? std::move(in) : Tensor::Zeros(in.type(), in.dims()));
      continue;
    }
    Tensor out = run.NewResult(k);
    SHARDCALL_RETURN_IF_ERROR(run.device().comm->Permute(data.pairs, in.data(), out.MutableData(),
                                                         in.byte_size(), {run.step().name}));
    run.Set(k, std::move(out));
  }
  return absl::OkStatus();
}

struct RaggedData : OpData {
  DeviceGroups groups;
};

// Operands: input, output, input_offsets, send_sizes, output_offsets, recv_sizes. Offsets and sizes
// are in rows, `u` per member. output_offsets[j] is the place of this device's rows in the output
// of member j, so receivers get it from the senders.
absl::Status RunRagged(StepRun& run) {
  absl::Span<const int> group;
  bool found = false;
  SHARDCALL_RETURN_IF_ERROR(run.data<RaggedData>().groups.Find(run, &group, &found));
  if (!found) return run.Error("E312", "this device is in none of the groups");
  const Tensor input = run.in(0);
  const int64_t g = static_cast<int64_t>(group.size());
  const int64_t entries = run.in(2).num_elements();
  if (entries % g != 0) {
    return run.Error("E316", "the number of offsets is no multiple of the size of the group");
  }
  if (g > 1 && run.device().comm == nullptr) {
    return run.Error("E312", "a collective over several devices, but the run has no communicator");
  }
  const int64_t updates = entries / g;
  std::vector<int64_t> theirs(entries), mine(entries);
  for (int64_t i = 0; i < entries; ++i) theirs[i] = IntElement(run.in(4), i);
  if (g > 1) {
    SHARDCALL_RETURN_IF_ERROR(run.device().comm->AllToAll(
        group, theirs.data(), mine.data(), updates * static_cast<int64_t>(sizeof(int64_t)),
        {run.step().name}));
  } else {
    mine = theirs;
  }
  auto row_bytes = [](const Tensor& t) {
    return t.rank() == 0 || t.dim(0) == 0 ? 0 : t.byte_size() / t.dim(0);
  };
  const int64_t row = row_bytes(input);
  const int64_t input_rows = input.rank() == 0 ? 0 : input.dim(0);
  const int64_t output_rows = run.shape(0).dims.empty() ? 0 : run.shape(0).dims[0];
  std::vector<std::vector<int64_t>> send_offsets(updates), send_sizes(updates),
      recv_offsets(updates), recv_sizes(updates);
  for (int64_t i = 0; i < entries; ++i) {
    const int64_t u = i % updates;
    const int64_t from = IntElement(run.in(2), i), size = IntElement(run.in(3), i);
    const int64_t to = mine[i], expected = IntElement(run.in(5), i);
    if (size < 0 || expected < 0 || (size > 0 && (from < 0 || from + size > input_rows)) ||
        (expected > 0 && (to < 0 || to + expected > output_rows))) {
      return run.Error(
          "E316", absl::StrCat("entry ", i, ": rows ", from, " + ", size, " of the input or ", to,
                               " + ", expected, " of the output are outside"));
    }
    send_offsets[u].push_back(from * row);
    send_sizes[u].push_back(size * row);
    recv_offsets[u].push_back(to * row);
    recv_sizes[u].push_back(expected * row);
  }
  Tensor out = run.Take(1);
  char* to = out.MutableData();
  for (int64_t u = 0; u < updates; ++u) {
    if (g > 1) {
      SHARDCALL_RETURN_IF_ERROR(run.device().comm->AllToAllV(group, input.data(), send_offsets[u],
                                                             send_sizes[u], to, recv_offsets[u],
                                                             recv_sizes[u], {run.step().name}));
    } else if (send_sizes[u][0] > 0) {
      std::memcpy(to + recv_offsets[u][0], input.data() + send_offsets[u][0],
                  std::min(send_sizes[u][0], recv_sizes[u][0]));
    }
  }
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerPermute(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<PermuteAttrs>();
  if (!attrs.slice_sizes.empty() || step->operands.size() != step->results.size()) {
    return context.Unimplemented("a permute of slices in place");
  }
  auto data = std::make_unique<PermuteData>();
  data->replicas = attrs.channel_id < 0;
  for (size_t k = 0; k < attrs.sources.size(); ++k) {
    if (attrs.sources[k] < 0 || attrs.targets[k] < 0 || attrs.sources[k] > INT32_MAX ||
        attrs.targets[k] > INT32_MAX) {
      return context.Error("E312", "a pair names a device that cannot be");
    }
    const int source = static_cast<int>(attrs.sources[k]);
    const int target = static_cast<int>(attrs.targets[k]);
    data->pairs.emplace_back(source, target);
    data->largest = std::max({data->largest, source, target});
    if (source == target) data->to_itself.insert(source);
  }
  step->fn = RunPermute;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerRaggedAllToAll(const LowerContext& context, Step* step) {
  auto data = std::make_unique<RaggedData>();
  SHARDCALL_RETURN_IF_ERROR(
      DeviceGroups::Make(context, context.attrs<CollectiveAttrs>(), &data->groups));
  if (context.num_operands() != 6) return context.Error("E311", "six operands are needed");
  const int64_t entries = context.operand_shape(2)->num_elements();
  for (int k = 2; k < 6; ++k) {
    const Shape& shape = *context.operand_shape(k);
    if (!IsInteger(shape.element_type()) || shape.num_elements() != entries) {
      return context.Error("E311", "offsets and sizes must be integers of one length");
    }
  }
  const Shape& input = *context.operand_shape(0);
  const Shape& output = *context.operand_shape(1);
  bool same = input.element_type() == output.element_type() && input.rank() == output.rank();
  for (int d = 1; same && d < input.rank(); ++d) same = input.dim(d) == output.dim(d);
  if (!same) return context.Error("E311", "input and output differ in more than their rows");
  step->fn = RunRagged;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
