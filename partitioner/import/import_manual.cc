// SPDX-License-Identifier: Apache-2.0
// The code that both forms of manual regions share: boundaries and their checks, and the manual
// axes of the constraints inside.
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/import_annotations.h"
#include "shardcall/sharding/axis_names.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {
namespace {

std::string AxesText(const BaseMesh& mesh, absl::Span<const AxisRef> axes) {
  return absl::StrCat("{", AxisRefsText(NameAxes(mesh, axes)), "}");
}

}  // namespace

// `global[k]` is the sharding of the global side of operand k, or null.
absl::Status Annotations::SetManualDims(InstrId id,
                                        const std::vector<const ShardingConstraint*>& global,
                                        ManualBoundary boundary) {
  const Instruction& i = m_.instr(id);
  for (size_t k = 0; k < global.size(); ++k) {
    const Shape* result = LeafShape(id, static_cast<int>(k));
    const Shape* operand = m_.instr(m_.operand(id, static_cast<int>(k))).shape;
    std::vector<AxisList>& dims = boundary.manual_dims.emplace_back();
    ManualBoundary::Partial& partial = boundary.manual_partial.emplace_back();
    if (result == nullptr) continue;
    const Shape* whole = boundary.entry ? operand : result;
    const Shape* local = boundary.entry ? result : operand;
    const auto shapes = [&] {
      return absl::StrCat("global ", whole->ToString(false), ", local ", local->ToString(false));
    };
    if (!operand->IsArray() || whole->rank() != local->rank() ||
        whole->element_type() != local->element_type()) {
      return ToStatus({.code = "E171",
                       .message = "the two sides of a manual region's boundary differ in more "
                                  "than dimension sizes",
                       .where = std::string(i.name),
                       .found = shapes(),
                       .fix = "Give both sides one type, rank and number of arrays"});
    }
    dims.resize(whole->rank());
    if (global[k] != nullptr && global[k]->mesh != p_.mesh) {
      return ToStatus({.code = "E173",
                       .message = "a manual region must be on the mesh of the program",
                       .where = std::string(i.name),
                       .fix = "use one device order for all of the program"});
    }
    if (global[k] != nullptr) {
      partial.axes = AsSet(*p_.mesh, Within(*p_.mesh, global[k]->unreduced, boundary.manual_axes));
      partial.op = global[k]->unreduced_op;
    }
    for (int d = 0; d < whole->rank(); ++d) {
      if (global[k] != nullptr) {
        const AxisList& axes = global[k]->dims[d].axes;
        dims[d] = Within(*p_.mesh, axes, boundary.manual_axes);
        if (!IsPrefix(*p_.mesh, dims[d], axes)) {
          return ToStatus(
              {.code = "E176",
               .message = absl::StrCat("dimension ", d, " of operand ", k,
                                       " is sharded by a free axis before a manual "
                                       "one"),
               .where = std::string(i.name),
               .expected = absl::StrCat("the axes ", AxesText(*p_.mesh, dims[d]), " first"),
               .found = AxesText(*p_.mesh, axes),
               .fix = "Write the manual axes first in that dimension"});
        }
      }
      const int64_t shards = AxesSize(dims[d]);
      if (whole->dim(d) % shards == 0 && whole->dim(d) / shards == local->dim(d)) continue;
      return ToStatus({.code = "E171",
                       .message = absl::StrCat("dimension ", d,
                                               " does not fit at a manual "
                                               "region's boundary over the manual axes ",
                                               AxesText(*p_.mesh, dims[d])),
                       .where = std::string(i.name),
                       .expected = absl::StrCat(shards, " times the local size as the global one"),
                       .found = shapes(),
                       .fix = "Write the local size times the number of shards as the global one"});
    }
  }
  p_.boundaries[id] = std::move(boundary);
  return absl::OkStatus();
}

absl::Status Annotations::SettleManualAxes() {
  absl::flat_hash_map<std::pair<const ShardingConstraint*, int>, const ShardingConstraint*> memo;
  for (int n = 0; n < m_.num_instructions(); ++n) {
    const InstrId id(n);
    const Instruction& i = m_.instr(id);
    const bool tupling = IsTupling(i);
    for (int k = 0; k < i.shape->num_leaves(); ++k) {
      // The elements of a tuple may be of several regions.
      const InstrId made = tupling ? p_.leaves.instr(p_.leaves.canonical(id, k)) : id;
      const int region = p_.region_of[made.value];
      const AxisList& manual = p_.regions[region];
      const ShardingConstraint*& c = p_.constraints[p_.leaves.leaf(id, k).value];
      if (c == nullptr || (manual.empty() && c->manual.empty())) continue;
      const ShardingConstraint*& known = memo[{c, region}];
      if (known == nullptr) {
        // A shard_as or shard_like group and a maximal sharding are independent of regions. A
        // sharding that names manual axes must name those in force.
        AxisList all;
        for (const ShardingConstraint::Dim& d : c->dims) {
          all.insert(all.end(), d.axes.begin(), d.axes.end());
        }
        all.insert(all.end(), c->unreduced.begin(), c->unreduced.end());
        const bool fits = c->mesh == p_.mesh &&
                          (c->manual.empty() || AsSet(*p_.mesh, c->manual) == manual) &&
                          !Overlaps(all, manual);
        if (!fits) {
          return ToStatus({.code = "E172",
                           .message = "a sharding contradicts the manual region it stands in",
                           .where = std::string(i.name),
                           .expected = absl::StrCat("manual axes ", AxesText(*p_.mesh, manual)),
                           .found = absl::StrCat("manual axes ", AxesText(*c->mesh, c->manual),
                                                 ", sharded over ", AxesText(*c->mesh, all)),
                           .fix = "shard only over free axes inside of a manual region"});
        }
        ShardingConstraint settled = *c;
        settled.manual = manual;
        settled.replicated = Minus(*p_.mesh, settled.replicated, manual);
        known = Own(std::move(settled));
      }
      c = known;
    }
  }
  return absl::OkStatus();
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
