// SPDX-License-Identifier: Apache-2.0
// The traversal behind Localize: the local value of each leaf, and the local op of each
// instruction. localize.cc has the traversal and the values, localize_structural.cc control flow
// and boundaries, localize_header.cc the module's header, callbacks/ the partition callbacks.
// Other ops are emitted by strategies, by one_device.h (maximal shardings) and by feeds.h; these
// use the public part.
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
#include "shardcall/partitioner/spmd/localize/stated_shardings.h"
#include "shardcall/partitioner/spmd/localize/whole_copies.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {

struct CallbackMemo;       // callback_memo.h
class OneDeviceLocalizer;  // one_device.h

// The input of a strategy: the op, its decision, and its operands' shards, resharded and exchanged
// as the decision asks.
struct LocalOp {
  InstrId id;  // in the global module
  const Instruction& instr;
  const Decision& decision;
  LocalIds operands;                                    // flat leaves
  absl::InlinedVector<const Shape*, 6> operand_shapes;  // global
  absl::InlinedVector<const Shape*, 4> result_shapes;   // local, flat
};

// Many short functions, because strategies and callbacks ask it for everything that they emit with:
// shards of operands, places of results, groups of devices. What one device runs, feeds, control
// edges and whole computations are classes beside it.
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

  // The shard of a leaf under `to`; resharded on first use, then kept.
  InstrId Get(InstrId id, int flat, const Sharding* to, const CollectiveCause& cause);
  // The stored value of a leaf, and its sharding.
  std::pair<InstrId, const Sharding*> Stored(InstrId id, int flat) const;
  void Store(InstrId id, int flat, InstrId value, const Sharding* state);
  // A reshard that a partition callback requested.
  InstrId ReshardForCallback(InstrId call, InstrId x, const Shape* global, const Sharding* from,
                             const Sharding* to);
  // Stores the results of an op, resharded to decision.final.
  void StoreResults(InstrId id, const Decision& d, absl::Span<const InstrId> produced);

  // Localization ends with the first failure.
  void Fail(absl::Status status) { status_.Update(std::move(status)); }
  // E210 if `what` moves more than --max-reshard-bytes.
  void CheckBytes(double bytes, absl::FunctionRef<std::string()> what);

  // Elements of a local tuple (or the value itself) as flat leaves, and back.
  LocalIds Flatten(InstrId value);
  InstrId Assemble(const Shape* global_shape, absl::Span<const InstrId> leaves);
  // The shape with the tuple structure of `like` and these leaves.
  const Shape* ShapeFromLeaves(const Shape* like, absl::Span<const Shape* const> leaves);
  const Shape* LocalShapeOf(const Shape* global, absl::Span<const Sharding* const> states);

  // A copy of the op on local operands: same attributes (or `attrs`), metadata, and frontend
  // attributes except sharding annotations. Its shape consists of op.result_shapes. Returns its
  // flat results.
  LocalIds Clone(const LocalOp& op, absl::Span<const InstrId> operands,
                 const Attributes* attrs = nullptr);
  // The local copy of a computation that runs whole: that of a reduce or sort, or of an op that
  // one device runs.
  CompId CopyComputation(CompId global) { return whole_copies_.Of(global); }
  CompId LocalComputation(CompId global) const { return computation_map_[global.value]; }
  // A computation with one parameter; `make` gets the parameter's leaves.
  CompId AddBranch(absl::string_view name, const Shape* parameter,
                   absl::FunctionRef<LocalIds(const LocalIds&)> make);

 private:
  struct Value {
    InstrId id;
    const Sharding* state = nullptr;
  };
  using CopyList = absl::InlinedVector<Value, 3>;
  // The leaf's value under other shardings, in order of creation; null if there are none.
  const CopyList* CopiesOf(LeafId canonical) const;
  void AddCopy(LeafId canonical, InstrId id, const Sharding* state);
  void DropCopies(LeafId canonical) {
    if (copy_slot_[canonical.value] >= 0) copies_[copy_slot_[canonical.value]].clear();
  }
  // Reshards within --max-reshard-bytes. If `leaf` is given, intermediate states become copies of
  // it.
  InstrId Reshard(InstrId x, const Shape* global, const Sharding* from, const Sharding* to,
                  const CollectiveCause& cause, LeafId leaf, const Sharding* stored);
  std::string WhatIsResharded(const Sharding* from, const Sharding* to,
                              const CollectiveCause& cause, LeafId leaf) const;
  // Checks the bytes of the collectives that were recorded since `first` for each operand of `id`.
  void CheckExchanges(InstrId id, size_t first);

  absl::Status LocalizeComputation(CompId comp);
  absl::Status LocalizeInstruction(InstrId id);
  void FinishRoot(CompId comp);
  // localize_structural.cc
  void LocalizeParameter(InstrId id, const Decision& d);
  void LocalizeBarrier(InstrId id, const Decision& d);
  void LocalizePassThrough(InstrId id, const Decision& d);
  // Loops, branches and calls.
  void LocalizeControlFlow(InstrId id, const Decision& d);
  std::vector<const Sharding*> RootStates(CompId comp) const;
  // callbacks/localize_callbacks.cc
  absl::Status LocalizeCallbacks(InstrId id, const Decision& d);
  absl::Status VerifyCallbacks();  // of those that used unchecked functions
  // localize_header.cc
  void MakeHeader();

  std::shared_ptr<CallbackMemo> callback_memo_;
  InstrId unverified_;  // the first call whose callback changed the module directly

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
  // Values under other shardings, for the leaves of the current computation, by the leaf's slot;
  // slot -1: none.
  std::vector<CopyList> copies_;
  std::vector<int32_t> copy_slot_;       // by canonical leaf
  std::vector<LeafId> copied_;           // by slot
  std::vector<CompId> computation_map_;  // of the computations that are partitioned
  std::vector<InstrId> caller_;          // by computation: the instruction that calls it
  ControlEdges control_edges_;
  WholeCopies whole_copies_;
  StatedShardings stated_;
  std::unique_ptr<OneDeviceLocalizer> one_device_;
  absl::Status status_;
};

// The operands of `op` with the shapes that the instruction has, tuples reassembled.
LocalIds AssembleOperands(Localizer& l, const LocalOp& op);
// Records `op`, a collective of the input program or its start, of which `result` is a leaf.
void RecordProgramsOwn(Localizer& l, const LocalOp& op, InstrId result);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_LOCALIZER_H_
