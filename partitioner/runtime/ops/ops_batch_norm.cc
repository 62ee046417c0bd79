// SPDX-License-Identifier: Apache-2.0
// batch-norm-training, -inference and -grad, computed in f64.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/float_arrays.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/strided.h"

namespace shardcall {
inline namespace internal {
namespace {

struct BatchNormData : OpData {
  double epsilon = 0;
  int64_t outer = 1, features = 1, inner = 1;

  // Calls f(element, feature) for all elements.
  template <typename F>
  void ForEach(F f) const {
    int64_t i = 0;
    for (int64_t a = 0; a < outer; ++a) {
      for (int64_t c = 0; c < features; ++c) {
        for (int64_t b = 0; b < inner; ++b) f(i++, c);
      }
    }
  }
};

void SetResult(StepRun& run, int r, const std::vector<double>& x) {
  run.Set(r, FromDoubles(run.shape(r).type, run.shape(r).dims, x));
}

std::vector<double> Normalize(const BatchNormData& data, const std::vector<double>& x,
                              const std::vector<double>& scale, const std::vector<double>& offset,
                              const std::vector<double>& mean,
                              const std::vector<double>& variance) {
  std::vector<double> out(x.size());
  data.ForEach([&](int64_t i, int64_t c) {
    out[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + data.epsilon) * scale[c] + offset[c];
  });
  return out;
}

absl::Status RunTraining(StepRun& run) {
  const auto& data = run.data<BatchNormData>();
  const std::vector<double> x = ToDoubles(run.in(0));
  const double count = static_cast<double>(data.outer * data.inner);
  std::vector<double> mean(data.features), variance(data.features);
  data.ForEach([&](int64_t i, int64_t c) { mean[c] += x[i]; });
  for (double& m : mean) m /= count;
  data.ForEach([&](int64_t i, int64_t c) { variance[c] += (x[i] - mean[c]) * (x[i] - mean[c]); });
  for (double& v : variance) v /= count;
  SetResult(run, 0, Normalize(data, x, ToDoubles(run.in(1)), ToDoubles(run.in(2)), mean, variance));
  SetResult(run, 1, mean);
  SetResult(run, 2, variance);
  return absl::OkStatus();
}

absl::Status RunInference(StepRun& run) {
  SetResult(run, 0,
            Normalize(run.data<BatchNormData>(), ToDoubles(run.in(0)), ToDoubles(run.in(1)),
                      ToDoubles(run.in(2)), ToDoubles(run.in(3)), ToDoubles(run.in(4))));
  return absl::OkStatus();
}

absl::Status RunGrad(StepRun& run) {
  const auto& data = run.data<BatchNormData>();
  const std::vector<double> x = ToDoubles(run.in(0)), scale = ToDoubles(run.in(1)),
                            mean = ToDoubles(run.in(2)), variance = ToDoubles(run.in(3)),
                            grad = ToDoubles(run.in(4));
  const double count = static_cast<double>(data.outer * data.inner);
  std::vector<double> sum(data.features), centered(data.features), grad_scale(data.features);
  data.ForEach([&](int64_t i, int64_t c) {
    sum[c] += grad[i];
    centered[c] += grad[i] * (x[i] - mean[c]);
  });
  for (int64_t c = 0; c < data.features; ++c) {
    grad_scale[c] = centered[c] / std::sqrt(variance[c] + data.epsilon);
  }
  std::vector<double> grad_x(x.size());
  data.ForEach([&](int64_t i, int64_t c) {
    const double v = variance[c] + data.epsilon;
    grad_x[i] = scale[c] / std::sqrt(v) / count *
                (count * grad[i] - sum[c] - (x[i] - mean[c]) / v * centered[c]);
  });
  SetResult(run, 0, grad_x);
  SetResult(run, 1, grad_scale);
  SetResult(run, 2, sum);
  return absl::OkStatus();
}

// `whole`: a bit for each operand that has the first one's shape; the others have one element for
// each feature.
absl::Status Lower(const LowerContext& context, uint32_t whole, OpFn run, Step* step) {
  const auto& attrs = context.attrs<BatchNormAttrs>();
  const Shape& in = *context.operand_shape(0);
  auto data = std::make_unique<BatchNormData>();
  data->epsilon = attrs.epsilon;
  if (attrs.feature_index < 0 || attrs.feature_index >= in.rank()) {
    return context.Error("E311", "no such feature_index");
  }
  const int f = static_cast<int>(attrs.feature_index);
  data->outer = Product(in.dims().first(f));
  data->features = in.dim(f);
  data->inner = Product(in.dims().subspan(f + 1));
  for (int k = 0; k < context.num_operands(); ++k) {
    const Shape& shape = *context.operand_shape(k);
    if (!IsFloat(shape.element_type())) return context.Unimplemented("this element type");
    if (shape.num_elements() != (whole >> k & 1 ? in.num_elements() : data->features)) {
      return context.Error("E311", "the operands do not fit together");
    }
  }
  step->fn = run;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerBatchNormTraining(const LowerContext& context, Step* step) {
  return Lower(context, 0b1, RunTraining, step);
}
absl::Status LowerBatchNormInference(const LowerContext& context, Step* step) {
  return Lower(context, 0b1, RunInference, step);
}
absl::Status LowerBatchNormGrad(const LowerContext& context, Step* step) {
  return Lower(context, 0b10001, RunGrad, step);
}

}  // namespace internal
}  // namespace shardcall
