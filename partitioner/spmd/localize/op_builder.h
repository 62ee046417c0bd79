// SPDX-License-Identifier: Apache-2.0
// What an op is emitted with: the shards of its operands, the builder and the collectives of the
// local program, copies of the op and of what it calls. Strategies, the bodies and the callbacks of
// custom calls have this one vocabulary. It knows nothing of the traversal, so a plan can let a
// body build in a module of its own to see what it sends.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_OP_BUILDER_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_OP_BUILDER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/ir/analysis/read_rows.h"
#include "shardcall/partitioner/rules/op_rules.h"
#include "shardcall/partitioner/spmd/localize/emitter.h"
#include "shardcall/partitioner/spmd/localize/whole_copies.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {

// The source of an operand, as it was planned; no shape where there is none.
struct LocalSource {
  Source source;
  InstrId value;  // its shard
  InstrId fill;   // the padding value of an operand that is padded
};
using LocalSources = absl::InlinedVector<LocalSource, 3>;

// The input of a strategy: the op, its decision, and its operands' shards, resharded and exchanged
// as the decision asks.
struct LocalOp {
  InstrId id;  // in the global module
  const Instruction& instr;
  const Decision& decision;
  LocalIds operands;                                    // flat leaves
  absl::InlinedVector<const Shape*, 6> operand_shapes;  // global
  absl::InlinedVector<const Shape*, 4> result_shapes;   // local, flat
  LocalSources sources = {};                            // by operand, for strategies that read them
};

class OpBuilder {
 public:
  // Adds to `local`, a module in the context of the program. All outlive the builder.
  OpBuilder(const Program& program, RuleTable& rules, const SpmdOptions& options, Module* local);
  OpBuilder(const OpBuilder&) = delete;
  OpBuilder& operator=(const OpBuilder&) = delete;

  const Program& program() const { return program_; }
  const Module& global() const { return program_.module; }
  Module& local() { return local_; }
  Context& context() const { return program_.module.context(); }
  RuleTable& rules() { return rules_; }
  Emitter& emitter() { return *emitter_; }
  GraphBuilder& builder() { return emitter_->builder(); }
  Emitter::Shared& shared() { return shared_; }
  const std::vector<CollectiveRecord>& records() const { return shared_.records; }

  // From here on all is added to this computation of the local module.
  void StartComputation(CompId computation);

  // What is built is of no use after a failure; the first one is kept.
  void Fail(absl::Status status) { status_.Update(std::move(status)); }
  const absl::Status& status() const { return status_; }
  // The body or callback of this call changed the module directly: all is to be verified.
  void NoteUnverified(InstrId call) {
    if (!unverified_.valid()) unverified_ = call;
  }
  InstrId unverified() const { return unverified_; }  // the first one
  // E210 if `what` moves more than --max-reshard-bytes.
  void CheckBytes(double bytes, absl::FunctionRef<std::string()> what);

  // A value that the body or the callback of the custom call in `cause` reshards.
  InstrId ReshardInCall(const CollectiveCause& cause, InstrId x, const Shape* global,
                        const Sharding* from, const Sharding* to);

  // Elements of a local tuple (or the value itself) as flat leaves, and back.
  LocalIds Flatten(InstrId value);
  InstrId Assemble(const Shape* global_shape, absl::Span<const InstrId> leaves);
  // The shape with the tuple structure of `like` and these leaves.
  const Shape* ShapeFromLeaves(const Shape* like, absl::Span<const Shape* const> leaves);

  // A copy of the op on local operands: same attributes (or `attrs`), metadata, and frontend
  // attributes except sharding annotations. Its shape consists of op.result_shapes. Returns its
  // flat results.
  LocalIds Clone(const LocalOp& op, absl::Span<const InstrId> operands,
                 const Attributes* attrs = nullptr);
  // The local copy of a computation that runs whole: that of a reduce or sort, or of an op that
  // one device runs.
  CompId CopyComputation(CompId global) { return whole_copies_.Of(global); }
  // The rows that are read of a sort of the global module, or null.
  const ReadRows* RowsRead(InstrId sort);
  // A computation with one parameter; `make` gets the parameter's leaves.
  CompId AddBranch(absl::string_view name, const Shape* parameter,
                   absl::FunctionRef<LocalIds(const LocalIds&)> make);

 private:
  const Attributes* LocalAttributes(const LocalOp& op);

  const Program& program_;
  RuleTable& rules_;
  const SpmdOptions& options_;
  Module& local_;
  Emitter::Shared shared_;
  std::unique_ptr<Emitter> emitter_;
  WholeCopies whole_copies_;
  absl::Status status_;
  InstrId unverified_;
  std::optional<absl::flat_hash_map<InstrId, ReadRows>> read_rows_;  // found when asked for
};

// The operands of `op` with the shapes that the instruction has, tuples reassembled.
LocalIds AssembleOperands(OpBuilder& ops, const LocalOp& op);
// Records `op`, a collective of the input program or its start, of which `result` is a leaf.
void RecordProgramsOwn(OpBuilder& ops, const LocalOp& op, InstrId result);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_OP_BUILDER_H_
