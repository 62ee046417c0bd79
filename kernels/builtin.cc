// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/builtin.h"

#include "shardcall/kernels/cuda/kernels.h"
#include "shardcall/kernels/host/kernels.h"
#include "shardcall/kernels/host/lapack/targets.h"
#include "shardcall/kernels/host/lapack/untyped.h"
#include "shardcall/kernels/host/loss.h"
#include "shardcall/kernels/host/moe.h"

namespace shardcall {

absl::Status RegisterBuiltinHandlers(HandlerRegistry& registry) {
  absl::Status status;
  auto add = [&](absl::string_view target, HostHandler handler, int api_version = 4) {  // 0: any
    HandlerEntry entry;
    entry.api_version = api_version;
    entry.target = std::string(target);
    entry.source = "built in";
    entry.host = std::move(handler);
    status.Update(registry.Register(std::move(entry)));
  };
  add("cublas_gemm", CublasGemm);
  add("custom_relu", CustomRelu);
  add("custom_relu_bwd", CustomReluBwd);
  add("fft", Fft);
  add("flash_attention_bwd", FlashAttentionBwd);
  add("flash_attention_fwd", FlashAttentionFwd);
  add("rms_norm", RmsNorm);
  add("rms_norm_bwd", RmsNormBwd);
  add("gemm", CublasGemm);
  add("gemm_bwd", GemmBwd);
  add("moe_combine", MoeCombine);
  add("moe_dispatch", MoeDispatch);
  add("moe_positions", MoePositions);
  add("nccl_allreduce", NcclAllReduce);
  add("softmax_cross_entropy", SoftmaxCrossEntropy);
  add("softmax_cross_entropy_bwd", SoftmaxCrossEntropyBwd);
  add("softmax_cross_entropy_shard", SoftmaxCrossEntropyShard);
  add("sparse_matmul", SparseMatmul);
  add("sparse_matmul_bwd", SparseMatmulBwd);
  add("topk", TopK);
  for (auto& [target, handler] : LapackTargets()) add(target, std::move(handler));
  for (auto& [target, handler] : UntypedLapackTargets()) {
    add(target, std::move(handler), /*api_version=*/0);
  }
  for (auto& [target, kernel] : CudaKernels()) {
    HandlerEntry entry;
    entry.target = target;
    entry.platform = "CUDA";
    entry.source = "built in";
    entry.host = std::move(kernel);
    status.Update(registry.Register(std::move(entry)));
  }
  return status;
}

}  // namespace shardcall
