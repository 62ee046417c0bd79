// SPDX-License-Identifier: Apache-2.0
// Collectives, and the manual computations of Shardy in which they stand.
#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/annotation_names.h"
#include "shardcall/partitioner/ir/build/moved_blocks.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/attribute_text.h"
#include "shardcall/partitioner/ir/stablehlo/op_names.h"
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"
#include "shardcall/partitioner/ir/text/parse/slot_parser.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/named_sharding.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {
namespace {

using Kind = Attribute::Kind;

// What the collectives share, with the memory that their attributes refer to.
struct Collective {
  CollectiveAttrs attrs;
  std::vector<std::vector<int64_t>> groups;
  std::vector<Ints> lists;
  std::string mesh_text;
};

absl::Status ReadChannel(ComputationReader& c, const Operation& op, int64_t* channel_id) {
  const Attribute* channel = c.Find(op, "channel_handle");
  if (channel == nullptr) return absl::OkStatus();
  if (channel->kind != Kind::kChannel) return ModuleReader::Cannot("a channel of another form");
  if (channel->numbers[0] > 0) *channel_id = channel->numbers[0];
  return absl::OkStatus();
}

// Groups of the devices that differ along axes of a mesh: `mesh['a'=2,'b'=4] {'a'}` in HLO.
absl::Status ReadMeshGroups(ComputationReader& c, const Operation& op, const Attribute& groups,
                            Collective* out) {
  const auto other = [&] {
    return ModuleReader::Cannot(absl::StrCat(op.name, " with groups of an unknown form"));
  };
  const Attribute& name = c.code().attribute(groups.items[0]);
  if (name.kind != Kind::kSymbol) return other();
  SHARDCALL_ASSIGN_OR_RETURN(
      const Mesh mesh,
      c.reader().annotations().MeshNamed(SymbolName(c.code().attribute(name.items[0]).text)));
  HloSharding axes;
  axes.kind = HloSharding::Kind::kNamed;
  NamedSharding& named = axes.named;
  named.dims.emplace_back();
  for (size_t k = 1; k < groups.items.size(); ++k) {
    const Attribute& axis = c.code().attribute(groups.items[k]);
    if (axis.kind != Kind::kMeshAxis) return other();
    NamedAxisRef& ref = named.dims[0].axes.emplace_back();
    ref.name = std::string(axis.text);
    if (axis.items.empty()) continue;
    const Attribute& part = c.code().attribute(axis.items[0]);
    if (part.kind != Kind::kAxisPart) return other();
    ref.pre_size = part.numbers[0];
    ref.size = part.numbers[1];
  }
  if (!mesh.order.is_identity() || named.dims[0].axes.empty() ||
      !CheckAndNormalize(mesh, &named).ok()) {
    return other();
  }
  named.mesh = std::make_shared<const Mesh>(mesh);
  out->mesh_text = hlo_text::MeshGroupsText(axes);
  out->attrs.groups.form = ReplicaGroups::Form::kMesh;
  out->attrs.groups.mesh_text = out->mesh_text;
  return absl::OkStatus();
}

absl::Status ReadShared(ComputationReader& c, const Operation& op, Collective* out) {
  SHARDCALL_RETURN_IF_ERROR(ReadChannel(c, op, &out->attrs.channel_id));
  out->attrs.use_global_device_ids = c.Find(op, "use_global_device_ids") != nullptr;
  const Attribute* groups = c.Find(op, "replica_groups");
  if (groups != nullptr && groups->kind == Kind::kMeshGroups) {
    return ReadMeshGroups(c, op, *groups, out);
  }
  if (groups == nullptr || groups->kind != Kind::kDense ||
      c.code().type(groups->type).dims.size() != 2) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " with groups of an unknown form"));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, c.List(op, "replica_groups"));
  const size_t size = static_cast<size_t>(c.code().type(groups->type).dims[1]);
  for (size_t at = 0; at < ids.size(); at += size) {
    out->groups.emplace_back(ids.begin() + at, ids.begin() + at + size);
    for (int64_t id : out->groups.back()) {
      if (id < 0) return ModuleReader::Cannot(absl::StrCat(op.name, " with uneven groups"));
    }
  }
  for (const auto& g : out->groups) out->lists.push_back(g);
  if (out->lists.empty()) return absl::OkStatus();  // one group of all
  out->attrs.groups.form = ReplicaGroups::Form::kLists;
  out->attrs.groups.lists = out->lists;
  return absl::OkStatus();
}

