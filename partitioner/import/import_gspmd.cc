// SPDX-License-Identifier: Apache-2.0
// Reads `sharding={..}` of GSPMD (V1, V2) and of the named form (V3). Dimensions are closed except
// those that `unspecified_dims` or `?` opens.
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shardcall/partitioner/import/import_annotations.h"
#include "shardcall/sharding/convert/subset_tiling.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {
namespace {

constexpr absl::string_view kUnspecified = "unspecified_dims=[";

// The text between the brackets of `unspecified_dims=[0,1]`; null if absent.
absl::string_view UnspecifiedDims(const Instruction& i) {
  const AnnotationKind kind = KindOf(i);
  if (kind != AnnotationKind::kIdentity && kind != AnnotationKind::kManualBoundary) return {};
  const size_t at = i.backend_config.find(kUnspecified);
  if (at == absl::string_view::npos) return {};
  const absl::string_view rest = i.backend_config.substr(at + kUnspecified.size());
  return rest.substr(0, rest.find(']'));
}

absl::Status BadDims(const Instruction& i, absl::string_view found, int rank) {
  return ToStatus({.code = "E165",
                   .message = "unspecified_dims must list dimensions of the value",
                   .where = std::string(i.name),
                   .expected = absl::StrCat("numbers from 0 to ", rank - 1),
                   .found = absl::StrCat("[", found, "]"),
                   .fix = "List dimensions of the value, or leave unspecified_dims out"});
}

bool DividesDevices(const HloSharding& tiling, int64_t devices) {
  return devices % tiling.num_devices() == 0;
}

}  // namespace

// Whether a sharding of `i` is a promise of shapes to whoever runs the program.
bool Annotations::IsInterface(const Instruction& i) const {
  const Computation& entry = m_.comp(m_.entry());
  return i.opcode == Opcode::kInfeed || i.opcode == Opcode::kOutfeed ||
         &i == &m_.instr(entry.root) ||
         absl::c_any_of(entry.parameters, [&](InstrId p) { return &m_.instr(p) == &i; });
}

// A sharding over some devices that has no equal over all of them: a value that only the program
// sees may as well be whole everywhere. What the program is given or returns has the shapes that
// were asked for, or is refused.
absl::StatusOr<ShardingConstraint> Annotations::OfSomeDevices(const Instruction& i,
                                                              const HloSharding& sharding,
                                                              int rank) {
  const int64_t devices = meshes_.num_devices();
  std::string text = absl::StrCat("W212 %", i.name, ": ", sharding.Print(), " is over ",
                                  sharding.num_devices(), " of ", devices, " devices");
  absl::StatusOr<ShardingConstraint> c = meshes_.FromHlo(sharding, rank);
  if (c.ok()) {
    SHARDCALL_ASSIGN_OR_RETURN(const HloSharding all, OverAllDevices(sharding, devices));
    absl::StrAppend(&text, "; the others hold copies, as in ", all.Print());
  } else if (sharding.num_data_dims() == rank && !DividesDevices(sharding, devices)) {
    c = ClosedConstraint(p_.mesh, rank);
    absl::StrAppend(&text, ", which it does not divide, and is taken as {replicated}");
  }
  if (c.ok()) p_.warnings.push_back(std::move(text));
  return c;
}

absl::StatusOr<const ShardingConstraint*> Annotations::HloConstraint(const Instruction& i,
                                                                     const HloSharding& sharding,
                                                                     const Shape* leaf) {
  const int64_t devices = meshes_.num_devices();
  const bool some = NamesSomeDevices(sharding, devices);
  if (some && !DividesDevices(sharding, devices) && IsInterface(i)) {
    return At(meshes_.FromHlo(sharding, leaf->rank()).status(), i);
  }
  const absl::string_view open = UnspecifiedDims(i);
  const ShardingConstraint*& known = memo_[MemoKey(&sharding, leaf->rank(), open.data())];
  if (known != nullptr) return known;
  absl::StatusOr<ShardingConstraint> c =
      some ? OfSomeDevices(i, sharding, leaf->rank()) : meshes_.FromHlo(sharding, leaf->rank());
  if (!c.ok()) return At(c.status(), i);
  if (!open.empty()) {
    for (absl::string_view text : absl::StrSplit(open, ',', absl::SkipWhitespace())) {
      int dim = -1;
      if (!absl::SimpleAtoi(text, &dim) || dim < 0 || dim >= leaf->rank()) {
        return BadDims(i, open, leaf->rank());
      }
      c->dims[dim].open = true;
    }
  }
  return known = Own(*std::move(c));
}

