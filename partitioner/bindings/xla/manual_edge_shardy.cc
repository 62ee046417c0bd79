// SPDX-License-Identifier: Apache-2.0
// The form in which JAX lowers a shard_map over all axes for Shardy: `xla.sdy.GlobalToLocalShape`,
// a call of `xla.sdy.manual_computation_body`, `xla.sdy.LocalToGlobalShape`.
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/bindings/xla/manual_edge.h"
#include "shardcall/partitioner/import/annotations.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert.h"
#include "shardcall/sharding/rule/sdy_text.h"

namespace shardcall::inline internal {
namespace {

using import_internal::WithAttribute;
using States = absl::Span<const LocalState* const>;

class ShardyEdge : public ManualEdge {
 public:
  ShardyEdge(const LocalProgram& local, const BaseMesh* base)
      : local_(local), context_(local.module.context()) {
    if (base == nullptr) return;
    mesh_ = DeclaredMesh(*base);
    if (mesh_.name.empty()) mesh_.name = "mesh";
  }

  absl::Status Start(CompId body, Module* module) override {
    module->mutable_comp(body).name = context_.Intern(kSdyManualBody);
    module->header.frontend = WithAttribute(context_, WithoutSdy(context_, module->header.frontend),
                                            kSdyMeshes, SdyMeshesText({mesh_}));
    return absl::OkStatus();
  }

  absl::StatusOr<Ids> Enter(absl::Span<const InstrId> wholes, absl::Span<const Shape* const> shards,
                            GraphBuilder* b) override {
    Ids entering(wholes.begin(), wholes.end());
    for (size_t k = 0; k < wholes.size(); ++k) {
      if (local_.parameters[k] == nullptr) continue;
      SHARDCALL_ASSIGN_OR_RETURN(const NamedSharding named, Named(local_.parameters[k]));
      Say(kSdySharding, SdyShardingText(named), wholes[k], b);
      if (named.unreduced.empty()) continue;
      // Shardy refuses a computation that reduces an operand, unless a constraint stands before it.
      entering[k] =
          Call(KnownTarget::kSharding, {wholes[k]}, b->module().instr(wholes[k]).shape, b);
      Say(kSdySharding, SdyShardingPerValueText({named}), entering[k], b);
    }
    return Cross(KnownTarget::kGlobalToLocal, kSdyInShardings, entering, local_.parameters, shards,
                 b);
  }

  absl::StatusOr<Ids> Leave(absl::Span<const InstrId> shards, absl::Span<const Shape* const> wholes,
                            GraphBuilder* b) override {
    SHARDCALL_ASSIGN_OR_RETURN(Ids results, Cross(KnownTarget::kLocalToGlobal, kSdyOutShardings,
                                                  shards, local_.outputs, wholes, b));
    for (size_t k = 0; k < results.size(); ++k) {
      if (local_.outputs[k] == nullptr) continue;
      // Annotate the result too; otherwise XLA takes an unreduced one as reduced.
      SHARDCALL_ASSIGN_OR_RETURN(const NamedSharding named, Named(local_.outputs[k]));
      results[k] = Call(KnownTarget::kFuncResult, {results[k]}, wholes[k], b);
      Say(kSdySharding, SdyShardingPerValueText({named}), results[k], b);
    }
    return results;
  }

 private:
  InstrId Call(KnownTarget target, absl::Span<const InstrId> operands, const Shape* shape,
               GraphBuilder* b) {
    CustomCallAttrs attrs;
    attrs.target = KnownTargetText(target);
    attrs.has_side_effect = true;
    return b->CustomCall(attrs, operands, shape);
  }
  void Say(absl::string_view key, absl::string_view text, InstrId id, GraphBuilder* b) {
    Instruction& instr = b->module().mutable_instr(id);
    instr.frontend = WithAttribute(context_, instr.frontend, key, text);
  }
  // The sharding of a value, or of a token if `state` is null.
  absl::StatusOr<NamedSharding> Named(const LocalState* state) {
    const Sharding* sharding = state == nullptr ? nullptr : state->sharding;
    const auto [it, added] = named_.try_emplace(sharding);
    if (added) {
      if (sharding != nullptr) {
        SHARDCALL_ASSIGN_OR_RETURN(it->second, ToNamedSharding(*sharding, /*inline_mesh=*/false));
      }
      it->second.mesh_name = mesh_.name;
    }
    return it->second;
  }
  absl::StatusOr<Ids> Cross(KnownTarget target, absl::string_view key,
                            absl::Span<const InstrId> from, States states,
                            absl::Span<const Shape* const> shapes, GraphBuilder* b) {
    if (from.empty()) return Ids();
    std::vector<NamedSharding> shardings;
    for (const LocalState* state : states) {
      SHARDCALL_ASSIGN_OR_RETURN(NamedSharding named, Named(state));
      shardings.push_back(std::move(named));
    }
    const bool one = shapes.size() == 1;
    const InstrId made = Call(target, from, one ? shapes[0] : context_.MakeTuple(shapes), b);
    std::vector<std::string> axes;
    for (const MeshAxis& axis : mesh_.axes) axes.push_back(axis.name);
    Say(kSdyManualAxes, SdyManualAxesText(axes), made, b);
    Say(key, SdyShardingPerValueText(shardings), made, b);
    if (one) return Ids{made};
    Ids to;
    for (size_t k = 0; k < shapes.size(); ++k) to.push_back(b->GetTupleElement(made, k));
    return to;
  }

  const LocalProgram& local_;
  Context& context_;
  Mesh mesh_;
  absl::flat_hash_map<const Sharding*, NamedSharding> named_;  // shardings are interned
};

}  // namespace

std::unique_ptr<ManualEdge> MakeShardyEdge(const LocalProgram& local) {
  if (local.outputs.empty()) return nullptr;  // XLA's reader crashes on no results
  const BaseMesh *any = nullptr, *only = nullptr;
  for (const States states : {States(local.parameters), States(local.outputs)}) {
    for (const LocalState* s : states) {
      if (s == nullptr) continue;
      any = s->sharding->mesh();
      if (s->sharding->IsReplicated()) continue;  // the same on any mesh
      if (only != nullptr && only != any) return nullptr;
      only = any;
    }
  }
  return std::make_unique<ShardyEdge>(local, only != nullptr ? only : any);
}

}  // namespace shardcall::inline internal