absl::Status ReadAllReduce(ComputationReader& c, const Operation& op) {
  Collective all;
  SHARDCALL_RETURN_IF_ERROR(ReadShared(c, op, &all));
  SHARDCALL_ASSIGN_OR_RETURN(all.attrs.to_apply, c.RegionOf(op, 0));
  return c.EmitWhole(op, Opcode::kAllReduce, InternAttributes(c.context(), all.attrs));
}

absl::Status ReadReduceScatter(ComputationReader& c, const Operation& op) {
  Collective all;
  SHARDCALL_RETURN_IF_ERROR(ReadShared(c, op, &all));
  all.attrs.dimension = c.Integer(op, "scatter_dimension", 0);
  SHARDCALL_ASSIGN_OR_RETURN(all.attrs.to_apply, c.RegionOf(op, 0));
  return c.EmitWhole(op, Opcode::kReduceScatter, InternAttributes(c.context(), all.attrs));
}

absl::Status ReadAllGather(ComputationReader& c, const Operation& op) {
  Collective all;
  SHARDCALL_RETURN_IF_ERROR(ReadShared(c, op, &all));
  all.attrs.dimension = c.Integer(op, "all_gather_dim", 0);
  return c.EmitWhole(op, Opcode::kAllGather, InternAttributes(c.context(), all.attrs));
}

absl::Status ReadBroadcast(ComputationReader& c, const Operation& op) {
  Collective all;
  SHARDCALL_RETURN_IF_ERROR(ReadShared(c, op, &all));
  return c.EmitWhole(op, Opcode::kCollectiveBroadcast, InternAttributes(c.context(), all.attrs));
}

// HLO's all-to-all concatenates along the dimension that it splits. For another one, the blocks are
// moved there.
absl::Status ReadAllToAll(ComputationReader& c, const Operation& op) {
  Collective all;
  SHARDCALL_RETURN_IF_ERROR(ReadShared(c, op, &all));
  const int64_t wide_split = c.Integer(op, "split_dimension", 0);
  const int64_t wide_concat = c.Integer(op, "concat_dimension", 0);
  const int64_t count = c.Integer(op, "split_count", 1);
  if (op.operands.size() != 1) return ModuleReader::Cannot("an all_to_all of several arrays");
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId x, c.ArrayOperand(op, 0));
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ArrayOf(op));
  Module& m = c.reader().module();
  const Shape* from = m.instr(x).shape;
  const auto is_dim = [&](int64_t d) { return d >= 0 && d < from->rank(); };
  const int split = static_cast<int>(wide_split), concat = static_cast<int>(wide_concat);
  if (!is_dim(wide_split) || !is_dim(wide_concat) || count < 1 || from->dim(split) % count != 0) {
    return ModuleReader::Cannot("an all_to_all with bad dimensions");
  }
  all.attrs.dimension = split;
  const InstrId exchanged =
      c.Emit(op, Opcode::kAllToAll, from, {x}, InternAttributes(c.context(), all.attrs));
  if (split == concat) return c.Finish(op, exchanged);
  const MovedBlocks move = MoveBlocks(from->dims(), split, concat, count);
  std::vector<int64_t> moved;
  for (int64_t d : move.permutation) moved.push_back(move.dims[d]);
  const auto array = [&](absl::Span<const int64_t> sizes) {
    return c.context().WithDefaultLayout(c.context().MakeArray(from->element_type(), sizes));
  };
  const Attributes* reshape = InternAttributes(c.context(), ReshapeAttrs());
  DimensionsAttrs permutation;
  permutation.dimensions = move.permutation;
  const InstrId blocks = c.Emit(op, Opcode::kReshape, array(move.dims), {exchanged}, reshape);
  const InstrId transposed = c.Emit(op, Opcode::kTranspose, array(moved), {blocks},
                                    InternAttributes(c.context(), permutation));
  return c.Finish(op, c.Emit(op, Opcode::kReshape, shape, {transposed}, reshape));
}

absl::Status ReadPermute(ComputationReader& c, const Operation& op) {
  PermuteAttrs attrs;
  SHARDCALL_RETURN_IF_ERROR(ReadChannel(c, op, &attrs.channel_id));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> pairs, c.List(op, "source_target_pairs"));
  if (pairs.size() % 2 != 0) return ModuleReader::Cannot("a permute with half a pair");
  std::vector<int64_t> sources, targets;
  for (size_t k = 0; k + 1 < pairs.size(); k += 2) {
    sources.push_back(pairs[k]);
    targets.push_back(pairs[k + 1]);
  }
  attrs.sources = sources;
  attrs.targets = targets;
  return c.EmitWhole(op, Opcode::kCollectivePermute, InternAttributes(c.context(), attrs));
}

