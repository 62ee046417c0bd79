// SPDX-License-Identifier: Apache-2.0
// ragged-dot: a product in which one dimension of the lhs is ragged: cut into groups of run-time
// sizes. If it is a free dimension, each group of rows is multiplied with its own slice of the rhs.
// If it is contracting, each group is summed into a result of its own. If it is a batch dimension,
// it is a plain product. Elements after the last group give zero, or are not summed.
#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/kernels/host/matmul.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

enum class RaggedMode : uint8_t { kFree, kContracting, kBatch };

struct RaggedDotData : OpData {
  RaggedMode mode = RaggedMode::kFree;
  int64_t batch = 1, m = 1, n = 1, k = 1, groups = 1;
  Dims lhs_perm;  // to batch, free, contracting
  Dims rhs_perm;  // to [group,] batch, contracting, free
  // The ragged dimension within rows (or summands): [prefix, extent, inner].
  int64_t extent = 1, inner = 1;
  bool shared_sizes = true;  // one list of sizes for all
};

// A run [first, last) of rows or summands that belong to `group`.
struct Run {
  int64_t group, first, last;
};

// The runs of one batch element. `sizes` are of its groups, prefix by prefix. Negative sizes count
// as zero, and groups end where the dimension does.
std::vector<Run> RunsOf(const RaggedDotData& data, const Tensor& sizes, int64_t first_list,
                        int64_t prefixes) {
  std::vector<Run> runs;
  for (int64_t p = 0; p < prefixes; ++p) {
    const int64_t list = data.shared_sizes ? 0 : first_list + p;
    int64_t at = 0;
    for (int64_t g = 0; g < data.groups && at < data.extent; ++g) {
      const int64_t size =
          std::clamp<int64_t>(IntElement(sizes, list * data.groups + g), 0, data.extent - at);
      const int64_t base = p * data.extent;
      if (size > 0) {
        runs.push_back({g, (base + at) * data.inner, (base + at + size) * data.inner});
      }
      at += size;
    }
  }
  return runs;
}

absl::Status RunFree(const RaggedDotData& data, const Tensor& lhs, const Tensor& rhs,
                     const Tensor& sizes, Tensor* out) {
  std::memset(out->MutableData(), 0, out->byte_size());
  const int64_t prefixes = data.extent * data.inner == 0 ? 0 : data.m / (data.extent * data.inner);
  const int64_t lhs_row = data.k * lhs.element_bytes(), out_row = data.n * out->element_bytes();
  const int64_t slice = data.k * data.n * rhs.element_bytes();
  for (int64_t b = 0; b < data.batch; ++b) {
    for (const Run& run : RunsOf(data, sizes, b * prefixes, prefixes)) {
      SHARDCALL_RETURN_IF_ERROR(
          Matmul({.m = run.last - run.first, .n = data.n, .k = data.k}, lhs.type(),
                 lhs.data() + (b * data.m + run.first) * lhs_row, rhs.type(),
                 rhs.data() + (run.group * data.batch + b) * slice, out->type(),
                 out->MutableData() + (b * data.m + run.first) * out_row));
    }
  }
  return absl::OkStatus();
}

absl::Status RunContracting(const RaggedDotData& data, const Tensor& lhs, const Tensor& rhs,
                            const Tensor& sizes, Tensor* out) {
  const int64_t prefixes = data.extent * data.inner == 0 ? 0 : data.k / (data.extent * data.inner);
  const int bytes = lhs.element_bytes();
  const int64_t rhs_row = data.n * rhs.element_bytes();
  for (int64_t b = 0; b < data.batch; ++b) {
    const std::vector<Run> runs = RunsOf(data, sizes, b * prefixes, prefixes);
    for (int64_t g = 0; g < data.groups; ++g) {
      int64_t depth = 0;
      for (const Run& run : runs) depth += run.group == g ? run.last - run.first : 0;
      // The group's columns of lhs and rows of rhs, side by side.
      Tensor left(lhs.type(), {data.m, depth}), right(rhs.type(), {depth, data.n});
      int64_t at = 0;
      for (const Run& run : runs) {
        if (run.group != g) continue;
        const int64_t dims[] = {data.m, run.last - run.first};
        const int64_t from[] = {data.k, 1}, to[] = {depth, 1};
        CopyStrided(bytes, dims, lhs.data() + (b * data.m * data.k + run.first) * bytes, from,
                    left.MutableData() + at * bytes, to);
        std::memcpy(right.MutableData() + at * rhs_row,
                    rhs.data() + (b * data.k + run.first) * rhs_row,
                    (run.last - run.first) * rhs_row);
        at += run.last - run.first;
      }
      SHARDCALL_RETURN_IF_ERROR(Matmul(
          {.m = data.m, .n = data.n, .k = depth}, left.type(), left.data(), right.type(),
          right.data(), out->type(),
          out->MutableData() + (g * data.batch + b) * data.m * data.n * out->element_bytes()));
    }
  }
  return absl::OkStatus();
}

