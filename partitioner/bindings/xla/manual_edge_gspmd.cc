// SPDX-License-Identifier: Apache-2.0
// The form in which JAX lowers a shard_map for GSPMD: `Sharding` and `SPMDFullToShardShape`, then
// the body, whose arrays are {manual}, then `Sharding` and `SPMDShardToFullShape`.
#include "shardcall/partitioner/bindings/xla/framework_program.h"
#include "shardcall/partitioner/bindings/xla/manual_edge.h"
#include "shardcall/partitioner/import/import_internal.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

using namespace import_internal;  // NOLINT: names of annotations

class GspmdEdge : public ManualEdge {
 public:
  explicit GspmdEdge(const LocalProgram& local) : local_(local), context_(local.module.context()) {}

  absl::Status Start(CompId, Module* module) override {
    SHARDCALL_ASSIGN_OR_RETURN(held_, ShardingsHeld(local_));
    for (int id = 0; id < module->num_instructions(); ++id) {
      // Tuples get no sharding: converters drop elements but would keep their shardings.
      if (module->instr(InstrId(id)).shape->IsArray()) SetManual(InstrId(id), module);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Ids> Enter(absl::Span<const InstrId> wholes, absl::Span<const Shape* const> shards,
                            GraphBuilder* b) override {
    Ids out(wholes.begin(), wholes.end());
    for (size_t k = 0; k < wholes.size(); ++k) {
      if (local_.parameters[k] == nullptr) continue;
      Set(held_.parameters[k], wholes[k], &b->module());
      const InstrId placed = Call(KnownTarget::kSharding, wholes[k], b->shape(wholes[k]), b);
      Set(held_.parameters[k], placed, &b->module());
      out[k] = Call(KnownTarget::kFullToShard, placed, shards[k], b);
      SetManual(out[k], &b->module());
    }
    return out;
  }

  absl::StatusOr<Ids> Leave(absl::Span<const InstrId> shards, absl::Span<const Shape* const> wholes,
                            GraphBuilder* b) override {
    Ids out(shards.begin(), shards.end());
    const bool many = held_.result.kind == HloSharding::Kind::kTuple;
    for (size_t k = 0; k < shards.size(); ++k) {
      if (local_.outputs[k] == nullptr) continue;
      SetManual(shards[k], &b->module());
      const InstrId placed = Call(KnownTarget::kSharding, shards[k], b->shape(shards[k]), b);
      SetManual(placed, &b->module());
      out[k] = Call(KnownTarget::kShardToFull, placed, wholes[k], b);
      Set(many ? held_.result.tuple[k] : held_.result, out[k], &b->module());
    }
    return out;
  }

 private:
  InstrId Call(KnownTarget target, InstrId operand, const Shape* shape, GraphBuilder* b) {
    CustomCallAttrs attrs;
    attrs.target = KnownTargetText(target);
    return b->CustomCall(attrs, {operand}, shape);
  }
  void Set(const HloSharding& sharding, InstrId id, Module* module) {
    module->mutable_instr(id).sharding = InternHloSharding(context_, sharding);
  }
  void SetManual(InstrId id, Module* module) {
    Set(HloSharding{.kind = HloSharding::Kind::kManual}, id, module);
  }

  const LocalProgram& local_;
  Context& context_;
  HeldShardings held_;
};

}  // namespace

std::unique_ptr<ManualEdge> MakeGspmdEdge(const LocalProgram& local) {
  return std::make_unique<GspmdEdge>(local);
}

}  // namespace internal
}  // namespace shardcall
