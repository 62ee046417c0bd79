// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/import/export.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/annotations.h"
#include "shardcall/partitioner/import/import_internal.h"
#include "shardcall/partitioner/ir/analysis/needs_first.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/sharding/convert/convert.h"
#include "shardcall/sharding/rule/sdy_text.h"

namespace shardcall {
namespace {

using namespace import_internal;  // NOLINT: names of annotations
class Exporter {
 public:
  Exporter(const Program& program, absl::Span<const Sharding* const> by_leaf,
           const ExportOptions& options)
      : p_(program),
        old_(program.module),
        by_leaf_(by_leaf),
        options_(options),
        out_(program.module.shared_context()),
        cloner_(old_, &out_),
        context_(out_.context()) {}

  absl::StatusOr<Module> Run() {
    CopyHeader();
    for (int c = 0; c < old_.num_computations(); ++c) cloner_.AddComputation(CompId(c));
    out_.set_entry(old_.entry());
    FindSharded();
    for (int n = 0; n < old_.num_instructions(); ++n) {
      const InstrId id(n);
      const Instruction& i = old_.instr(id);
      cloner_.Clone(id);
      if (sharded_[i.computation.value]) SHARDCALL_RETURN_IF_ERROR(Annotate(id));
    }
    for (int c = 0; c < old_.num_computations(); ++c) cloner_.SetRoot(CompId(c));
    for (int k = 0; k < old_.num_instructions(); ++k) AgreeOnRoots(InstrId(k));
    StandAsInTheText();
    return std::move(out_);
  }

 private:
  void StandAsInTheText() {
    if (p_.place.empty()) return;
    std::vector<int32_t> place = p_.place;
    place.resize(out_.num_instructions(), std::numeric_limits<int32_t>::max());  // new roots
    NeedsFirst needs_first(out_);
    for (int c = 0; c < out_.num_computations(); ++c) {
      std::vector<InstrId>& instructions = out_.mutable_comp(CompId(c)).instructions;
      instructions = needs_first.ByPlace(instructions, place);
    }
  }

  void CopyHeader() {
    cloner_.CopyHeader();
    if (!options_.keep_propagation_flags) {
      out_.header.propagate_to_parameters = {false};
      out_.header.propagate_to_output = {false};
    }
    std::vector<Mesh> meshes;
    for (const BaseMesh* base : p_.meshes) {
      if (base->num_axes() == 0) continue;
      Mesh mesh;
      mesh.name = absl::StrCat("base_", meshes.size());
      for (int k = 0; k < base->num_axes(); ++k) {
        mesh.axes.push_back({absl::StrCat("x", k), base->axis_size(k)});
      }
      mesh.order = base->order();
      meshes.push_back(std::move(mesh));
    }
    if (meshes.empty()) return;
    const std::string text = SdyMeshesText(meshes);
    out_.header.frontend = WithAttribute(context_, old_.header.frontend, kBaseMeshes, text);
  }

  // Computations whose values are sharded: the entry, loop bodies, branches,
  // calls; not reducers and comparators.
  void FindSharded() {
    sharded_.assign(old_.num_computations(), false);
    sharded_[old_.entry().value] = true;
    for (int c = 0; c < old_.num_computations(); ++c) {  // callers come first
      if (!sharded_[c]) continue;
      for (InstrId id : old_.comp(CompId(c)).instructions) {
        const Instruction& i = old_.instr(id);
        if (!HasTrait(i.opcode, kControlFlow)) continue;
        for (CompId callee : CalledComputations(old_, i)) sharded_[callee.value] = true;
      }
    }
  }

