// SPDX-License-Identifier: Apache-2.0
// Rules of sparse_matmul and its gradients: `z, z, r, k n -> m n`, with r = m + 1 offsets.
//   n  columns of b and y are independent.
//   m  rows are independent too. The offsets of a shard are one more than its rows, so every
//      device has all offsets and slices its own out of them.
//   k  a device with some rows of b multiplies the entries in those columns; results are summed.
//   z  a device with some entries multiplies those, with offsets relative to its first entry
//      (the kernel clamps them); results are summed.
// Its gradients, `m n, z, z, r, k n -> z, k n`, are sharded in the same way. The gradient of the
// entries is summed over shards of m, n and k, that of the matrix over shards of m and z.
#include <vector>

#include "shardcall/partitioner/custom_call/rule_callbacks.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// The tile + 1 offsets of this device's rows.
absl::StatusOr<InstrId> OffsetsOfRows(LocalCall& call, InstrId offsets) {
  if (!call.IsSharded("m")) return offsets;
  CheckedBuilder& b = call.builder();
  const int64_t tile = call.Tile("m");
  const int64_t padded = tile * AxesSize(call.Axes("m"));
  // Padding rows get offset 0 as their end, so they are empty.
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId zero, b.ConstantInt(ElementType::kS32, 0));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId all,
                             b.Pad(offsets, zero, {0}, {padded - call.Size("m")}));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId start, call.Start("m"));
  return b.DynamicSlice(all, {start}, {tile + 1});
}

// Takes values, columns, offsets and b as operands `first` and following. Returns the operands with
// columns and offsets relative to this device's shard.
absl::StatusOr<std::vector<InstrId>> Local(LocalCall& call, absl::Span<const InstrId> operands,
                                           int first) {
  CheckedBuilder& b = call.builder();
  std::vector<InstrId> local(operands.begin(), operands.end());
  InstrId &columns = local[first + 1], &offsets = local[first + 2];
  SHARDCALL_ASSIGN_OR_RETURN(columns, call.LocalIndices(columns, "k"));
  SHARDCALL_ASSIGN_OR_RETURN(offsets, OffsetsOfRows(call, offsets));
  if (call.IsSharded("z")) {
    SHARDCALL_ASSIGN_OR_RETURN(InstrId start, call.Start("z"));
    SHARDCALL_ASSIGN_OR_RETURN(start, b.BroadcastScalar(start, call.shape(offsets)));
    SHARDCALL_ASSIGN_OR_RETURN(offsets, b.Add(Opcode::kSubtract, {offsets, start}));
  }
  return local;
}

absl::StatusOr<std::vector<InstrId>> Multiply(LocalCall& call, absl::Span<const InstrId> operands) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> local, Local(call, operands, 0));
  return call.CallTarget(local);
}

absl::StatusOr<std::vector<InstrId>> Gradients(LocalCall& call,
                                               absl::Span<const InstrId> operands) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> local, Local(call, operands, 1));
  return call.CallTarget(local);
}

}  // namespace

absl::Status RegisterSparseTargets(TargetRegistry& registry) {
  // The result has one row less than there are offsets, which a rule cannot express.
  SHARDCALL_RETURN_IF_ERROR(registry.RegisterShapeInference(
      "sparse_matmul", [](const ShapeRequest& call) -> absl::StatusOr<const Shape*> {
        const auto& in = call.operands;
        if (in.size() != 4 || !in[2]->IsArray() || in[2]->rank() != 1 || in[2]->dim(0) < 1 ||
            !in[3]->IsArray() || in[3]->rank() != 2) {
          return absl::InvalidArgumentError(
              "it takes values, columns, offsets of rows, at least one, and a matrix");
        }
        return call.context->MakeArray(in[3]->element_type(), {in[2]->dim(0) - 1, in[3]->dim(1)});
      }));
  // Padding entries get column -1, which is none.
  SHARDCALL_RETURN_IF_ERROR(
      RegisterRuleWithBody(registry, "sparse_matmul",
                           {{.text = {.rule = "z, z, r, k n -> m n",
                                      .need_replication = {"r"},
                                      .reduction = {{"z", PartialOp::kSum}, {"k", PartialOp::kSum}},
                                      .pad = {{"z", -1}}},
                             .types = "T, s32, s32, T -> T"}},
                           Multiply, "built in"));
  SHARDCALL_RETURN_IF_ERROR(RegisterRuleWithBody(registry, "sparse_matmul_bwd",
                                                 {{.text = {.rule = "m n, z, z, r, k n -> z, k n",
                                                            .need_replication = {"r"},
                                                            .reduction = {{"m", PartialOp::kSum},
                                                                          {"n", PartialOp::kSum},
                                                                          {"z", PartialOp::kSum},
                                                                          {"k", PartialOp::kSum}},
                                                            .pad = {{"z", -1}, {"n", 0}}},
                                                   .types = "T, T, s32, s32, T -> T, T"}},
                                                 Gradients, "built in"));
  return registry.RegisterVjp(
      "sparse_matmul",
      {.target = "sparse_matmul_bwd",
       .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0), VjpArgument::Operand(1),
                     VjpArgument::Operand(2), VjpArgument::Operand(3)},
       .gradients = {0, 3}});
}

}  // namespace internal
}  // namespace shardcall
