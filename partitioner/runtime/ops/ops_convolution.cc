// SPDX-License-Identifier: Apache-2.0
// convolution. Operands are transposed to [batch, space.., feature] and [space.., in, out]. The
// windows of one image are the rows of a matrix (im2col), and each feature group is a matrix
// product.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "shardcall/kernels/host/matmul.h"
#include "shardcall/partitioner/ir/shapes/dim_labels.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/ops/convolution.h"
#include "shardcall/partitioner/runtime/ops/window.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// im2col of image `b` for features [f0, f0 + features): one row per output position, [window..,
// features] long. Elements outside of the image are zero.
void Unfold(const ConvolutionData& data, const Tensor& lhs, int64_t b, int64_t f0, int64_t features,
            const Dims& out_space, char* rows) {
  const int rank = data.window.rank();
  const int bytes = lhs.element_bytes();
  const Dims strides = RowMajorStrides(lhs.dims());
  const int64_t window_elements = Product(data.window.size);
  int64_t row = 0;
  for (IndexCounter o(out_space); !o.done(); o.Next(), ++row) {
    char* to = rows + row * window_elements * features * bytes;
    for (IndexCounter w(data.window.size); !w.done(); w.Next(), to += features * bytes) {
      int64_t offset = b * strides[0] + f0;
      bool inside = true;
      for (int k = 0; k < rank && inside; ++k) {
        const int64_t at =
            data.window.reversed[k] ? data.window.size[k] - 1 - w.index()[k] : w.index()[k];
        const int64_t i = data.window.BaseIndex(k, o.index()[k], at, lhs.dim(k + 1));
        inside = i >= 0;
        offset += i * strides[k + 1];
      }
      if (inside) {
        std::memcpy(to, lhs.data() + offset * bytes, features * bytes);
      } else {
        std::memset(to, 0, features * bytes);
      }
    }
  }
}

absl::Status RunConvolution(StepRun& run) {
  const auto& data = run.data<ConvolutionData>();
  const Tensor lhs = Transpose(run.in(0), data.lhs_perm);
  const Tensor rhs = Transpose(run.in(1), data.rhs_perm);
  const int rank = data.window.rank();
  Dims out_dims;  // batch, space.., feature
  for (int64_t p : data.out_perm) out_dims.push_back(run.shape(0).dims[p]);
  const Dims out_space(out_dims.begin() + 1, out_dims.end() - 1);
  const int64_t images = out_dims[0], out_features = out_dims.back();
  const int64_t positions = Product(out_space), window = Product(data.window.size);
  const int64_t groups = std::max(data.feature_groups, data.batch_groups);
  const int64_t in_features = rhs.dim(rank);  // of one group
  const int64_t group_out = groups == 0 ? 0 : out_features / groups;
  Tensor out = Tensor::Zeros(run.shape(0).type, out_dims);
  if (out.num_elements() > 0 && window * in_features > 0) {
    Tensor rows(lhs.type(), {positions, window * in_features});
    Tensor kernel(rhs.type(), {window * in_features, group_out});
    Tensor product(out.type(), {positions, group_out});
    const int rhs_bytes = rhs.element_bytes(), out_bytes = out.element_bytes();
    const int64_t kernel_dims[] = {window * in_features, group_out};
    const int64_t from_strides[] = {out_features, 1}, to_strides[] = {group_out, 1};
    for (int64_t g = 0; g < groups; ++g) {
      CopyStrided(rhs_bytes, kernel_dims, rhs.data() + g * group_out * rhs_bytes, from_strides,
                  kernel.MutableData(), to_strides);
      for (int64_t b = 0; b < images; ++b) {
        // With batch groups, group g reads its own part of the batch.
        const int64_t image = data.batch_groups > 1 ? g * images + b : b;
        const int64_t f0 = data.batch_groups > 1 ? 0 : g * in_features;
        Unfold(data, lhs, image, f0, in_features, out_space, rows.MutableData());
        SHARDCALL_RETURN_IF_ERROR(
            Matmul({.m = positions, .n = group_out, .k = window * in_features}, rows.type(),
                   rows.data(), kernel.type(), kernel.data(), out.type(), product.MutableData()));
        const int64_t part[] = {positions, group_out};
        const int64_t src[] = {group_out, 1}, dst[] = {out_features, 1};
        CopyStrided(out_bytes, part, product.data(), src,
                    out.MutableData() + (b * positions * out_features + g * group_out) * out_bytes,
                    dst);
      }
    }
  }
  Dims inverse(data.out_perm.size());
  for (size_t k = 0; k < data.out_perm.size(); ++k) inverse[data.out_perm[k]] = k;
  run.Set(0, Transpose(out, inverse));
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerConvolution(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<ConvolutionAttrs>();
  if (context.num_operands() != 2 || !attrs.sparsity_config.empty()) {
    return context.Unimplemented("a convolution with sparse operands");
  }
  auto data = std::make_unique<ConvolutionData>();
  data->window = WindowDims(attrs.window);
  data->feature_groups = attrs.feature_group_count;
  data->batch_groups = attrs.batch_group_count;
  DimLabels labels;
  if (!ParseDimLabels(attrs.dim_labels, &labels) || labels.lhs.has_unknown ||
      labels.rhs.has_unknown || labels.out.has_unknown ||
      static_cast<int>(labels.lhs.spatial.size()) != data->window.rank()) {
    return context.Unimplemented("these dim_labels");
  }
  const auto& [input, kernel, output] = labels;
  data->lhs_perm = {input.batch};
  data->lhs_perm.insert(data->lhs_perm.end(), input.spatial.begin(), input.spatial.end());
  data->lhs_perm.push_back(input.feature);
  data->rhs_perm.assign(kernel.spatial.begin(), kernel.spatial.end());
  data->rhs_perm.insert(data->rhs_perm.end(), {kernel.batch, kernel.feature});
  data->out_perm = {output.batch};
  data->out_perm.insert(data->out_perm.end(), output.spatial.begin(), output.spatial.end());
  data->out_perm.push_back(output.feature);
  const Shape& lhs = *context.operand_shape(0);
  const Shape& rhs = *context.operand_shape(1);
  const int64_t in_features = rhs.dim(kernel.batch);
  const int64_t out_features = rhs.dim(kernel.feature);
  const int64_t groups = std::max(data->feature_groups, data->batch_groups);
  if (groups < 1 || (data->feature_groups > 1 && data->batch_groups > 1) ||
      out_features % groups != 0 || lhs.dim(input.feature) != in_features * data->feature_groups ||
      step->shapes[0].dims[output.feature] != out_features ||
      step->shapes[0].dims[output.batch] * data->batch_groups != lhs.dim(input.batch)) {
    return context.Error("E311", "features, batch and groups do not fit together");
  }
  if (!MatmulSupports(lhs.element_type(), rhs.element_type(), step->shapes[0].type)) {
    return context.Unimplemented("a product of these element types");
  }
  const bool fast = IsFastConvolution(*data, lhs.element_type(), rhs.element_type(),
                                      step->shapes[0], in_features, out_features);
  step->fn = fast ? RunFastConvolution : RunConvolution;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