  // The result of a body or branch may be sharded otherwise than the caller's result, but HLO
  // requires the two annotations to be equal. For a tuple the root's annotation is dropped, since
  // its elements have their own; another value gets an annotation op with the caller's sharding.
  void AgreeOnRoots(InstrId id) {
    const Opcode opcode = out_.instr(id).opcode;
    if (opcode != Opcode::kWhile && opcode != Opcode::kConditional) return;
    const auto callees = CalledComputations(out_, out_.instr(id));
    for (CompId callee : callees) {
      const Instruction& caller = out_.instr(id);
      const InstrId root = out_.comp(callee).root;
      if (out_.instr(root).sharding == caller.sharding || caller.sharding == nullptr) continue;
      if (out_.instr(root).shape->IsTuple()) {
        out_.mutable_instr(root).sharding = nullptr;
        continue;
      }
      // The root of a loop's condition has another shape, and keeps its annotation.
      if (out_.instr(root).shape != caller.shape) continue;
      const Instruction annotation = ShardingCallLike(context_, caller);
      out_.SetRoot(callee, out_.Add(callee, annotation, absl::MakeConstSpan(&root, 1)));
    }
  }

  absl::Status Annotate(InstrId id) {
    Instruction& i = out_.mutable_instr(id);
    const int leaves = i.shape->num_leaves();
    const AnnotationKind kind = p_.annotation[id.value];
    if (leaves == 0) return absl::OkStatus();
    if ((kind == AnnotationKind::kIdentity || kind == AnnotationKind::kManualBoundary) &&
        absl::StrContains(i.backend_config, "unspecified_dims")) {
      i.backend_config = {};
    }
    SHARDCALL_RETURN_IF_ERROR(SetSharding(id, &i));
    if (const auto it = p_.boundaries.find(id);
        it != p_.boundaries.end() && !Attribute(i, kSdyManualAxes).empty()) {
      return SetBoundary(id, it->second, &i);
    }
    // A value whose leaves are aliases is annotated where they are made.
    const bool alias = p_.leaves.canonical(id) != p_.leaves.leaf(id);
    if (p_.uses_shardy && !alias && kind != AnnotationKind::kManualBoundary) {
      return SetShardy(id, &i);
    }
    return absl::OkStatus();
  }

  absl::Status SetSharding(InstrId id, Instruction* i) {
    const int leaves = i->shape->num_leaves();
    if (!i->shape->IsTuple()) {
      const Sharding* s = by_leaf_[p_.leaves.leaf(id).value];
      if (s == nullptr) return absl::OkStatus();
      SHARDCALL_ASSIGN_OR_RETURN(const HloSharding* text, Text(s));
      i->sharding = text;
      return absl::OkStatus();
    }
    HloSharding list;
    list.kind = HloSharding::Kind::kTuple;
    for (int k = 0; k < leaves; ++k) {
      const Sharding* s = by_leaf_[p_.leaves.leaf(id, k).value];
      if (s == nullptr) {
        list.tuple.emplace_back();  // replicated
        continue;
      }
      SHARDCALL_ASSIGN_OR_RETURN(const HloSharding* text, Text(s));
      list.tuple.push_back(*text);
    }
    i->sharding = InternHloSharding(context_, std::move(list));
    return absl::OkStatus();
  }

  absl::StatusOr<const HloSharding*> Text(const Sharding* s) {
    const HloSharding*& known = texts_[s];
    if (known != nullptr) return known;
    const bool sum = s->partial().empty() || s->partial_op() == PartialOp::kSum;
    // Tiles are read onto the first base mesh that they fit, which may be another one; names keep
    // the mesh.
    const bool other_mesh = p_.meshes.size() > 1 && s->mesh() != p_.mesh;
    absl::StatusOr<HloSharding> made =
        options_.named || !sum || other_mesh ? ToHloShardingV3(*s) : ToHloSharding(*s);
    if (!made.ok()) return made.status();
    // Use names also where the device list is not that of the mesh, because it has another order
    // of axes or is sorted within subgroups.
    const DeviceOrder& order = s->mesh()->order();
    if (made->is_list() && (order.is_iota() || order.list() != made->list)) {
      SHARDCALL_ASSIGN_OR_RETURN(made, ToHloShardingV3(*s));
    }
    return known = InternHloSharding(context_, *std::move(made));
  }

