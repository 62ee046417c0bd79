// SPDX-License-Identifier: Apache-2.0
// The walk behind Localize: what has become of each value, and the local op of each
// instruction. localize.cc has the walk and the values, localize_structural.cc control flow and
// boundaries, localize_header.cc the module's header, callbacks/ the partition callbacks. What
// ops become beyond that are strategies, what one device runs (one_device.h) and feeds
// (feeds.h); these use the public half.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_LOCALIZER_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_LOCALIZER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/spmd/localize/control_edges.h"
#include "shardcall/partitioner/spmd/localize/emitter.h"
#include "shardcall/partitioner/spmd/localize/localize.h"
#include "shardcall/partitioner/spmd/localize/whole_copies.h"

namespace shardcall {

struct CallbackMemo;       // callback_memo.h
class OneDeviceLocalizer;  // one_device.h

using LocalIds = absl::InlinedVector<InstrId, 6>;

// What a handler gets: the op, its decision, and its operands' shards in the
// states that the decision asks for.
struct LocalOp {
  InstrId id;  // in the global module
  const Instruction& instr;
  const Decision& decision;
  LocalIds operands;                                    // flat leaves
  absl::InlinedVector<const Shape*, 6> operand_shapes;  // global
  absl::InlinedVector<const Shape*, 4> result_shapes;   // local, flat
};

class Localizer {
 public:
  Localizer(const Program& program, const Plan& plan, RuleTable& rules, const SpmdOptions& options);
  ~Localizer();
  absl::StatusOr<LocalProgram> Run();

  const Program& program() const { return program_; }
  const Plan& plan() const { return plan_; }
  const Module& global() const { return global_; }
  Module& local() { return result_.module; }
  Context& context() const { return context_; }
  RuleTable& rules() { return rules_; }
  Emitter& emitter() { return *emitter_; }
  GraphBuilder& builder() { return emitter_->builder(); }
  const std::vector<CollectiveRecord>& records() const { return shared_.records; }

  // The shard of a leaf under `to`; made on first use, then kept.
  InstrId Get(InstrId id, int flat, const Sharding* to, const CollectiveCause& cause);
  // The value a leaf is stored as, and its state.
  std::pair<InstrId, const Sharding*> Stored(InstrId id, int flat) const;
  void Store(InstrId id, int flat, InstrId value, const Sharding* state);
  // A reshard that a partition callback asks for.
  InstrId ReshardForCallback(InstrId call, InstrId x, const Shape* global, const Sharding* from,
                             const Sharding* to);
  // Stores what an op yields, after its reshard to decision.final.
  void StoreResults(InstrId id, const Decision& d, absl::Span<const InstrId> produced);

  // Localizing ends with the first failure.
  void Fail(absl::Status status) { status_.Update(std::move(status)); }
  // E210 where `what` moves more than --max-reshard-bytes.
  void CheckBytes(double bytes, absl::FunctionRef<std::string()> what);

  // Elements of a local tuple (or the value itself) as flat leaves, and back.
  LocalIds Flatten(InstrId value);
  InstrId Assemble(const Shape* global_shape, absl::Span<const InstrId> leaves);
  // The shape of the structure of `like` with these leaves.
  const Shape* ShapeFromLeaves(const Shape* like, absl::Span<const Shape* const> leaves);
  const Shape* LocalShapeOf(const Shape* global, absl::Span<const Sharding* const> states);

  // A copy of the op on local operands: same attributes (or `attrs`), metadata,
  // frontend attributes but for sharding ones. Its shape is made of
  // op.result_shapes. Returns its flat results.
  LocalIds Clone(const LocalOp& op, absl::Span<const InstrId> operands,
                 const Attributes* attrs = nullptr);
  // The local copy of a computation that runs whole: of reduce or sort, or of what one
  // device runs.
  CompId CopyComputation(CompId global) { return whole_copies_.Of(global); }
  CompId LocalComputation(CompId global) const { return computation_map_[global.value]; }
  // A computation of one parameter, whose leaves `make` gets.
  CompId AddBranch(absl::string_view name, const Shape* parameter,
                   absl::FunctionRef<LocalIds(const LocalIds&)> make);

 private:
  struct Value {
    InstrId id;
    const Sharding* state = nullptr;
  };
  using CopyList = absl::InlinedVector<Value, 3>;
  // The leaf's value in other states, in the order they came; null if there are none.
  const CopyList* CopiesOf(LeafId canonical) const;
  void AddCopy(LeafId canonical, InstrId id, const Sharding* state);
  void DropCopies(LeafId canonical) {
    if (copy_slot_[canonical.value] >= 0) copies_[copy_slot_[canonical.value]].clear();
  }
  // A reshard within --max-reshard-bytes. What stands on the way is a copy of the leaf,
  // where one is given.
  InstrId Reshard(InstrId x, const Shape* global, const Sharding* from, const Sharding* to,
                  const CollectiveCause& cause, LeafId leaf, const Sharding* stored);
  std::string WhatIsResharded(const Sharding* from, const Sharding* to,
                              const CollectiveCause& cause, LeafId leaf) const;
  // What the collectives recorded since `first` fetched for each operand of `id`.
  void CheckFetches(InstrId id, size_t first);

  absl::Status LocalizeComputation(CompId comp);
  absl::Status LocalizeInstruction(InstrId id);
  void FinishRoot(CompId comp);
  // localize_structural.cc
  void LocalizeParameter(InstrId id, const Decision& d);
  void LocalizeBarrier(InstrId id, const Decision& d);
  void LocalizePassThrough(InstrId id, const Decision& d);
  void LocalizeWhile(InstrId id, const Decision& d);
  void LocalizeBranches(InstrId id, const Decision& d);
  std::vector<const Sharding*> RootStates(CompId comp) const;
  // callbacks/localize_callbacks.cc
  absl::Status LocalizeCallbacks(InstrId id, const Decision& d);
  absl::Status VerifyCallbacks();  // where one had more than checked functions
  // localize_header.cc
  void MakeHeader();

  std::shared_ptr<CallbackMemo> callback_memo_;
  InstrId unverified_;  // the first call whose callback had the module itself

  const Attributes* LocalAttributes(const LocalOp& op);

  const Program& program_;
  const Plan& plan_;
  RuleTable& rules_;
  const SpmdOptions& options_;
  const Module& global_;
  const LeafTable& leaves_;
  Context& context_;
  LocalProgram result_;
  Emitter::Shared shared_;
  std::unique_ptr<Emitter> emitter_;
  std::vector<Value> values_;  // by canonical leaf
  // Other states of the leaves of the computation at hand, by the leaf's slot; -1: none.
  std::vector<CopyList> copies_;
  std::vector<int32_t> copy_slot_;               // by canonical leaf
  std::vector<LeafId> copied_;                   // by slot
  std::vector<CompId> computation_map_;          // of those that are partitioned
  absl::flat_hash_map<CompId, InstrId> caller_;  // instruction that runs a computation
  ControlEdges control_edges_;
  WholeCopies whole_copies_;
  std::unique_ptr<OneDeviceLocalizer> one_device_;
  absl::Status status_;
};

// The operands of `op` as the instruction has them, tuples put together again.
LocalIds AssembleOperands(Localizer& l, const LocalOp& op);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_LOCALIZER_H_
