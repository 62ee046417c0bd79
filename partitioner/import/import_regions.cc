// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/import_internal.h"
#include "shardcall/sharding/axis_names.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {
namespace {

std::string AxesText(const BaseMesh& mesh, absl::Span<const AxisRef> axes) {
  return absl::StrCat("{", AxisRefsText(NameAxes(mesh, axes)), "}");
}

class RegionFinder {
 public:
  RegionFinder(const InlinedModule& inlined, Program* program, ModuleEdit* edit)
      : inlined_(inlined), m_(inlined.module), p_(*program), mesh_(*program->mesh), edit_(*edit) {}

  absl::Status Run() {
    p_.regions = {AxisList()};
    p_.region_of.assign(m_.num_instructions(), 0);
    if (p_.boundaries.empty() && !NamesManualAxes()) return absl::OkStatus();
    FindNeutral();
    Join();
    const Computation& entry = m_.comp(m_.entry());
    // Parameters and results are outside of all regions, unless the program says otherwise.
    for (InstrId parameter : entry.parameters) {
      SHARDCALL_RETURN_IF_ERROR(Anchor(parameter, NamedRegion(parameter).value_or(0)));
    }
    SHARDCALL_RETURN_IF_ERROR(AnchorResults(entry.root));
    SHARDCALL_RETURN_IF_ERROR(Spread());
    SHARDCALL_RETURN_IF_ERROR(AnchorTheRest());
    SHARDCALL_RETURN_IF_ERROR(CheckEdges());
    for (int i = 0; i < m_.num_instructions(); ++i) {
      if (!neutral_[i] && owned_[m_.instr(InstrId(i)).computation.value]) {
        p_.region_of[i] = region_[Find(i)];
      }
    }
    return PlaceNeutral();
  }

 private:
  static constexpr int kUnknown = -1;

  const ManualBoundary* Boundary(InstrId i) const {
    const auto it = p_.boundaries.find(i);
    return it == p_.boundaries.end() ? nullptr : &it->second;
  }

  // The manual axes that the program gives to one of the leaves; null if it names none.
  const ShardingConstraint* NamedManual(LeafId leaf) const {
    const ShardingConstraint* c = p_.constraints[leaf.value];
    return c != nullptr && c->mesh == &mesh_ && !c->manual.empty() ? c : nullptr;
  }
  bool NamesManualAxes() const {
    for (int l = 0; l < p_.leaves.num_leaves(); ++l) {
      if (NamedManual(LeafId(l)) != nullptr) return true;
    }
    return false;
  }
  // The region whose manual axes the shardings of an instruction name.
  std::optional<int> NamedRegion(InstrId id) {
    for (int k = 0; k < m_.instr(id).shape->num_leaves(); ++k) {
      const ShardingConstraint* c = NamedManual(p_.leaves.leaf(id, k));
      if (c != nullptr) return RegionId(AsSet(mesh_, c->manual));
    }
    return std::nullopt;
  }

  // Results that name manual axes come from their region.
  absl::Status AnchorResults(InstrId root) {
    if (neutral_[root.value]) return absl::OkStatus();
    for (int k = 0; k < m_.instr(root).shape->num_leaves(); ++k) {
      const InstrId made = Maker(root, k);
      if (neutral_[made.value]) continue;
      const ShardingConstraint* c = NamedManual(p_.leaves.leaf(root, k));
      if (c == nullptr) c = NamedManual(p_.leaves.canonical(root, k));
      const int region = c == nullptr ? 0 : RegionId(AsSet(mesh_, c->manual));
      SHARDCALL_RETURN_IF_ERROR(Anchor(made, region));
    }
    return absl::OkStatus();
  }

  // What made leaf k of a value, through tuples.
  InstrId Maker(InstrId value, int k) const {
    return p_.leaves.instr(p_.leaves.canonical(value, k));
  }
  // Joins `id` to what made the leaves of `value`.
  void JoinMakers(InstrId id, InstrId value) {
    for (int k = 0; k < m_.instr(value).shape->num_leaves(); ++k) {
      const InstrId made = Maker(value, k);
      if (!neutral_[made.value]) Union(id.value, made.value);
    }
  }
  void JoinFirstMaker(InstrId tuple) {
    for (int k = 0; k < m_.instr(tuple).shape->num_leaves(); ++k) {
      const InstrId made = Maker(tuple, k);
      if (neutral_[made.value]) continue;
      Union(tuple.value, made.value);
      return;
    }
  }

