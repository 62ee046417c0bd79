// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/call_view.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/convert.h"
#include "shardcall/sharding/convert/mesh_set.h"
#include "shardcall/sharding/rule/sdy_text.h"

namespace shardcall {
namespace {

// Parses `text` on a mesh in a Context of its own, since parsing may cut and name the axes of a
// mesh, and the program's mesh must not change.
absl::StatusOr<ShardingConstraint> Read(Context& context, const BaseMesh& base,
                                        absl::string_view text, int rank) {
  Mesh mesh = DeclaredMesh(base);
  mesh.name = "mesh";
  MeshCollector collector;
  collector.AddBase(mesh);
  if (absl::StartsWith(text, "[")) {
    SHARDCALL_ASSIGN_OR_RETURN(const NamedSharding named,
                               ParseSdySharding(absl::StrCat("#sdy.sharding<@mesh, ", text, ">")));
    collector.AddNamed(mesh);
    SHARDCALL_ASSIGN_OR_RETURN(const MeshSet meshes, collector.Finish(context, base.num_devices()));
    return meshes.FromNamed(named, rank);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const HloSharding hlo, ParseHloSharding(text));
  SHARDCALL_RETURN_IF_ERROR(collector.AddTiling(hlo));
  SHARDCALL_ASSIGN_OR_RETURN(const MeshSet meshes, collector.Finish(context, base.num_devices()));
  return meshes.FromHlo(hlo, rank);
}

bool SameAxes(const BaseMesh& a, const BaseMesh& b) {
  if (a.num_axes() != b.num_axes() || !(a.order() == b.order())) return false;
  for (int i = 0; i < a.num_axes(); ++i) {
    if (a.axis_size(i) != b.axis_size(i)) return false;
  }
  return true;
}

}  // namespace

std::vector<CustomCallView::Axis> CustomCallView::axes() const {
  std::vector<Axis> out;
  for (const BaseMesh::NamedAxis& a : mesh->names()) {
    out.push_back({a.name, AxesSize(a.refs), Overlaps(a.refs, manual_axes), a.refs});
  }
  if (!out.empty()) return out;
  for (int i = 0; i < mesh->num_axes(); ++i) {
    const AxisRef ref = mesh->FullAxis(i);
    out.push_back({absl::StrCat("x", i), mesh->axis_size(i), Overlaps({ref}, manual_axes), {ref}});
  }
  return out;
}

AxisList CustomCallView::free_axes() const { return Complement(*mesh, manual_axes); }

absl::StatusOr<AxisList> CustomCallView::AxesNamed(absl::Span<const std::string> names) const {
  const std::vector<Axis> all = axes();
  AxisList out;
  std::vector<std::string> free;
  for (const Axis& a : all) {
    if (!a.manual) free.push_back(a.name);
  }
  for (const std::string& name : names) {
    const Axis* found = nullptr;
    for (const Axis& a : all) {
      if (a.name == name && !a.manual) found = &a;
    }
    if (found == nullptr || Overlaps(found->refs, out)) {
      return Misfit("an axis is named that cannot be used here, or twice",
                    absl::StrCat("free axes: ", absl::StrJoin(free, ", ")), name);
    }
    out.insert(out.end(), found->refs.begin(), found->refs.end());
  }
  return Canonical(*mesh, out);
}

absl::StatusOr<const Sharding*> CustomCallView::ParseSharding(absl::string_view text,
                                                              int rank) const {
  Context scratch;
  const absl::StatusOr<ShardingConstraint> read = Read(scratch, *mesh, text, rank);
  const std::string found(text);
  if (!read.ok()) {
    return Misfit(absl::StrCat("a sharding cannot be read: ", read.status().message()),
                  "a sharding such as [{\"axis\"}, {}] or {devices=[2,1]<=[2]}", found);
  }
  if (read->maximal_device >= 0 || read->unknown || !SameAxes(*read->mesh, *mesh)) {
    return Misfit("a sharding does not lie on the mesh",
                  absl::StrCat("shards over ", DeclaredMesh(*mesh).axes.size(),
                               " axes: ", SdyMeshText(DeclaredMesh(*mesh))),
                  found);
  }
  ShardingBuilder b(mesh, rank);
  for (int d = 0; d < rank; ++d) b.dims[d] = read->dims[d].axes;
  b.partial = read->unreduced;
  b.partial_op = read->unreduced_op;
  return Checked(b.Intern(*context), nullptr, "a sharding");
}

absl::StatusOr<const Sharding*> CustomCallView::Checked(const Sharding* s, const Shape* shape,
                                                        absl::string_view what) const {
  if (s == nullptr) {
    return Misfit(absl::StrCat(what, " has no sharding"), "a sharding", "null");
  }
  if (shape != nullptr && s->rank() != shape->rank()) {
    return Misfit(absl::StrCat(what, " is given the sharding ", s->ToString()),
                  absl::StrCat("rank ", shape->rank()), absl::StrCat("rank ", s->rank()));
  }
  if (s->mesh() != mesh || s->is_maximal()) {
    return Misfit(absl::StrCat(what, " is given a sharding that does not lie on the call's mesh"),
                  SdyMeshText(DeclaredMesh(*mesh)),
                  s->is_maximal() ? "a single device" : SdyMeshText(DeclaredMesh(*s->mesh())));
  }
  if (manual_axes.empty() || s->manual() == manual_axes) return s;
  ShardingBuilder b(*s);
  b.manual.assign(manual_axes.begin(), manual_axes.end());
  bool clash = Overlaps(s->partial(), manual_axes);
  for (int d = 0; d < s->rank(); ++d) clash = clash || Overlaps(s->dim(d), manual_axes);
  if (clash) {
    return Misfit(absl::StrCat(what, " is given a sharding over manual axes"),
                  "free axes of the mesh alone", s->ToString());
  }
  return b.Intern(*context);
}

absl::Status CustomCallView::Misfit(std::string message, std::string expected,
                                    std::string found) const {
  return ToStatus(
      {.code = "E120",
       .message = absl::StrCat("target \"", target, "\" (%", instruction, "): ", message),
       .expected = std::move(expected),
       .found = std::move(found),
       .fix = "correct the target's callback"});
}

CustomCallView ViewCustomCall(const Module& module, InstrId id, const BaseMesh* mesh,
                              absl::Span<const AxisRef> manual_axes) {
  const Instruction& instr = module.instr(id);
  const auto& attrs = instr.as<CustomCallAttrs>();
  CustomCallView view;
  view.context = &module.context();
  view.target = attrs.target;
  view.instruction = instr.name;
  view.backend_config = instr.backend_config;
  view.frontend = instr.frontend;
  view.api_version = static_cast<int>(attrs.api_version);
  view.has_side_effect = attrs.has_side_effect;
  view.mesh = mesh;
  view.manual_axes = manual_axes;
  std::vector<int> first;  // flat leaf of each operand
  for (InstrId o : module.operands(instr)) {
    const Shape* shape = module.instr(o).shape;
    first.push_back(static_cast<int>(view.operands.size()));
    for (int k = 0; k < shape->num_leaves(); ++k) view.operands.push_back(shape->leaf(k));
  }
  if (attrs.has_layout_constraints) {
    for (const Shape* layout : attrs.operand_layouts) {
      for (int k = 0; k < layout->num_leaves(); ++k) {
        view.operand_layouts.push_back(layout->leaf(k));
      }
    }
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) view.results.push_back(instr.shape->leaf(k));
  std::vector<OutputAlias> aliases;
  ParseOutputAliasing(attrs.output_to_operand_aliasing, &aliases);
  for (const OutputAlias& a : aliases) {
    const Shape* part = PartAt(instr.shape, a.output);
    if (part == nullptr || a.operand < 0 || a.operand >= static_cast<int64_t>(first.size())) {
      continue;
    }
    const int result = FirstLeafAt(instr.shape, a.output);
    const int inner =
        FirstLeafAt(module.instr(module.operand(id, static_cast<int>(a.operand))).shape, a.inner);
    for (int k = 0; inner >= 0 && k < part->num_leaves(); ++k) {
      view.aliases.push_back({result + k, first[a.operand] + inner + k});
    }
  }
  return view;
}

}  // namespace shardcall
