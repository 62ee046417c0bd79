// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/import/import.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/canonical_order.h"
#include "shardcall/partitioner/import/import_annotations.h"
#include "shardcall/partitioner/import/parallel_indices.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/sharding/partial_op.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {

ShardingConstraint OpenConstraint(const BaseMesh* mesh, int rank) {
  ShardingConstraint c = ClosedConstraint(mesh, rank);
  c.unknown = true;
  for (ShardingConstraint::Dim& d : c.dims) d.open = true;
  return c;
}

ShardingConstraint ClosedConstraint(const BaseMesh* mesh, int rank) {
  ShardingConstraint c;
  c.mesh = mesh;
  c.dims.resize(rank);
  return c;
}

bool SameConstraint(const ShardingConstraint& a, const ShardingConstraint& b) {
  if (a.mesh != b.mesh || a.dims.size() != b.dims.size() || a.replicated != b.replicated ||
      a.unreduced != b.unreduced || a.unreduced_op != b.unreduced_op || a.manual != b.manual ||
      a.maximal_device != b.maximal_device || a.unknown != b.unknown) {
    return false;
  }
  for (size_t d = 0; d < a.dims.size(); ++d) {
    if (a.dims[d].axes != b.dims[d].axes || a.dims[d].open != b.dims[d].open) return false;
  }
  return true;
}

AxisList Within(const BaseMesh& mesh, absl::Span<const AxisRef> axes,
                absl::Span<const AxisRef> set) {
  return Minus(mesh, axes, Minus(mesh, axes, set));
}

absl::Status At(const absl::Status& status, const Instruction& i) {
  return In(status, absl::StrCat("instruction ", i.name));
}

const ShardingConstraint* Annotations::Own(ShardingConstraint c) {
  p_.owned_constraints.push_back(std::make_unique<ShardingConstraint>(std::move(c)));
  return p_.owned_constraints.back().get();
}

const Shape* Annotations::LeafShape(InstrId id, int k) const {
  const Shape* shape = m_.instr(id).shape;
  if (shape->IsArray()) return shape;
  if (!shape->IsTuple()) return nullptr;
  const Shape* leaf = shape->leaf(k);
  return leaf->IsArray() ? leaf : nullptr;
}

absl::Status Annotations::ReadConstraints() {
  p_.leaves = BuildLeafTable(m_);
  p_.constraints.assign(p_.leaves.num_leaves(), nullptr);
  p_.annotation.assign(m_.num_instructions(), AnnotationKind::kNone);
  std::vector<InstrId> groups;
  for (int n = 0; n < m_.num_instructions(); ++n) {
    const InstrId id(n);
    const Instruction& i = m_.instr(id);
    const AnnotationKind kind = p_.annotation[n] = KindOf(i);
    if (kind == AnnotationKind::kNone && i.sharding == nullptr && i.frontend == nullptr) continue;
    if (kind == AnnotationKind::kIdentity &&
        (m_.operands(i).size() != 1 ||
         m_.instr(m_.operand(id, 0)).shape->bare() != i.shape->bare())) {
      return ToStatus({.code = "E165",
                       .message = absl::StrCat("the custom call ", Target(i),
                                               " must have one operand, of its own shape"),
                       .where = std::string(i.name),
                       .fix = "Give it one operand of the shape of its result"});
    }
    const SdyAttributes* shardy = nullptr;
    const bool by_shardy = UsesShardyAttribute(id, &shardy);
    if (kind == AnnotationKind::kGroup) {
      groups.push_back(id);
    } else if (by_shardy) {
      p_.uses_shardy = true;
      SHARDCALL_RETURN_IF_ERROR(ReadShardy(id, *shardy));
    } else if (i.sharding != nullptr && !has_dictionary_ && i.opcode != Opcode::kOutfeed) {
      SHARDCALL_RETURN_IF_ERROR(ReadHloSharding(id));
    }
    if (i.opcode == Opcode::kOutfeed && i.sharding != nullptr) {
      SHARDCALL_RETURN_IF_ERROR(ReadOutfeed(id));
    }
    if (kind != AnnotationKind::kManualBoundary) continue;
    if (HasTrait(KnownTargetOf(i), kOfShardy)) {
      SHARDCALL_RETURN_IF_ERROR(
          ReadShardyBoundary(id, shardy == nullptr ? SdyAttributes() : *shardy));
    } else {
      SHARDCALL_RETURN_IF_ERROR(ReadGspmdBoundary(id));
    }
  }
  // Groups are read last, when all values have their own constraints.
  return ReadGroups(groups);
}

