// SPDX-License-Identifier: Apache-2.0
// Entering and leaving manual regions in the global mode, in which every device holds whole arrays
// outside of them. Over the mesh data=4, model=2, an array [16,8] that enters with dimension 1 over
// "model" becomes this device's [16,4]; one that leaves is all-gathered from the devices that
// differ in "model". Axes that are not manual do not shard anything: their dimensions stay whole.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/analysis/manual_boundary.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/reduce_kind.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/mesh_set.h"
#include "shardcall/sharding/rule/sdy_text.h"

namespace shardcall {
inline namespace internal {
namespace {

struct ManualLeaf {
  Dims shards;                           // per dimension
  std::vector<Dims> coordinates;         // per device: its shard in each dimension
  std::vector<std::vector<int>> groups;  // per device: the devices that hold all shards, row-major
  std::vector<std::vector<int>> parts;   // per device: over unreduced axes; may be empty
  PartialOp op = PartialOp::kSum;        // what combines the parts
  std::string identity;                  // one element
};

struct ManualData : OpData {
  bool enters = false;
  std::vector<ManualLeaf> leaves;
};

absl::Status Enter(StepRun& run, const ManualLeaf& leaf, int k) {
  const Tensor& in = run.in(k);
  Tensor out = run.NewResult(k);
  // Over unreduced axes the first device gets the whole value, and the others the identity.
  const std::vector<int>& parts = leaf.parts[run.device().device];
  if (parts.size() > 1 && parts[0] != run.device().device) {
    FillElements(out.element_bytes(), leaf.identity.data(), out.MutableData(), out.num_elements());
    run.Set(k, std::move(out));
    return absl::OkStatus();
  }
  const Dims strides = RowMajorStrides(in.dims());
  int64_t offset = 0;
  for (int d = 0; d < in.rank(); ++d) {
    offset += leaf.coordinates[run.device().device][d] * out.dim(d) * strides[d];
  }
  CopyStrided(in.element_bytes(), out.dims(), in.data() + offset * in.element_bytes(), strides,
              out.MutableData(), RowMajorStrides(out.dims()));
  run.Set(k, std::move(out));
  return absl::OkStatus();
}

absl::Status Leave(StepRun& run, const ManualLeaf& leaf, int k) {
  Tensor t = run.Take(k);
  Communicator* comm = run.device().comm;
  const std::vector<int>& parts = leaf.parts[run.device().device];
  const std::vector<int>& group = leaf.groups[run.device().device];
  if ((parts.size() > 1 || group.size() > 1) && comm == nullptr) {
    return run.Error("E312", "a manual region over several devices, but the run has one");
  }
  if (parts.size() > 1) {
    Tensor total(t.type(), t.dims());
    SHARDCALL_RETURN_IF_ERROR(comm->AllReduce(parts, ReduceKindOf(leaf.op, t.type()), t.type(),
                                              t.data(), total.MutableData(), t.num_elements(),
                                              {run.step().name}));
    t = std::move(total);
  }
  if (group.size() > 1) {
    // [n0, n1, .., l0, l1, ..] to [n0, l0, n1, l1, ..].
    Dims dims = leaf.shards, perm;
    dims.insert(dims.end(), t.dims().begin(), t.dims().end());
    for (int d = 0; d < t.rank(); ++d) {
      perm.push_back(d);
      perm.push_back(t.rank() + d);
    }
    Tensor all(t.type(), dims);
    SHARDCALL_RETURN_IF_ERROR(
        comm->AllGather(group, t.data(), all.MutableData(), t.byte_size(), {run.step().name}));
    t = Transpose(all, perm);
  }
  run.Set(k, std::move(t));
  return absl::OkStatus();
}

absl::Status RunBoundary(StepRun& run) {
  const auto& data = run.data<ManualData>();
  for (int k = 0; k < run.num_results(); ++k) {
    if (!IsArrayType(run.shape(k).type)) {
      run.Set(k, run.Take(k));
      continue;
    }
    if (run.device().num_devices != static_cast<int>(data.leaves[k].coordinates.size())) {
      return run.Error("E312",
                       absl::StrCat("the region is over ", data.leaves[k].coordinates.size(),
                                    " devices, but the run has ", run.device().num_devices));
    }
    SHARDCALL_RETURN_IF_ERROR(data.enters ? Enter(run, data.leaves[k], k)
                                          : Leave(run, data.leaves[k], k));
  }
  return absl::OkStatus();
}

// Devices that differ from each device along `axes` only, in their order.
std::vector<std::vector<int>> GroupsByDevice(const BaseMesh& mesh, absl::Span<const AxisRef> axes) {
  std::vector<std::vector<int>> by_device(mesh.num_devices());
  for (const std::vector<int64_t>& group : GroupsAsLists(mesh, axes)) {
    const std::vector<int> devices(group.begin(), group.end());
    for (int d : devices) by_device[d] = devices;
  }
  return by_device;
}

absl::StatusOr<ManualLeaf> MakeLeaf(const LowerContext& context,
                                    const ShardingConstraint& constraint, const AxisList* manual,
                                    const Shape& global, const Shape& local) {
  const BaseMesh& mesh = *constraint.mesh;
  ManualLeaf leaf;
  AxisList all;
  std::vector<AxisList> axes(constraint.dims.size());
  for (size_t k = 0; k < constraint.dims.size(); ++k) {
    for (AxisRef a : constraint.dims[k].axes) {
      if (manual == nullptr || Contains(*manual, a)) axes[k].push_back(a);
    }
    all.insert(all.end(), axes[k].begin(), axes[k].end());
    leaf.shards.push_back(AxesSize(axes[k]));
  }
  AxisList unreduced;
  for (AxisRef a : constraint.unreduced) {
    if (manual == nullptr || Contains(*manual, a)) unreduced.push_back(a);
  }
  if (!unreduced.empty()) {
    leaf.op = constraint.unreduced_op;
    Context scratch;
    const Literal* identity =
        IdentityLiteral(scratch, MonoidOf(leaf.op), global.element_type(), ZeroSign::kExact);
    if (identity == nullptr) {
      return context.Error("E311", absl::StrCat(ElementTypeName(global.element_type()),
                                                " has no reduction by ", PartialOpName(leaf.op)));
    }
    leaf.identity.assign(identity->data.begin(), identity->data.end());
  }
  bool fits =
      global.rank() == local.rank() && global.rank() == static_cast<int>(constraint.dims.size());
  for (int k = 0; fits && k < global.rank(); ++k) {
    fits = global.dim(k) == local.dim(k) * leaf.shards[k];
  }
  if (!fits) {
    return context.Error("E311", absl::StrCat("the sharding does not take ", global.ToString(false),
                                              " to ", local.ToString(false)));
  }
  leaf.coordinates.resize(mesh.num_devices());
  for (int64_t d = 0; d < mesh.num_devices(); ++d) {
    const int64_t position = mesh.order().PositionOf(d);
    for (const AxisList& a : axes) leaf.coordinates[d].push_back(mesh.Coordinate(a, position));
  }
  leaf.groups = GroupsByDevice(mesh, all);
  leaf.parts.resize(mesh.num_devices());
  if (!unreduced.empty()) leaf.parts = GroupsByDevice(mesh, unreduced);
  return leaf;
}

int64_t NumDevices(const Module& m) {
  return m.header.has_num_partitions ? m.header.num_partitions : 0;
}

// As attributes: one has the shardings of all values, another one the manual axes.
absl::Status FromSdy(const LowerContext& context, bool enters, ManualData* data) {
  const absl::string_view key = enters ? kSdyInShardings : kSdyOutShardings;
  const ManualBoundaryText text = ManualBoundaryOf(context.module, context.instr);
  if (text.shardings.empty() || text.manual_axes.empty()) {
    return context.Error("E311", absl::StrCat("the attribute ", key, " or manual_axes is missing"));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<NamedSharding> shardings,
                             ParseSdyShardings(text.shardings));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             ParseSdyManualAxes(text.manual_axes));
  MeshCollector collector;
  if (const FrontendAttributes* header = context.module.header.frontend; header != nullptr) {
    if (const absl::string_view text = header->Find(kSdyMeshes); text.data() != nullptr) {
      SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Mesh> meshes, ParseSdyMeshes(text));
      for (const Mesh& mesh : meshes) collector.AddNamed(mesh);
    }
  }
  for (const NamedSharding& s : shardings) SHARDCALL_RETURN_IF_ERROR(collector.AddTiling(s));
  Context scratch;  // only plain numbers are kept
  SHARDCALL_ASSIGN_OR_RETURN(const MeshSet meshes,
                             collector.Finish(scratch, NumDevices(context.module)));
  if (static_cast<int>(shardings.size()) != context.num_operands()) {
    return context.Error("E311", "one sharding per operand is needed");
  }
  for (int k = 0; k < context.num_operands(); ++k) {
    const Shape& in = *context.operand_shape(k);
    const Shape& out = *context.instr.shape->leaf(k);
    const Shape& global = enters ? in : out;
    SHARDCALL_ASSIGN_OR_RETURN(const ShardingConstraint constraint,
                               meshes.FromNamed(shardings[k], global.rank()));
    const Mesh* mesh = shardings[k].mesh != nullptr ? shardings[k].mesh.get()
                                                    : meshes.FindMesh(shardings[k].mesh_name);
    if (mesh == nullptr) return context.Error("E311", "the sharding's mesh is missing");
    SHARDCALL_ASSIGN_OR_RETURN(const AxisList manual, meshes.AxesByName(*mesh, names));
    SHARDCALL_ASSIGN_OR_RETURN(ManualLeaf leaf,
                               MakeLeaf(context, constraint, &manual, global, enters ? out : in));
    data->leaves.push_back(std::move(leaf));
  }
  return absl::OkStatus();
}

// The dimensions of the global side's sharding. On entry it is on the operand, a `Sharding` call;
// on exit it is on the call itself.
absl::Status FromGspmd(const LowerContext& context, bool enters, ManualData* data) {
  if (context.num_operands() != 1) return context.Error("E311", "one operand is needed");
  const Instruction& operand = context.module.instr(context.module.operands(context.instr)[0]);
  const Instruction& carrier = enters ? operand : context.instr;
  if (carrier.sharding == nullptr) {
    return context.Error("E311", "there is no sharding that says how the array is split");
  }
  // The inner side says which axes are manual; without subgroups all of them are.
  const HloSharding* inside = (enters ? context.instr : operand).sharding;
  const bool says = inside != nullptr && (inside->kind == HloSharding::Kind::kTiled ||
                                          inside->kind == HloSharding::Kind::kNamed);
  MeshCollector collector;
  SHARDCALL_RETURN_IF_ERROR(collector.AddTiling(*carrier.sharding));
  if (says) SHARDCALL_RETURN_IF_ERROR(collector.AddTiling(*inside));
  Context scratch;
  SHARDCALL_ASSIGN_OR_RETURN(const MeshSet meshes,
                             collector.Finish(scratch, NumDevices(context.module)));
  const Shape& in = *context.operand_shape(0);
  const Shape& global = enters ? in : *context.instr.shape;
  SHARDCALL_ASSIGN_OR_RETURN(const ShardingConstraint constraint,
                             meshes.FromHlo(*carrier.sharding, global.rank()));
  std::optional<AxisList> manual;
  if (says) {
    SHARDCALL_ASSIGN_OR_RETURN(const ShardingConstraint inner,
                               meshes.FromHlo(*inside, global.rank()));
    if (inner.mesh == constraint.mesh && !inner.manual.empty()) manual = inner.manual;
  }
  SHARDCALL_ASSIGN_OR_RETURN(ManualLeaf leaf,
                             MakeLeaf(context, constraint, manual.has_value() ? &*manual : nullptr,
                                      global, enters ? *context.instr.shape : in));
  data->leaves.push_back(std::move(leaf));
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerManualBoundary(const LowerContext& context, Step* step) {
  if (!context.options.global_mode) {
    return context.Error("E310", "a manual region cannot be run as it stands",
                         "Partition the program, or run it over its own devices",
                         absl::StatusCode::kUnimplemented);
  }
  if (step->operands.size() != step->results.size() ||
      static_cast<int>(step->operands.size()) != context.num_operands()) {
    return context.Error("E311", "one result per operand is needed");
  }
  const KnownTarget target = KnownTargetOf(context.instr);
  auto data = std::make_unique<ManualData>();
  data->enters = HasTrait(target, kEntersManual);
  SHARDCALL_RETURN_IF_ERROR(HasTrait(target, kOfShardy)
                                ? FromSdy(context, data->enters, data.get())
                                : FromGspmd(context, data->enters, data.get()));
  step->fn = RunBoundary;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