  void FindNeutral() {
    neutral_.assign(m_.num_instructions(), false);
    for (int i = 0; i < m_.num_instructions(); ++i) {
      const Instruction& instr = m_.instr(InstrId(i));
      if (instr.opcode == Opcode::kParameter || CarriesRegion(instr.opcode) ||
          HasTrait(instr.opcode, kCollectiveOp | kSideEffect | kAsyncForm) ||
          (instr.opcode == Opcode::kCustomCall && KindOf(instr) != AnnotationKind::kIdentity)) {
        continue;
      }
      const auto operands = m_.operands(instr);
      neutral_[i] = std::all_of(operands.begin(), operands.end(),
                                [&](InstrId o) { return neutral_[o.value]; });
    }
  }

  void Join() {
    parent_.resize(m_.num_instructions());
    std::iota(parent_.begin(), parent_.end(), 0);
    owned_.assign(m_.num_computations(), false);
    owner_.assign(m_.num_computations(), InstrId());
    owned_[m_.entry().value] = true;
    // Callers come before callees, so one pass in order finds all.
    for (int c = 0; c < m_.num_computations(); ++c) {
      if (!owned_[c]) continue;
      for (InstrId id : m_.comp(CompId(c)).instructions) {
        const Instruction& instr = m_.instr(id);
        if (CarriesRegion(instr.opcode)) {
          for (CompId callee : CalledComputations(m_, instr)) {
            owned_[callee.value] = true;
            owner_[callee.value] = id;
            const Computation& comp = m_.comp(callee);
            for (InstrId p : comp.parameters) Union(id.value, p.value);
            if (!neutral_[comp.root.value]) JoinMakers(id, comp.root);
          }
        }
        if (neutral_[id.value] || Boundary(id) != nullptr) continue;
        if (IsTupling(instr)) {  // of no region of its own
          JoinFirstMaker(id);
          continue;
        }
        for (InstrId operand : m_.operands(instr)) JoinMakers(id, operand);
      }
    }
    // Boundaries by component, once components are final.
    region_.assign(m_.num_instructions(), kUnknown);
    for (const auto& [id, boundary] : p_.boundaries) boundaries_.push_back(id);
    std::sort(boundaries_.begin(), boundaries_.end());
    for (InstrId id : boundaries_) {
      if (!owned_[m_.instr(id).computation.value]) continue;
      edges_[Find(id.value)].push_back(id);
      for (InstrId operand : m_.operands(id)) {
        if (!neutral_[operand.value] && Find(operand.value) != Find(id.value)) {
          edges_[Find(operand.value)].push_back(id);
        }
      }
    }
  }