absl::Status Annotations::HoldDynamicSizesWhole() {
  absl::flat_hash_map<int, const ShardingConstraint*> whole;  // by rank
  for (int n = 0; n < m_.num_instructions(); ++n) {
    const Instruction& i = m_.instr(InstrId(n));
    for (int k = 0; k < i.shape->num_leaves(); ++k) {
      const Shape* leaf = i.shape->leaf(k);
      if (!leaf->IsArray() || !leaf->IsDynamic()) continue;
      const ShardingConstraint*& c = p_.constraints[p_.leaves.leaf(InstrId(n), k).value];
      const bool cut =
          c != nullptr && (c->maximal_device >= 0 || !c->unreduced.empty() ||
                           std::any_of(c->dims.begin(), c->dims.end(),
                                       [](const auto& dim) { return !dim.axes.empty(); }));
      if (cut) {
        return ToStatus({.code = "E054",
                         .message = "a value whose size is known only at run time is not sharded",
                         .where = std::string(i.name),
                         .expected = "a replicated value, or none of a dynamic size",
                         .found = leaf->ToString(false),
                         .fix = "remove its sharding, or shard it before the size is set"},
                        absl::StatusCode::kUnimplemented);
      }
      const ShardingConstraint*& closed = whole[leaf->rank()];
      if (closed == nullptr) closed = Own(ClosedConstraint(p_.mesh, leaf->rank()));
      if (c == nullptr || c->manual.empty()) c = closed;
    }
  }
  return absl::OkStatus();
}

}  // namespace import_internal
}  // namespace internal

