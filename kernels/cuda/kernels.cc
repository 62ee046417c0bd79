// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/cuda/kernels.h"

#include "shardcall/kernels/cuda/cublas_gemm.h"
#include "shardcall/kernels/cuda/cuda_type.h"
#include "shardcall/kernels/cuda/launch.h"
#include "shardcall/kernels/cuda/nccl_allreduce.h"
#include "shardcall/kernels/cuda/sparse_matmul.h"
#include "shardcall/kernels/ffi/handler_device.h"
#include "shardcall/kernels/host/arguments.h"
#include "shardcall/kernels/host/norm.h"
#include "shardcall/kernels/host/relu.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status Launched(const CallArguments& args, int code) {
  if (code == 0) return absl::OkStatus();
  return args.Located(ToStatus({.code = "E309",
                                .message = "a CUDA kernel was not launched",
                                .expected = "cudaSuccess",
                                .found = CudaErrorText(code),
                                .fix = "See the driver and the device: nvidia-smi"},
                               absl::StatusCode::kInternal));
}

absl::Status CudaRelu(const HandlerContext& context, absl::Span<const BufferView> operands,
                      absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"x"}, {"y"});
  SHARDCALL_RETURN_IF_ERROR(CheckRelu(args, context));
  return Launched(args, LaunchRelu(CudaTypeOf(operands[0].type), operands[0].data, results[0].data,
                                   operands[0].num_elements(), context.device->stream()));
}

absl::Status CudaRmsNorm(const HandlerContext& context, absl::Span<const BufferView> operands,
                         absl::Span<const BufferView> results) {
  const CallArguments args(context, operands, results, {"x", "gain"}, {"y", "rstd"}, 0, 1);
  SHARDCALL_ASSIGN_OR_RETURN(const RmsNormCall call, CheckRmsNorm(args, context));
  if (call.shape.rows == 0 || call.shape.width == 0) return absl::OkStatus();
  RmsNormLaunch launch = {};
  launch.type = CudaTypeOf(operands[0].type);
  launch.gain_type = CudaTypeOf(operands[1].type);
  launch.rstd_type = call.rstd == nullptr ? CudaType::kF32 : CudaTypeOf(call.rstd->type);
  launch.rows = call.shape.rows;
  launch.width = call.shape.width;
  launch.rows_per_gain = call.shape.rows_per_gain;
  launch.eps = call.eps;
  launch.x = operands[0].data;
  launch.gain = operands[1].data;
  launch.y = results[0].data;
  launch.rstd = call.rstd == nullptr ? nullptr : call.rstd->data;
  return Launched(args, LaunchRmsNorm(launch, context.device->stream()));
}

}  // namespace

std::vector<std::pair<std::string, HostHandler>> CudaKernels() {
  std::vector<std::pair<std::string, HostHandler>> kernels = {
      {"custom_relu", CudaRelu}, {"nccl_allreduce", CudaNcclAllReduce}, {"rms_norm", CudaRmsNorm}};
  const auto add_if_there = [&](const char* target, HostHandler handler) {
    if (handler != nullptr) kernels.emplace_back(target, std::move(handler));
  };
  add_if_there("cublas_gemm", CudaGemm());
  add_if_there("gemm", CudaGemm());
  add_if_there("sparse_matmul", CudaSparseMatmul());
  return kernels;
}

}  // namespace internal
}  // namespace shardcall