  uint32_t Find(uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void Union(uint32_t a, uint32_t b) {
    a = Find(a);
    b = Find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }

  int RegionId(const AxisList& axes) {
    for (size_t r = 0; r < p_.regions.size(); ++r) {
      if (p_.regions[r] == axes) return static_cast<int>(r);
    }
    p_.regions.push_back(axes);
    return static_cast<int>(p_.regions.size()) - 1;
  }
  absl::StatusOr<int> Inner(InstrId at, int outer, const AxisList& own) {
    if (Overlaps(p_.regions[outer], own)) {
      return ToStatus(
          {.code = "E174",
           .message = "a nested manual region names axes that are manual already",
           .where = std::string(m_.instr(at).name),
           .expected = absl::StrCat("axes other than ", AxesText(mesh_, p_.regions[outer])),
           .found = AxesText(mesh_, own),
           .fix = "let each region name only its own axes"});
    }
    AxisList all = p_.regions[outer];
    all.insert(all.end(), own.begin(), own.end());
    return RegionId(AsSet(mesh_, all));
  }
  absl::StatusOr<int> Outer(InstrId at, int inner, const AxisList& own) {
    for (const AxisRef& a : own) {
      if (Contains(p_.regions[inner], a)) continue;
      return ToStatus({.code = "E175",
                       .message = "a manual region is left or entered by axes that are not "
                                  "manual there",
                       .where = std::string(m_.instr(at).name),
                       .expected = absl::StrCat("axes of ", AxesText(mesh_, p_.regions[inner])),
                       .found = AxesText(mesh_, own),
                       .fix = "give the boundary the axes of the region it closes"});
    }
    return RegionId(AsSet(mesh_, Minus(mesh_, p_.regions[inner], own)));
  }

  absl::Status Anchor(InstrId i, int region) {
    const uint32_t c = Find(i.value);
    if (region_[c] == kUnknown) {
      region_[c] = region;
      queue_.push_back(c);
      return absl::OkStatus();
    }
    return region_[c] == region ? absl::OkStatus() : Crossing(i, region_[c], region);
  }

  absl::Status Crossing(InstrId i, int a, int b) const {
    return ToStatus({.code = "E175",
                     .message = "a value crosses the edge of a manual region without a boundary",
                     .where = std::string(m_.instr(i).name),
                     .expected = absl::StrCat("manual axes ", AxesText(mesh_, p_.regions[a])),
                     .found = AxesText(mesh_, p_.regions[b]),
                     .fix = "pass the value into the region as an operand, and out as a result"});
  }

  absl::Status Spread() {
    while (!queue_.empty()) {
      const uint32_t c = queue_.back();
      queue_.pop_back();
      const auto it = edges_.find(c);
      if (it == edges_.end()) continue;
      for (InstrId id : it->second) {
        const ManualBoundary& b = *Boundary(id);
        const uint32_t result = Find(id.value);
        // If the region of one side is known, that of the other side follows.
        int outside = kUnknown, inside = kUnknown;
        int& result_side = b.entry ? inside : outside;
        int& operand_side = b.entry ? outside : inside;
        result_side = region_[result];
        for (InstrId operand : m_.operands(id)) {
          if (!neutral_[operand.value] && operand_side == kUnknown) {
            operand_side = region_[Find(operand.value)];
          }
        }
        if (outside != kUnknown) {
          SHARDCALL_ASSIGN_OR_RETURN(inside, Inner(id, outside, b.manual_axes));
        } else if (inside != kUnknown) {
          SHARDCALL_ASSIGN_OR_RETURN(outside, Outer(id, inside, b.manual_axes));
        }
        SHARDCALL_RETURN_IF_ERROR(Anchor(id, result_side));
        for (InstrId operand : m_.operands(id)) {
          if (!neutral_[operand.value]) SHARDCALL_RETURN_IF_ERROR(Anchor(operand, operand_side));
        }
      }
    }
    return absl::OkStatus();
  }

  // Components in which a sharding names manual axes.
  absl::Status AnchorNamed() {
    for (int c = 0; c < m_.num_computations(); ++c) {
      if (!owned_[c]) continue;
      for (InstrId id : m_.comp(CompId(c)).instructions) {
        if (neutral_[id.value] || IsTupling(m_.instr(id)) || region_[Find(id.value)] != kUnknown)
          continue;
        const std::optional<int> region = NamedRegion(id);
        if (!region.has_value()) continue;
        SHARDCALL_RETURN_IF_ERROR(Anchor(id, *region));
        SHARDCALL_RETURN_IF_ERROR(Spread());
      }
    }
    return absl::OkStatus();
  }

  // Components that are alive only through side effects: they take the region of the call that
  // they were inlined from, or of the caller of their computation.
  absl::Status AnchorTheRest() {
    SHARDCALL_RETURN_IF_ERROR(AnchorNamed());
    for (int c = 0; c < m_.num_computations(); ++c) {
      if (!owned_[c]) continue;
      for (InstrId id : m_.comp(CompId(c)).instructions) {
        if (neutral_[id.value] || region_[Find(id.value)] != kUnknown) continue;
        int region = owner_[c].valid() ? region_[Find(owner_[c].value)] : 0;
        for (int f = inlined_.frame_of[id.value]; f > 0; f = inlined_.frames[f].parent) {
          const InstrId value = inlined_.frames[f].value;
          if (!value.valid() || neutral_[value.value]) continue;
          if (region_[Find(value.value)] == kUnknown) continue;
          region = region_[Find(value.value)];
          break;
        }
        if (const ManualBoundary* b = Boundary(id); b != nullptr && b->entry) {
          SHARDCALL_ASSIGN_OR_RETURN(region, Inner(id, region, b->manual_axes));
        }
        SHARDCALL_RETURN_IF_ERROR(Anchor(id, region));
        SHARDCALL_RETURN_IF_ERROR(Spread());
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckEdges() {
    for (InstrId id : boundaries_) {
      if (!owned_[m_.instr(id).computation.value]) continue;
      const ManualBoundary& b = *Boundary(id);
      const int result = region_[Find(id.value)];
      SHARDCALL_ASSIGN_OR_RETURN(const int operand, OperandRegion(id, b, result));
      for (InstrId o : m_.operands(id)) {
        if (neutral_[o.value] || region_[Find(o.value)] == operand) continue;
        return Crossing(o, operand, region_[Find(o.value)]);
      }
    }
    return absl::OkStatus();
  }
  absl::StatusOr<int> OperandRegion(InstrId id, const ManualBoundary& b, int result) {
    return b.entry ? Outer(id, result, b.manual_axes) : Inner(id, result, b.manual_axes);
  }

  // From users to operands: each copy of a neutral value is in one region, and needs its operands
  // in that region.
  absl::Status PlaceNeutral() {
    struct Demand {
      int region;
      ModuleEdit::Use use;
    };
    absl::flat_hash_map<InstrId, std::vector<Demand>> demands;
    const auto demand = [&](InstrId user, int clone, int region) {
      const auto operands = m_.operands(user);
      for (size_t k = 0; k < operands.size(); ++k) {
        if (neutral_[operands[k].value]) {
          demands[operands[k]].push_back({region, {user, static_cast<int>(k), clone}});
        }
      }
    };
    for (int c = 0; c < m_.num_computations(); ++c) {
      if (!owned_[c]) continue;
      const Computation& comp = m_.comp(CompId(c));
      const int home = owner_[c].valid() ? region_[Find(owner_[c].value)] : 0;
      for (size_t k = comp.instructions.size(); k-- > 0;) {
        const InstrId id = comp.instructions[k];
        if (!neutral_[id.value]) {
          int region = region_[Find(id.value)];
          if (const ManualBoundary* b = Boundary(id); b != nullptr) {
            SHARDCALL_ASSIGN_OR_RETURN(region, OperandRegion(id, *b, region));
          }
          demand(id, -1, region);
          continue;
        }
        const auto it = demands.find(id);
        const bool used = it != demands.end();
        const int first = id == comp.root || !used ? home : it->second[0].region;
        p_.region_of[id.value] = static_cast<uint16_t>(first);
        absl::InlinedVector<std::pair<int, int>, 4> clones;  // region, clone
        if (used) {
          for (const Demand& d : it->second) {
            if (d.region == first) continue;
            auto at = std::find_if(clones.begin(), clones.end(),
                                   [&](const auto& e) { return e.first == d.region; });
            if (at == clones.end()) {
              clones.push_back({d.region, static_cast<int>(edit_.clones.size())});
              edit_.clones.push_back({id, {}});
              at = clones.end() - 1;
            }
            edit_.clones[at->second].uses.push_back(d.use);
          }
        }
        demand(id, -1, first);
        for (const auto& [region, clone] : clones) demand(id, clone, region);
      }
    }
    return absl::OkStatus();
  }

  const InlinedModule& inlined_;
  const Module& m_;
  Program& p_;
  const BaseMesh& mesh_;
  ModuleEdit& edit_;
  std::vector<bool> neutral_, owned_;
  std::vector<InstrId> owner_;    // by computation: the instruction that calls it
  std::vector<uint32_t> parent_;  // union-find over instructions
  std::vector<int> region_;       // by component
  absl::flat_hash_map<uint32_t, std::vector<InstrId>> edges_;  // component -> its boundaries
  std::vector<InstrId> boundaries_;
  std::vector<uint32_t> queue_;
};

}  // namespace

AxisList AsSet(const BaseMesh& mesh, absl::Span<const AxisRef> axes) {
  AxisList sorted(axes.begin(), axes.end());
  std::sort(sorted.begin(), sorted.end());
  return Canonical(mesh, sorted);
}

absl::Status FindRegions(const InlinedModule& inlined, Program* program, ModuleEdit* edit) {
  return RegionFinder(inlined, program, edit).Run();
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