absl::Status RunRaggedDot(StepRun& run) {
  const auto& data = run.data<RaggedDotData>();
  const Tensor lhs = Transpose(run.in(0), data.lhs_perm);
  const Tensor rhs = Transpose(run.in(1), data.rhs_perm);
  Tensor out = run.NewResult(0);
  if (out.num_elements() > 0) {
    switch (data.mode) {
      case RaggedMode::kFree:
        SHARDCALL_RETURN_IF_ERROR(RunFree(data, lhs, rhs, run.in(2), &out));
        break;
      case RaggedMode::kContracting:
        SHARDCALL_RETURN_IF_ERROR(RunContracting(data, lhs, rhs, run.in(2), &out));
        break;
      case RaggedMode::kBatch:
        SHARDCALL_RETURN_IF_ERROR(
            Matmul({.batch = data.batch, .m = data.m, .n = data.n, .k = data.k}, lhs.type(),
                   lhs.data(), rhs.type(), rhs.data(), out.type(), out.MutableData()));
    }
  }
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

// Dimensions of `shape` that are in none of the lists.
Dims Others(const Shape& shape, std::initializer_list<Ints> lists) {
  Dims free;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    bool listed = false;
    for (Ints list : lists) listed = listed || absl::c_linear_search(list, d);
    if (!listed) free.push_back(d);
  }
  return free;
}
int64_t Extent(const Shape& shape, Ints dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= shape.dim(static_cast<int>(d));
  return n;
}
bool InRange(const Shape& shape, Ints dims) {
  return std::all_of(dims.begin(), dims.end(),
                     [&](int64_t d) { return d >= 0 && d < shape.rank(); });
}

}  // namespace

absl::Status LowerRaggedDot(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<DotAttrs>();
  const Shape& lhs = *context.operand_shape(0);
  const Shape& rhs = *context.operand_shape(1);
  const Shape& sizes = *context.operand_shape(2);
  if (attrs.lhs_contracting.size() != attrs.rhs_contracting.size() ||
      attrs.lhs_batch.size() != attrs.rhs_batch.size() || !InRange(lhs, attrs.lhs_batch) ||
      !InRange(lhs, attrs.lhs_contracting) || !InRange(rhs, attrs.rhs_batch) ||
      !InRange(rhs, attrs.rhs_contracting) || !InRange(lhs, attrs.lhs_ragged) ||
      !InRange(rhs, attrs.rhs_group) || attrs.lhs_ragged.size() != 1 || sizes.rank() == 0 ||
      !IsInteger(sizes.element_type())) {
    return context.Error("E311", "the dimension numbers do not fit the operands");
  }
  if (!MatmulSupports(lhs.element_type(), rhs.element_type(), step->shapes[0].type)) {
    return context.Unimplemented("a product of these element types");
  }
  auto data = std::make_unique<RaggedDotData>();
  const int64_t ragged = attrs.lhs_ragged[0];
  data->mode = absl::c_linear_search(attrs.lhs_batch, ragged)         ? RaggedMode::kBatch
               : absl::c_linear_search(attrs.lhs_contracting, ragged) ? RaggedMode::kContracting
                                                                      : RaggedMode::kFree;
  const Dims lhs_free = Others(lhs, {attrs.lhs_batch, attrs.lhs_contracting});
  const Dims rhs_free = Others(rhs, {attrs.rhs_batch, attrs.rhs_contracting, attrs.rhs_group});
  data->batch = Extent(lhs, attrs.lhs_batch);
  data->m = Extent(lhs, lhs_free);
  data->n = Extent(rhs, rhs_free);
  data->k = Extent(lhs, attrs.lhs_contracting);
  data->groups = sizes.dim(sizes.rank() - 1);
  for (Ints part :
       std::initializer_list<Ints>{attrs.lhs_batch, Ints(lhs_free), attrs.lhs_contracting}) {
    data->lhs_perm.insert(data->lhs_perm.end(), part.begin(), part.end());
  }
  for (Ints part : std::initializer_list<Ints>{attrs.rhs_group, attrs.rhs_batch,
                                               attrs.rhs_contracting, Ints(rhs_free)}) {
    data->rhs_perm.insert(data->rhs_perm.end(), part.begin(), part.end());
  }
  // Lists of sizes: one for all, or one for each batch element and each index of the dimensions of
  // the same kind before the ragged one.
  int64_t lists = data->batch;
  if (data->mode != RaggedMode::kBatch) {
    const Ints kind =
        data->mode == RaggedMode::kFree ? Ints(lhs_free) : Ints(attrs.lhs_contracting);
    const auto at = std::find(kind.begin(), kind.end(), ragged);
    const size_t before = at - kind.begin();
    lists *= Extent(lhs, kind.first(before));
    data->extent = lhs.dim(static_cast<int>(ragged));
    data->inner = Extent(lhs, kind.subspan(before + 1));
    data->shared_sizes = sizes.rank() == 1;
    int64_t given = 1;
    for (int d = 0; d + 1 < sizes.rank(); ++d) given *= sizes.dim(d);
    if (!data->shared_sizes && given != lists) {
      return context.Error("E311",
                           "there must be one list of group sizes, or one for each batch "
                           "element and place before the ragged dimension");
    }
  }
  step->fn = RunRaggedDot;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
