// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/targets/jaxlib_targets.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/custom_call/default_rules.h"
#include "shardcall/partitioner/custom_call/rule_callbacks.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

using How = JaxlibTarget::How;

constexpr absl::string_view kDescriptor = "a descriptor in its attributes has the whole's sizes";
constexpr absl::string_view kPython = "each call is another function of Python";
constexpr absl::string_view kKernel = "each call is another kernel, with a grid of its own";

constexpr JaxlibTarget kTargets[] = {
    {"cpu_csr_sparse_dense_ffi", How::kBody},
    {"tridiagonal_solve_perturbed_ffi", How::kBatchOfCall},
    // Keeps a value from being removed, and reads nothing of it.
    {"dce_sink", How::kRule, "... ->"},
    {"xla_ffi_python_cpu_callback", How::kOfCall, kPython},
    {"xla_ffi_python_gpu_callback", How::kOfCall, kPython},
    {"xla_ffi_partitioned_python_cpu_callback", How::kOfCall, kPython},
    {"xla_ffi_partitioned_python_gpu_callback", How::kOfCall, kPython},
    {"xla_buffer_python_cpu_callback", How::kOfCall, kPython},
    {"xla_buffer_python_gpu_callback", How::kOfCall, kPython},
    {"xla_buffer_python_gpu_callback_cmd_buffer", How::kOfCall, kPython},
    {"triton_kernel_call", How::kOfCall, kKernel},
    {"triton_kernel_call_ffi", How::kOfCall, kKernel},
    {"mosaic_gpu_v2", How::kOfCall, kKernel},
    {"?solver_getrf_ffi", How::kBatchOfCall},
    {"?solver_geqrf_ffi", How::kBatchOfCall},
    {"?solver_orgqr_ffi", How::kBatchOfCall},
    {"?solver_ormqr_ffi", How::kBatchOfCall},
    {"?solver_potrf_ffi", How::kRule, "... m n -> ... m n, ...", "", "m n"},
    {"?solver_syevd_ffi", How::kBatchOfCall},
    {"?solver_sytrd_ffi", How::kBatchOfCall},
    {"?solver_gesvd_ffi", How::kBatchOfCall},
    {"?solver_gesvdj_ffi", How::kBatchOfCall},
    {"?solver_gesvdp_ffi", How::kBatchOfCall},
    {"?solver_gesdd_ffi", How::kBatchOfCall},
    {"?solver_geev_ffi", How::kBatchOfCall},
    {"?hybrid_eig_real", How::kBatchOfCall},
    {"?hybrid_eig_comp", How::kBatchOfCall},
    {"?hybrid_geqp3", How::kBatchOfCall},
    {"?_lu_pivots_to_permutation", How::kBatchOfCall},
    {"?_tridiagonal_solve_perturbed", How::kBatchOfCall},
    {"?sparse_gtsv2_ffi", How::kBatchOfCall},
    // Two words of the key, two of the counter: each element is hashed on its own.
    {"?_threefry2x32_ffi", How::kRule, "..., ..., ..., ... -> ..., ..."},
    {"__op$block_scaled_dot", How::kRule, "... m (k t), ... n (k t), ... m k, ... n k -> ... m n",
     "k", "t"},
    // Those of TPUs.
    {"LuDecomposition", How::kRule, "... m n -> ... m n, ... k, ... m", "", "m n k"},
    {"Qr", How::kRule, "... m n -> ... m n, ... k", "", "m n k"},
    {"ProductOfElementaryHouseholderReflectors", How::kRule, "... m n, ... k -> ... m n", "",
     "m n k"},
    {"Eigh", How::kRule, "... m n -> ... m n, ... k", "", "m n k"},
    // Lines are the last dimension, as jax.lax.approx_max_k has them unless it is told otherwise.
    {"PartialReduce", How::kRule, "... n, ... n, , -> ... k, ... k", "", "n k"},
    {"?solver_syrk_ffi", How::kReplicated, "it makes one matrix, of which it writes a half"},
    {"?_cholesky_update_ffi", How::kReplicated, "each column depends on those before"},
    {"?solver_csrlsvqr_ffi", How::kReplicated, "it solves one system of equations"},
    {"?sparse_csr_todense_ffi", How::kReplicated, kDescriptor},
    {"?sparse_csr_fromdense_ffi", How::kReplicated, kDescriptor},
    {"?sparse_csr_matvec_ffi", How::kReplicated, kDescriptor},
    {"?sparse_csr_matmat_ffi", How::kReplicated, kDescriptor},
    {"?sparse_coo_todense_ffi", How::kReplicated, kDescriptor},
    {"?sparse_coo_fromdense_ffi", How::kReplicated, kDescriptor},
    {"?sparse_coo_matvec_ffi", How::kReplicated, kDescriptor},
    {"?sparse_coo_matmat_ffi", How::kReplicated, kDescriptor},
    {"?dnn_rnn", How::kReplicated, kDescriptor},
    {"?dnn_rnn_bwd", How::kReplicated, kDescriptor},
    {"?dnn_rnn_ffi", How::kReplicated, kDescriptor},
    {"?dnn_rnn_bwd_ffi", How::kReplicated, kDescriptor},
};

