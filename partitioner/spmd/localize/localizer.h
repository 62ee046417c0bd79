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
#include "shardcall/partitioner/spmd/localize/control_edges.h"
#include "shardcall/partitioner/spmd/localize/localize.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/localize/stated_shardings.h"
#include "shardcall/partitioner/spmd/localize/text_order.h"

namespace shardcall {
inline namespace internal {

struct CallbackMemo;       // callback_memo.h
class OneDeviceLocalizer;  // one_device.h

// What one device runs, feeds and control edges are classes beside it.
class Localizer {
 public:
  Localizer(const Program& program, const Plan& plan, RuleTable& rules, const SpmdOptions& options);
  ~Localizer();
  absl::StatusOr<LocalProgram> Run();

  const Plan& plan() const { return plan_; }
  OpBuilder& ops() { return ops_; }

  // The shard of a leaf under `to` for an op; resharded on first use, then kept.
  InstrId Get(InstrId id, int flat, const Sharding* to, const CollectiveCause& cause);
  // The stored value of a leaf, and its sharding.
  std::pair<InstrId, const Sharding*> Stored(InstrId id, int flat) const;
  void Store(InstrId id, int flat, InstrId value, const Sharding* state);
  // Stores the results of an op, resharded to decision.final.
  void StoreResults(InstrId id, const Decision& d, absl::Span<const InstrId> produced);

  const Shape* LocalShapeOf(const Shape* global, absl::Span<const Sharding* const> states);

  CompId LocalComputation(CompId global) const { return computation_map_[global.value]; }

 private:
  struct Value {
    InstrId id;
    const Sharding* state = nullptr;
  };
  using CopyList = absl::InlinedVector<Value, 3>;
  // The leaf's value under other shardings, in order of creation; null if there are none.
  const CopyList* CopiesOf(LeafId canonical) const;
  // The part of a generated value that `to` gives this device. `leaf` is the value's, or that of an
  // annotation of it.
  InstrId Generate(LeafId leaf, const Sharding* to);
  void AddCopy(LeafId canonical, InstrId id, const Sharding* state);
  // Get without a common copy that the plan may have for the ops that read the leaf.
  InstrId GetFromCopies(InstrId id, int flat, const Sharding* to, const CollectiveCause& cause);
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

  GraphBuilder& builder() { return ops_.builder(); }
  Emitter& emitter() { return ops_.emitter(); }
  Module& local() { return result_.module; }
  // What the operands of `id` are made of, as far as a strategy may read through them.
  LocalSources SourcesOf(InstrId id) const;

  absl::Status LocalizeComputation(CompId comp);
  absl::Status LocalizeInstruction(InstrId id);
  void FinishRoot(CompId comp);
  // localize_structural.cc
  void LocalizeParameter(InstrId id, const Decision& d);
  void LocalizeBarrier(InstrId id, const Decision& d);
  void LocalizePassThrough(InstrId id, const Decision& d);
  void LocalizeEqual(InstrId id, const Decision& d);
  // Lets result k of `id`, which is stored as `state`, have what there is of leaf k of `from`, the
  // same value.
  void TakeCopies(InstrId id, InstrId from, int k, const Sharding* state);
  void AddCopiesAcross(InstrId id, const Decision& d);
  // Loops, branches and calls.
  void LocalizeControlFlow(InstrId id, const Decision& d);
  std::vector<const Sharding*> RootStates(CompId comp) const;
  // callbacks/localize_callbacks.cc
  absl::Status LocalizeCallbacks(InstrId id, const Decision& d);
  absl::Status VerifyCallbacks();  // of those that used unchecked functions
  // localize_header.cc
  void MakeHeader();

  std::shared_ptr<CallbackMemo> callback_memo_;

  const Program& program_;
  const Plan& plan_;
  const Module& global_;
  const LeafTable& leaves_;
  Context& context_;
  LocalProgram result_;
  OpBuilder ops_;
  std::vector<Value> values_;  // by canonical leaf
  // Values under other shardings, for the leaves of the current computation, by the leaf's slot;
  // slot -1: none.
  std::vector<CopyList> copies_;
  std::vector<int32_t> copy_slot_;       // by canonical leaf
  std::vector<LeafId> copied_;           // by slot
  std::vector<bool> generated_;          // by instruction
  std::vector<CompId> computation_map_;  // of the computations that are partitioned
  std::vector<InstrId> caller_;          // by computation: the instruction that calls it
  ControlEdges control_edges_;
  TextOrder text_order_;
  StatedShardings stated_;
  std::unique_ptr<OneDeviceLocalizer> one_device_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_LOCALIZER_H_