  // Shardy's attributes name free axes only; `more_major` axes go before those of each dimension.
  absl::StatusOr<NamedSharding> Named(const Sharding& s, const std::vector<AxisList>* more_major,
                                      const ManualBoundary::Partial* partial = nullptr) {
    ShardingBuilder b(s);
    b.manual.clear();
    if (partial != nullptr && !partial->axes.empty()) {
      b.partial.insert(b.partial.end(), partial->axes.begin(), partial->axes.end());
      b.partial_op = partial->op;
    }
    for (size_t d = 0; more_major != nullptr && d < b.dims.size(); ++d) {
      b.dims[d].insert(b.dims[d].begin(), (*more_major)[d].begin(), (*more_major)[d].end());
    }
    return ToNamedSharding(*b.Intern(context_), /*inline_mesh=*/!p_.uses_shardy);
  }

  NamedSharding Nothing() const {
    ShardingBuilder b(p_.mesh, 0);
    return *ToNamedSharding(*b.Intern(context_), !p_.uses_shardy);
  }

  absl::Status SetShardy(InstrId id, Instruction* i) {
    std::vector<NamedSharding> list;
    for (int k = 0; k < i->shape->num_leaves(); ++k) {
      const Sharding* s = by_leaf_[p_.leaves.leaf(id, k).value];
      if (s == nullptr) {
        list.push_back(Nothing());
        continue;
      }
      SHARDCALL_ASSIGN_OR_RETURN(NamedSharding named, Named(*s, nullptr));
      list.push_back(std::move(named));
    }
    const std::string text = i->opcode == Opcode::kParameter && list.size() == 1
                                 ? SdyShardingText(list[0])
                                 : SdyShardingPerValueText(list);
    i->frontend = WithAttribute(context_, i->frontend, kSdySharding, text);
    return absl::OkStatus();
  }

  absl::Status SetBoundary(InstrId id, const ManualBoundary& boundary, Instruction* i) {
    std::vector<NamedSharding> list;
    for (int k = 0; k < i->shape->num_leaves(); ++k) {
      const Sharding* s = by_leaf_[p_.leaves.leaf(id, k).value];
      if (s == nullptr) {
        list.push_back(Nothing());
        continue;
      }
      SHARDCALL_ASSIGN_OR_RETURN(NamedSharding named,
                                 Named(*s, boundary.entry ? &boundary.manual_dims[k] : nullptr,
                                       boundary.entry ? &boundary.manual_partial[k] : nullptr));
      list.push_back(std::move(named));
    }
    const std::string text = SdyShardingPerValueText(list);
    i->frontend = WithAttribute(context_, i->frontend,
                                boundary.entry ? kSdyInShardings : kSdyOutShardings, text);
    return absl::OkStatus();
  }

  const Program& p_;
  const Module& old_;
  absl::Span<const Sharding* const> by_leaf_;
  const ExportOptions options_;
  Module out_;
  ModuleCloner cloner_;
  Context& context_;
  std::vector<bool> sharded_;
  absl::flat_hash_map<const Sharding*, const HloSharding*> texts_;
};

}  // namespace

absl::StatusOr<Module> ExportShardings(const Program& program,
                                       absl::Span<const Sharding* const> by_leaf,
                                       const ExportOptions& options) {
  SHARDCALL_CHECK(static_cast<int>(by_leaf.size()) == program.leaves.num_leaves());
  return Exporter(program, by_leaf, options).Run();
}

const FrontendAttributes* WithoutSdy(Context& context, const FrontendAttributes* attributes) {
  return WithoutAttributes(context, attributes, [](absl::string_view key) {
    return absl::StartsWith(key, kSdyPrefix) || absl::StartsWith(key, "shardcall.");
  });
}

}  // namespace shardcall