// The product of a matrix in compressed rows (values and columns of z entries, r = m + 1 offsets)
// and a dense one. A device that has some rows takes the offsets of these out of all; columns of
// the dense matrix are independent. The kernel reads rows of the dense matrix by the columns of all
// entries, so k is whole.
absl::StatusOr<std::vector<InstrId>> MultiplyRows(LocalCall& call,
                                                  absl::Span<const InstrId> operands) {
  std::vector<InstrId> local(operands.begin(), operands.end());
  if (!call.IsSharded("m")) return call.CallTarget(local);
  CheckedBuilder& b = call.builder();
  const int64_t tile = call.Tile("m");
  const int64_t padded = tile * AxesSize(call.Axes("m"));
  // Padding rows end at offset 0, so they have no entries.
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId zero, b.ConstantInt(b.type(local[1]), 0));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId all,
                             b.Pad(local[1], zero, {0}, {padded - call.Size("m")}));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId start, call.Start("m"));
  SHARDCALL_ASSIGN_OR_RETURN(local[1], b.DynamicSlice(all, {start}, {tile + 1}));
  return call.CallTarget(local);
}

absl::Status Register(TargetRegistry& registry, const JaxlibTarget& row, std::string name) {
  const std::string source(kDefaultSource);
  switch (row.how) {
    case How::kOfCall: return absl::OkStatus();
    case How::kReplicated: return registry.RegisterBatchPartitionable(name, 0, "", source);
    case How::kBatchOfCall:
      return registry.RegisterBatchPartitionable(name, kBatchDimsOfCall, "", source);
    case How::kRule: {
      RuleText text = {.rule = std::string(row.what)};
      if (!row.sum.empty()) text.reduction = {{std::string(row.sum), PartialOp::kSum}};
      for (absl::string_view factor : absl::StrSplit(row.whole, ' ', absl::SkipEmpty())) {
        text.need_replication.emplace_back(factor);
      }
      return registry.RegisterRule(name, std::move(text), "", source);
    }
    case How::kBody:
      return RegisterRuleWithBody(
          registry, name,
          {{.text = {.rule = "z, r, z, k n -> m n", .need_replication = {"z", "r", "k"}},
            .types = "T, I, I, T -> T"},
           {.text = {.rule = "z, r, z, k -> m", .need_replication = {"z", "r", "k"}},
            .types = "T, I, I, T -> T"}},
          MultiplyRows, source);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Span<const JaxlibTarget> JaxlibTargets() { return kTargets; }

std::vector<std::string> JaxlibTargetNames(const JaxlibTarget& target) {
  if (!absl::StrContains(target.name, "?")) return {std::string(target.name)};
  return {absl::StrReplaceAll(target.name, {{"?", "cu"}}),
          absl::StrReplaceAll(target.name, {{"?", "hip"}})};
}

std::string JaxlibTargetText(const JaxlibTarget& target) {
  switch (target.how) {
    case How::kRule: return "rule";
    case How::kBatchOfCall: return "num_batch_dims";
    case How::kBody: return "body";
    case How::kReplicated: return absl::StrCat("replicated: ", target.what);
    case How::kOfCall: return absl::StrCat("of the call: ", target.what);
  }
  return "";
}

absl::Status RegisterJaxlibTargets(TargetRegistry& registry) {
  for (const JaxlibTarget& row : kTargets) {
    for (std::string& name : JaxlibTargetNames(row)) {
      SHARDCALL_RETURN_IF_ERROR(Register(registry, row, std::move(name)));
    }
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
