// SPDX-License-Identifier: Apache-2.0
// The form in which JAX lowers a shard_map over all axes for Shardy: `xla.sdy.GlobalToLocalShape`,
// a call of `xla.sdy.manual_computation_body`, `xla.sdy.LocalToGlobalShape`.
//
// XLA of jaxlib 0.12 takes any unreduced value that leaves a manual computation for a sum. One that
// is unreduced by a maximum or a minimum leaves it with a leading dimension over its unreduced
// axes, and is reduced over that outside, by each device alone, to a value that a constraint says
// to be unreduced.
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/bindings/xla/manual_edge.h"
#include "shardcall/partitioner/import/annotations.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/convert.h"
#include "shardcall/sharding/rule/sdy_text.h"

namespace shardcall {
inline namespace internal {
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
    AddLeadingDims(body, module);
    module->header.frontend = WithAttribute(context_, WithoutSdy(context_, module->header.frontend),
                                            kSdyMeshes, SdyMeshesText({mesh_}));
    return absl::OkStatus();
  }

  absl::StatusOr<Ids> Enter(absl::Span<const InstrId> wholes, absl::Span<const Shape* const> shards,
                            GraphBuilder* b) override {
    Ids entering(wholes.begin(), wholes.end());
    std::vector<NamedSharding> shardings;
    for (size_t k = 0; k < wholes.size(); ++k) {
      SHARDCALL_ASSIGN_OR_RETURN(const NamedSharding named, Named(local_.parameters[k]));
      shardings.push_back(named);
      if (local_.parameters[k] == nullptr) continue;
      Say(kSdySharding, SdyShardingText(named), wholes[k], b);
      if (named.unreduced.empty()) continue;
      // Shardy refuses a computation that reduces an operand, unless a constraint stands before it.
      entering[k] =
          Call(KnownTarget::kSharding, {wholes[k]}, b->module().instr(wholes[k]).shape, b);
      Say(kSdySharding, SdyShardingPerValueText({named}), entering[k], b);
    }
    return Cross(KnownTarget::kGlobalToLocal, kSdyInShardings, entering, shardings, shards, b);
  }

  absl::StatusOr<Ids> Leave(absl::Span<const InstrId> shards, absl::Span<const Shape* const> wholes,
                            GraphBuilder* b) override {
    std::vector<NamedSharding> shardings;
    std::vector<const Shape*> shapes(wholes.begin(), wholes.end());
    for (size_t k = 0; k < wholes.size(); ++k) {
      SHARDCALL_ASSIGN_OR_RETURN(NamedSharding named, Named(local_.outputs[k]));
      if (LeavesStacked(k)) {
        named.dims.insert(named.dims.begin(), {.axes = std::exchange(named.unreduced, {})});
        named.unreduced_op = PartialOp::kSum;
        shapes[k] = Stacked(wholes[k], AxesSize(local_.outputs[k]->sharding->partial()));
      }
      shardings.push_back(std::move(named));
    }
    Ids results =
        Cross(KnownTarget::kLocalToGlobal, kSdyOutShardings, shards, shardings, shapes, b);
    for (size_t k = 0; k < results.size(); ++k) {
      if (local_.outputs[k] == nullptr) continue;
      SHARDCALL_ASSIGN_OR_RETURN(const NamedSharding named, Named(local_.outputs[k]));
      if (LeavesStacked(k)) {
        const Opcode op = MonoidOf(local_.outputs[k]->sharding->partial_op());
        results[k] = b->Reduce(results[k], b->Identity(op, wholes[k]->element_type()), {0}, op);
        // Only a constraint may leave unreduced what is sharded.
        results[k] = Call(KnownTarget::kSharding, {results[k]}, wholes[k], b);
        Say(kSdySharding, SdyShardingPerValueText({named}), results[k], b);
      }
      // Annotate the result too; otherwise XLA takes an unreduced one as reduced.
      results[k] = Call(KnownTarget::kFuncResult, {results[k]}, wholes[k], b);
      Say(kSdySharding, SdyShardingPerValueText({named}), results[k], b);
    }
    return results;
  }

 private:
  // Whether result `k` leaves with a leading dimension, as said above.
  bool LeavesStacked(size_t k) const {
    const LocalState* state = local_.outputs[k];
    return state != nullptr && !state->sharding->partial().empty() &&
           state->sharding->partial_op() != PartialOp::kSum;
  }
  const Shape* Stacked(const Shape* shape, int64_t count) {
    std::vector<int64_t> dims = {count};
    dims.insert(dims.end(), shape->dims().begin(), shape->dims().end());
    return context_.MakeArray(shape->element_type(), dims);
  }
  // Of the results of the body that leave so.
  void AddLeadingDims(CompId body, Module* module) {
    size_t first = 0;
    while (first < local_.outputs.size() && !LeavesStacked(first)) ++first;
    if (first == local_.outputs.size()) return;
    MonoidTable monoids(module);
    GraphBuilder b(module, body, &monoids);
    const InstrId root = module->comp(body).root;
    const bool tuple = module->instr(root).shape->IsTuple();
    Ids leaves;
    for (size_t k = 0; k < local_.outputs.size(); ++k) {
      leaves.push_back(tuple ? b.GetTupleElement(root, static_cast<int64_t>(k)) : root);
      if (!LeavesStacked(k)) continue;
      leaves[k] = b.Reshape(leaves[k], Stacked(b.shape(leaves[k]), 1)->dims());
    }
    b.SetRoot(tuple ? b.Tuple(leaves) : leaves[0]);
  }

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
  Ids Cross(KnownTarget target, absl::string_view key, absl::Span<const InstrId> from,
            absl::Span<const NamedSharding> shardings, absl::Span<const Shape* const> shapes,
            GraphBuilder* b) {
    if (from.empty()) return Ids();
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

}  // namespace internal
}  // namespace shardcall
