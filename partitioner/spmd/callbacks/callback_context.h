// SPDX-License-Identifier: Apache-2.0
// The implementation of PartitionContext, for partition callbacks and for the bodies of targets.
// Checks are in callback_checks.cc, collectives in callback_collectives.cc.
#ifndef SHARDCALL_PARTITIONER_SPMD_CALLBACKS_CALLBACK_CONTEXT_H_
#define SHARDCALL_PARTITIONER_SPMD_CALLBACKS_CALLBACK_CONTEXT_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/spmd/callbacks/callback_memo.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"

namespace shardcall {
inline namespace internal {

// For one call; it must not outlive the builder and the decision. Large since it has every
// function of PartitionContext, and a check of the arguments for most of them.
class CallbackContext : public PartitionContext {
 public:
  using Axes = absl::Span<const AxisRef>;
  using ValueOr = absl::StatusOr<LocalValue>;

  // The shard of operand i (flat) under a sharding.
  using Operands = std::function<InstrId(int i, const Sharding* sharding)>;

  // What it adds has the cause that the emitter has now.
  CallbackContext(OpBuilder& ops, InstrId id, const Decision& d, Operands operands);

  const CustomCallView& call() const override { return view_; }
  const Sharding* operand_sharding(int i) const override { return At(decision_.operands, i); }
  const Sharding* result_sharding(int i) const override { return At(decision_.final, i); }
  ValueOr Operand(int i, const Sharding* sharding) override;
  absl::StatusOr<const Shape*> ShapeOf(LocalValue x) override;
  CheckedBuilder& builder() override { return builder_; }
  ValueOr TileStart(const Shape* global, const Sharding* sharding, int dim) override;
  ValueOr MaskPadding(LocalValue x, const Shape* global, const Sharding* sharding,
                      absl::Span<const int> dims, LocalValue fill) override;
  absl::StatusOr<std::vector<LocalValue>> CallTarget(
      absl::Span<const LocalValue> operands, absl::Span<const Shape* const> results) override;
  absl::StatusOr<std::vector<LocalValue>> CallTargetWith(
      absl::string_view backend_config, absl::Span<const LocalValue> operands,
      absl::Span<const Shape* const> results) override;
  absl::StatusOr<std::vector<LocalValue>> AddProgram(
      absl::string_view hlo, absl::Span<const LocalValue> operands) override;
  LocalValue PartitionId() override { return {ops_.builder().PartitionId()}; }
  ValueOr AxisIndex(Axes axes) override;
  ValueOr AllReduce(LocalValue x, PartialOp op, Axes axes) override;
  ValueOr AllGather(LocalValue x, int dim, Axes axes) override;
  ValueOr ReduceScatter(LocalValue x, int dim, PartialOp op, Axes axes) override;
  ValueOr AllToAll(LocalValue x, int split, int join, Axes axes) override;
  ValueOr CollectivePermute(LocalValue x, Axes axes,
                            absl::Span<const std::pair<int64_t, int64_t>> pairs) override;
  ValueOr Reshard(LocalValue x, const Shape* global, const Sharding* from,
                  const Sharding* to) override;
  absl::Status SetResult(int i, LocalValue value, const Sharding* sharding) override;
  absl::Status CheckAllSet() const;
  // Whether the callback may have built something that does not verify.
  bool structure_open() const { return builder_.structure_open(); }
  // The record of everything that the callback did.
  CallbackRecord TakeRecord();

 private:
  absl::StatusOr<std::vector<LocalValue>> Call(const Instruction& instr,
                                               absl::Span<const LocalValue> operands,
                                               absl::Span<const Shape* const> results);

  // NoteMade attributes the instructions since the last call of either to the callback; PassOver
  // skips them.
  void NoteMade();
  void PassOver();
  // The sharding of `states[i]` on the call's mesh, which a callback's axes belong to; a value on
  // another base mesh appears as replicated.
  const Sharding* At(Decision::States states, int i) const;
  int64_t NextChannel() { return ops_.shared().next_channel++; }

  // The instruction that the builder made, or its error; Collective also records it.
  ValueOr Made(absl::StatusOr<InstrId> id) const;
  ValueOr Collective(absl::StatusOr<InstrId> id, const ReplicaGroups& groups);
  // Whether the backend lacks some collectives, so that the emitter's stand for them.
  bool LacksSome() const;
  ValueOr Exchanged(LocalValue x, int split, Axes axes);  // an all-to-all

  absl::Status CheckDim(const Shape* global, const Sharding* sharding, int dim) const;
  absl::Status CheckIndex(int i, size_t size, absl::string_view what) const;
  absl::Status CheckValue(LocalValue x) const;
  // Checks the value and axes of a collective, and, if given, its dimension, which must be a
  // multiple of `parts`.
  absl::Status Check(LocalValue x, Axes axes) const;
  // For a value that passed Check: whether its element type has the reduction.
  absl::Status CheckReduction(LocalValue x, PartialOp op) const;
  absl::Status Check(LocalValue x, Axes axes, int dim, int64_t parts = 1) const;
  absl::Status CheckAxes(Axes axes) const;
  absl::Status CheckWhole(const Sharding* s) const;
  absl::Status CheckShard(LocalValue x, const Shape* global, const Sharding* s,
                          absl::string_view what) const;
  // Checks that `local` has the kind, type and rank of `global`.
  absl::Status CheckLike(const Shape* global, const Shape* local, absl::string_view what,
                         size_t k) const;

  OpBuilder& ops_;
  InstrId id_;
  const Decision& decision_;
  const CollectiveCause cause_;  // of all collectives of the call
  CustomCallView view_;
  CheckedBuilder builder_;
  const Operands operands_;
  std::vector<InstrId> values_;
  std::vector<const Sharding*> states_;
  CallbackRecord record_;
  int seen_ = 0;             // number of instructions noted so far
  size_t records_seen_ = 0;  // number of collective records noted so far
};

// Calls a function of the target's author, which may throw. `what` names it in errors: E121, or the
// function's own with a code.
absl::Status AskAuthor(const CustomCallView& call, absl::string_view what,
                       absl::FunctionRef<absl::Status()> ask);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_CALLBACKS_CALLBACK_CONTEXT_H_