absl::Status Annotations::ReadHloSharding(InstrId id) {
  const Instruction& i = m_.instr(id);
  const HloSharding& sharding = *i.sharding;
  const int leaves = i.shape->num_leaves();
  if (leaves == 0) return absl::OkStatus();
  const bool list = sharding.kind == HloSharding::Kind::kTuple;
  const int given = list ? static_cast<int>(sharding.tuple.size()) : 1;
  if (given != 1 && given != leaves) {
    return ToStatus({.code = "E165",
                     .message = "the sharding of a tuple has another number of entries than the "
                                "tuple has leaves",
                     .where = std::string(i.name),
                     .expected = absl::StrCat(leaves),
                     .found = absl::StrCat(given),
                     .fix = "give one sharding per leaf"});
  }
  for (int k = 0; k < leaves; ++k) {
    const Shape* leaf = LeafShape(id, k);
    if (leaf == nullptr) continue;
    const HloSharding& own = list ? sharding.tuple[given == 1 ? 0 : k] : sharding;
    SHARDCALL_ASSIGN_OR_RETURN(p_.constraints[p_.leaves.leaf(id, k).value],
                               HloConstraint(i, own, leaf));
  }
  return absl::OkStatus();
}

// The sharding of an outfeed is that of its operand; in a list the token has an entry too.
absl::Status Annotations::ReadOutfeed(InstrId id) {
  const Instruction& i = m_.instr(id);
  const InstrId data = m_.operand(id, 0);
  const int leaves = m_.instr(data).shape->num_leaves();
  std::vector<const ShardingConstraint*> said(leaves, nullptr);
  for (int k = 0; k < leaves; ++k) {
    const Shape* leaf = LeafShape(data, k);
    if (leaf == nullptr) continue;
    const bool list = i.sharding->kind == HloSharding::Kind::kTuple;
    const HloSharding& own = list ? i.sharding->tuple[k] : *i.sharding;
    SHARDCALL_ASSIGN_OR_RETURN(said[k], HloConstraint(i, own, leaf));
  }
  p_.outfeeds[id] = std::move(said);
  return absl::OkStatus();
}

// E163 at either side of a boundary: what a region computes may differ by device, so that devices
// that a sharding does not name would not compute copies.
absl::Status Annotations::OnAllDevices(const Instruction& side) const {
  if (side.sharding == nullptr) return absl::OkStatus();
  const int64_t devices = meshes_.num_devices();
  if (!NamesSomeDevices(*side.sharding, devices)) return absl::OkStatus();
  return ToStatus({.code = "E163",
                   .message = "a manual region runs on all devices",
                   .where = std::string(side.name),
                   .expected = absl::StrCat("a sharding over ", devices, " devices"),
                   .found = side.sharding->Print(),
                   .fix = "run the manual region on all devices"});
}

// A pair `Sharding`, `SPMDFullToShardShape`: the first gives the dimensions. The region's own axes
// are those that are manual after the second and not before. `SPMDShardToFullShape` is the
// inverse.
absl::Status Annotations::ReadGspmdBoundary(InstrId id) {
  const Instruction& i = m_.instr(id);
  ManualBoundary boundary;
  boundary.entry = IsManualEntry(i);
  if (m_.operands(i).size() != 1 || LeafShape(id, 0) == nullptr ||
      LeafShape(m_.operand(id, 0), 0) == nullptr || i.sharding == nullptr) {
    return ToStatus(
        {.code = "E173",
         .message = absl::StrCat("the custom call ", Target(i), " needs one array and a sharding"),
         .where = std::string(i.name),
         .fix = "Give it one array operand and sharding={..}"});
  }
  SHARDCALL_RETURN_IF_ERROR(OnAllDevices(i));
  SHARDCALL_RETURN_IF_ERROR(OnAllDevices(m_.instr(m_.operand(id, 0))));
  const ShardingConstraint* result = p_.constraints[p_.leaves.leaf(id).value];
  const ShardingConstraint* operand = p_.constraints[p_.leaves.leaf(m_.operand(id, 0)).value];
  const ShardingConstraint* inner = boundary.entry ? result : operand;
  const ShardingConstraint* outer = boundary.entry ? operand : result;
  if (inner != nullptr) {
    boundary.manual_axes = inner->manual;
    if (outer != nullptr) {
      boundary.manual_axes = Minus(*p_.mesh, boundary.manual_axes, outer->manual);
    }
    boundary.manual_axes = AsSet(*p_.mesh, boundary.manual_axes);
  }
  return SetManualDims(id, {outer}, std::move(boundary));
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