// As Shardy exports it: two custom calls around a call of the body.
absl::Status ReadManual(ComputationReader& c, const Operation& op) {
  const Attribute* in = c.Find(op, "in_shardings");
  const Attribute* out = c.Find(op, "out_shardings");
  const Attribute* axes = c.Find(op, "manual_axes");
  for (const Attribute* a : {in, out, axes}) {
    if (a == nullptr || a->kind != Kind::kAssembly) {
      return ModuleReader::Cannot("a manual_computation of an unknown form");
    }
  }
  if (op.operands.empty() || op.results.empty() || op.regions.size() != 1 ||
      op.regions[0].blocks.size() != 1) {
    return ModuleReader::Cannot("a manual_computation without operands or results");
  }
  ModuleReader& r = c.reader();
  Module& m = r.module();
  const auto boundary = [&](absl::string_view target, absl::Span<const InstrId> operands,
                            const std::vector<const Shape*>& shapes, absl::string_view key,
                            const Attribute& shardings) {
    CustomCallAttrs attrs;
    attrs.target = target;
    attrs.has_side_effect = true;
    const Shape* shape = shapes.size() == 1 ? shapes[0] : c.context().MakeTuple(shapes);
    const InstrId id =
        c.Emit(op, Opcode::kCustomCall, shape, operands, InternAttributes(c.context(), attrs));
    r.annotations().AddFrontend(id, key, shardings.text);
    r.annotations().AddFrontend(id, kSdyManualAxes, axes->text);
    return id;
  };
  const auto parts = [&](InstrId id, size_t count) -> absl::StatusOr<std::vector<InstrId>> {
    if (count == 1) return std::vector<InstrId>{id};
    std::vector<InstrId> all(count);
    for (size_t k = 0; k < count; ++k) {
      SHARDCALL_ASSIGN_OR_RETURN(all[k], c.Element(op, id, static_cast<int64_t>(k)));
    }
    return all;
  };
  const Block& block = op.regions[0].blocks[0];
  std::vector<const Shape*> locals, globals;
  for (uint32_t argument : block.arguments) {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, r.ShapeOfValue(argument));
    locals.push_back(shape);
  }
  for (size_t k = 0; k < op.results.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, c.ShapeOf(op, k));
    globals.push_back(shape);
  }
  if (locals.size() != op.operands.size()) {
    return ModuleReader::Cannot("a manual_computation with another number of arguments");
  }
  SHARDCALL_ASSIGN_OR_RETURN(const auto operands, c.Operands(op));
  SHARDCALL_ASSIGN_OR_RETURN(const CompId body, c.RegionOf(op, 0, kSdyManualBody));
  const InstrId entered = boundary(KnownTargetText(KnownTarget::kGlobalToLocal), operands, locals,
                                   kSdyInShardings, *in);
  CallAttrs attrs;
  attrs.to_apply = body;
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> shards, parts(entered, locals.size()));
  const Shape* shape = m.instr(m.comp(body).root).shape;
  if (shape->IsTuple() ? shape->tuple().size() != globals.size() : globals.size() != 1) {
    return ModuleReader::Cannot("a manual_computation whose body has other results");
  }
  const InstrId call =
      c.Emit(op, Opcode::kCall, shape, shards, InternAttributes(c.context(), attrs));
  r.annotations().AddFrontend(call, "inlineable", "false");
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> results, parts(call, globals.size()));
  const InstrId left = boundary(KnownTargetText(KnownTarget::kLocalToGlobal), results, globals,
                                kSdyOutShardings, *out);
  return c.Finish(op, left);
}

constexpr OpRow kRows[] = {
    {NameOf(Opcode::kAllReduce), ReadAllReduce},
    {NameOf(Opcode::kReduceScatter), ReadReduceScatter},
    {NameOf(Opcode::kAllGather), ReadAllGather},
    {NameOf(Opcode::kAllToAll), ReadAllToAll},
    {NameOf(Opcode::kCollectiveBroadcast), ReadBroadcast},
    {NameOf(Opcode::kCollectivePermute), ReadPermute},
    {"sdy.manual_computation", ReadManual},
};

}  // namespace

absl::Span<const OpRow> CollectiveRows() { return kRows; }

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
