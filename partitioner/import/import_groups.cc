// SPDX-License-Identifier: Apache-2.0
// Groups of values that are to be sharded alike: those of Shardy's ShardingGroup calls, and
// GSPMD's shard_as and shard_like.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/import_annotations.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {
namespace {

// Whether a constraint leaves a group no choice.
bool Decides(const ShardingConstraint& c) {
  return !c.unknown && c.maximal_device < 0 && c.IsFullyClosed();
}

bool ShardedAlike(const ShardingConstraint& a, const ShardingConstraint& b) {
  if (a.mesh != b.mesh || a.dims.size() != b.dims.size()) return false;
  for (size_t d = 0; d < a.dims.size(); ++d) {
    if (a.dims[d].axes != b.dims[d].axes) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<int64_t> Annotations::GroupOf(InstrId id) {
  const Instruction& i = m_.instr(id);
  absl::string_view text = Attribute(i, kSdyShardingGroupId);
  if (const size_t colon = text.find(':'); colon != absl::string_view::npos) {
    text = text.substr(0, colon);
  }
  int64_t group = -1;
  if (!absl::SimpleAtoi(text, &group) || group < 0 || m_.operands(i).size() != 1 ||
      LeafShape(m_.operand(id, 0), 0) == nullptr) {
    return ToStatus({.code = "E165",
                     .message = "a sharding group needs one array and an id",
                     .where = std::string(i.name),
                     .expected = absl::StrCat(kSdyShardingGroupId, "=\"0 : i64\""),
                     .found = std::string(text),
                     .fix = "Give it one array operand and an id of 0 or more"});
  }
  return group;
}

// The group applies to the operands; the custom call has no value of its own. Groups that have a
// value in common are one.
absl::Status Annotations::ReadGroups(absl::Span<const InstrId> calls) {
  std::map<int64_t, int64_t> joined;  // by id: one of a smaller id that it is one group with
  std::map<uint32_t, int64_t> group_of;
  const auto find = [&](int64_t id) {
    for (auto at = joined.find(id); at != joined.end(); at = joined.find(id)) id = at->second;
    return id;
  };
  for (InstrId id : calls) {
    SHARDCALL_ASSIGN_OR_RETURN(const int64_t own, GroupOf(id));
    const uint32_t value = p_.leaves.canonical(m_.operand(id, 0), 0).value;
    const int64_t group = find(own), other = find(group_of.try_emplace(value, own).first->second);
    if (group != other) joined[std::max(group, other)] = std::min(group, other);
  }
  for (InstrId id : calls) {
    const InstrId operand = m_.operand(id, 0);
    const ShardingConstraint*& now = p_.constraints[p_.leaves.leaf(operand).value];
    ShardingConstraint c =
        now != nullptr ? *now : OpenConstraint(p_.mesh, m_.instr(operand).shape->rank());
    c.shard_as = find(group_of.at(p_.leaves.canonical(operand, 0).value));
    now = Own(std::move(c));
  }
  return absl::OkStatus();
}

void WarnOfGroups(Program* program) {
  Program& p = *program;
  using Key = std::pair<bool, int64_t>;  // whether it is shard_as; its id
  std::map<Key, LeafId> first, decided;
  std::set<Key> told;
  const auto warn = [&](const Key& key, LeafId a, LeafId b, const auto& what_of) {
    if (!told.insert(key).second) return;
    p.warnings.push_back(absl::StrCat("W211 the values %", p.module.instr(p.leaves.instr(a)).name,
                                      " and %", p.module.instr(p.leaves.instr(b)).name,
                                      " of sharding group ", key.second, " are ", what_of(a),
                                      " and ", what_of(b), ", so that they are not sharded alike"));
  };
  for (uint32_t l = 0; l < p.constraints.size(); ++l) {
    const LeafId leaf(l);
    const ShardingConstraint* c = p.constraints[l];
    if (c == nullptr || (c->shard_as < 0 && c->shard_like < 0)) continue;
    if (!p.LeafShape(leaf)->IsArray()) continue;
    const bool as = c->shard_as >= 0;
    const Key key(as, as ? c->shard_as : c->shard_like);
    const LeafId other = first.try_emplace(key, leaf).first->second;
    if (p.LeafShape(other)->dims() != p.LeafShape(leaf)->dims()) {
      warn(key, other, leaf, [&](LeafId x) { return p.LeafShape(x)->ToString(false); });
      continue;
    }
    if (!Decides(*c)) continue;
    const LeafId said = decided.try_emplace(key, leaf).first->second;
    if (ShardedAlike(*p.constraints[said.value], *c)) continue;
    warn(key, said, leaf, [&](LeafId x) {
      const ShardingConstraint& own = *p.constraints[x.value];
      ShardingBuilder b(own.mesh, static_cast<int>(own.dims.size()));
      for (size_t d = 0; d < own.dims.size(); ++d) b.dims[d] = own.dims[d].axes;
      return absl::StrCat("annotated ", b.Intern(p.module.context())->ToString());
    });
  }
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