namespace {

// A shard of a dimension without a bound would have no static size.
absl::Status RefuseUnbounded(const Module& module) {
  for (int n = 0; n < module.num_instructions(); ++n) {
    const Instruction& i = module.instr(InstrId(n));
    for (int k = 0; k < i.shape->num_leaves(); ++k) {
      const Shape* leaf = i.shape->leaf(k);
      if (!leaf->IsArray() || !leaf->IsDynamic() ||
          std::find(leaf->dims().begin(), leaf->dims().end(), kUnboundedDim) ==
              leaf->dims().end()) {
        continue;
      }
      return ToStatus({.code = "E054",
                       .message = "values with dimensions of unknown size are not partitioned",
                       .where = std::string(i.name),
                       .expected = "sizes, or bounds as in f32[<=8]",
                       .found = leaf->ToString(false),
                       .fix = "give the dimension a bound"},
                      absl::StatusCode::kUnimplemented);
    }
  }
  return absl::OkStatus();
}

absl::Status RefuseUnreduced(const Module& module, InstrId id, const Shape* leaf, PartialOp op) {
  if (!leaf->IsArray() || HasIdentity(op, leaf->element_type())) return absl::OkStatus();
  return ToStatus({.code = "E165",
                   .message = "a value is said to be unreduced, and its type has no such reduction",
                   .where = std::string(module.instr(id).name),
                   .expected = absl::StrCat("a type that has ", PartialOpName(op)),
                   .found = std::string(ElementTypeName(leaf->element_type())),
                   .fix = "Reduce the value, or convert it to another type before"});
}

// Whether each value that is said to be unreduced can be: a device that has no part of it holds the
// reduction's identity.
absl::Status CheckUnreduced(const Program& p) {
  for (uint32_t l = 0; l < p.constraints.size(); ++l) {
    const ShardingConstraint* c = p.constraints[l];
    if (c == nullptr || c->unreduced.empty()) continue;
    SHARDCALL_RETURN_IF_ERROR(RefuseUnreduced(p.module, p.leaves.instr(LeafId(l)),
                                              p.LeafShape(LeafId(l)), c->unreduced_op));
  }
  for (int n = 0; n < p.module.num_instructions(); ++n) {
    const InstrId id(n);
    if (p.annotation[n] != AnnotationKind::kManualBoundary) continue;
    const std::vector<ManualBoundary::Partial>& partial = p.boundaries.at(id).manual_partial;
    for (size_t k = 0; k < partial.size(); ++k) {
      if (partial[k].axes.empty()) continue;
      SHARDCALL_RETURN_IF_ERROR(RefuseUnreduced(
          p.module, id, p.module.instr(id).shape->leaf(static_cast<int>(k)), partial[k].op));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> internal::ImportModule(Module module, const ImportOptions& options) {
  using import_internal::Annotations;
  using import_internal::InlinedModule;
  using import_internal::ModuleEdit;
  if (module.header.replica_count > 1) {
    return ToStatus({.code = "E050",
                     .message = "modules with several replicas are not supported",
                     .expected = "replica_count=1",
                     .found = absl::StrCat("replica_count=", module.header.replica_count),
                     .fix = "express the replicas as partitions"},
                    absl::StatusCode::kUnimplemented);
  }
  if (!module.entry().valid() || !module.comp(module.entry()).root.valid()) {
    return ToStatus({.code = "E165",
                     .message = "the module has no entry computation",
                     .fix = "Mark a computation as ENTRY"});
  }
  SHARDCALL_RETURN_IF_ERROR(RefuseUnbounded(module));
  SHARDCALL_ASSIGN_OR_RETURN(InlinedModule inlined,
                             import_internal::InlineCalls(module, options.inline_calls));
  if (options.plain_ops) inlined = import_internal::WithPlainOps(std::move(inlined));
  ModuleEdit parallel;
  import_internal::FindParallelIndices(inlined.module, &parallel);
  if (!parallel.empty()) import_internal::ApplyEdit(parallel, &inlined);
  inlined = import_internal::InCanonicalOrder(std::move(inlined));
  // An edit of the module changes ids, so import starts again on the edited module; the second
  // round requests no more edits.
  for (int round = 0;; ++round) {
    Program program{Module(module.shared_context())};
    ModuleEdit edit;
    Annotations annotations(inlined, &program);
    SHARDCALL_RETURN_IF_ERROR(annotations.ReadMeshes(options));
    SHARDCALL_RETURN_IF_ERROR(annotations.ReadConstraints());
    SHARDCALL_RETURN_IF_ERROR(annotations.HoldDynamicSizesWhole());
    SHARDCALL_RETURN_IF_ERROR(import_internal::FindRegions(inlined, &program, &edit));
    if (edit.empty()) {
      SHARDCALL_RETURN_IF_ERROR(annotations.SettleManualAxes());
      SHARDCALL_RETURN_IF_ERROR(annotations.ReadSignature(&edit));
    }
    if (edit.empty() || round == 4) {
      program.module = std::move(inlined.module);
      program.place = std::move(inlined.place);
      program.module.header.num_partitions = program.num_partitions;
      program.module.header.has_num_partitions = true;
      SHARDCALL_RETURN_IF_ERROR(CheckUnreduced(program));
      import_internal::WarnOfGroups(&program);
      return program;
    }
    import_internal::ApplyEdit(edit, &inlined);
    inlined = import_internal::InCanonicalOrder(std::move(inlined));
  }
}

}  // namespace shardcall
