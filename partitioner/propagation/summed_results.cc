// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/summed_results.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "shardcall/sharding/context.h"

namespace shardcall {
inline namespace internal {
namespace {

// Ops between a sum and the result; gradients pass a conversion, a scale, a transpose.
constexpr int kMostOps = 16;

// The axes that `to` has in its dimensions beyond those of `from`; false if it is not `from` with
// more axes.
bool AddedAxes(const Sharding& from, const Sharding& to, AxisList* added) {
  if (from.mesh() != to.mesh() || from.rank() != to.rank() || from.is_maximal() ||
      to.is_maximal() || !from.partial().empty() || !to.partial().empty() ||
      from.manual() != to.manual()) {
    return false;
  }
  for (int d = 0; d < from.rank(); ++d) {
    if (!IsPrefix(*from.mesh(), from.dim(d), to.dim(d))) return false;
    const AxisList rest = RemovePrefix(*from.mesh(), from.dim(d), to.dim(d));
    added->insert(added->end(), rest.begin(), rest.end());
  }
  return true;
}

bool Covers(const BaseMesh& mesh, const AxisList& axes, const AxisList& of) {
  return Minus(mesh, of, axes).empty();
}

}  // namespace

bool SummedResults::IsFree(LeafId leaf, size_t uses) const {
  return constraints_[leaf.value] == nullptr && uses_.of(leaf).size() == uses;
}

void SummedResults::Set(LeafId leaf, const Sharding* to, LeafId like) {
  for (int d = 0; d < to->rank(); ++d) {
    const int64_t brought = AxesSize(to->dim(d)) / sharding_[leaf.value]->num_shards(d);
    if (brought <= 1) continue;
    provenance_.at(leaf, d) = {.from = like,
                               .via = program_.leaves.instr(leaf),
                               .from_dim = static_cast<int16_t>(d),
                               .like = true,
                               .brought = static_cast<int32_t>(brought)};
  }
  sharding_[leaf.value] = to;
}

const Sharding* SummedResults::OfOperand(const ShardingRule& rule, int t, LeafId operand,
                                         const Sharding& to) const {
  const Sharding* const before = sharding_[operand.value];
  if (before == nullptr || before->mesh() != to.mesh() || before->is_maximal()) return nullptr;
  ShardingBuilder b(*before);
  const auto& dims = rule.tensor(t).dims;
  for (int d = 0; d < before->rank(); ++d) {
    if (dims[d].size() != 1) continue;
    for (int e = 0; e < to.rank(); ++e) {
      if (rule.results[0].dims[e] == dims[d]) b.dims[d].assign(to.dim(e).begin(), to.dim(e).end());
    }
  }
  return b.Intern(program_.module.context());  // null: a dimension that stays has one of the axes
}

bool SummedResults::Give(LeafId leaf, const Sharding* to, LeafId like, int depth) {
  const Module& m = program_.module;
  const InstrId id = program_.leaves.instr(leaf);
  AxisList added;
  if (depth == 0 || !m.instr(id).shape->IsArray() || rules_.op_class(id) != OpClass::kRule ||
      !AddedAxes(*sharding_[leaf.value], *to, &added) || added.empty()) {
    return false;
  }
  const ShardingRule& rule = *rules_.rule(id);
  absl::InlinedVector<LeafId, 4> operands;
  for (InstrId o : m.operands(id)) {
    for (int k = 0; k < m.instr(o).shape->num_leaves(); ++k) {
      operands.push_back(program_.leaves.canonical(o, k));
    }
  }
  AxisList summed;
  for (int t = 0; t < static_cast<int>(operands.size()); ++t) {
    const Sharding* const s = sharding_[operands[t].value];
    if (s == nullptr || s->mesh() != to->mesh()) continue;
    for (int d = 0; d < s->rank(); ++d) {
      const bool is_sum = absl::c_all_of(rule.tensor(t).dims[d], [&](int f) {
        return rule.factors[f].kind == FactorKind::kReduction;
      });
      if (is_sum) summed.insert(summed.end(), s->dim(d).begin(), s->dim(d).end());
    }
  }
  if (Covers(*to->mesh(), summed, added)) {
    Set(leaf, to, like);
    return true;
  }
  bool found = false;
  for (int t = 0; t < static_cast<int>(operands.size()); ++t) {
    if (!IsFree(operands[t], 1) || results_.contains(operands[t])) continue;
    const Sharding* const s = OfOperand(rule, t, operands[t], *to);
    if (s != nullptr && Give(operands[t], s, like, depth - 1)) found = true;  // each of a + b
  }
  if (found) Set(leaf, to, like);
  return found;
}

void SummedResults::Shard() {
  const Module& m = program_.module;
  if (!m.entry().valid() || !absl::c_linear_search(program_.may_set_output, true)) return;
  // The shardings of sharded parameters, each with the first one of it, by dimensions.
  absl::flat_hash_map<std::vector<int64_t>, absl::InlinedVector<LeafId, 2>> parameters;
  for (InstrId p : m.comp(m.entry()).parameters) {
    for (int k = 0; k < m.instr(p).shape->num_leaves(); ++k) {
      const LeafId leaf = program_.leaves.canonical(p, k);
      const Sharding* const s = sharding_[leaf.value];
      if (s == nullptr || !s->HasShardedDim()) continue;
      const auto dims = program_.LeafShape(leaf)->dims();
      auto& of_shape = parameters[std::vector<int64_t>(dims.begin(), dims.end())];
      const auto same = [&](LeafId other) { return sharding_[other.value] == s; };
      if (absl::c_none_of(of_shape, same)) of_shape.push_back(leaf);
    }
  }
  const InstrId root = m.comp(m.entry()).root;
  for (int k = 0; k < m.instr(root).shape->num_leaves(); ++k) {
    results_.insert(program_.leaves.canonical(root, k));
  }
  for (size_t k = 0; !parameters.empty() && k < program_.may_set_output.size(); ++k) {
    if (!program_.may_set_output[k]) continue;
    const LeafId leaf = program_.leaves.canonical(root, static_cast<int>(k));
    const Shape* const shape = program_.LeafShape(leaf);
    if (!shape->IsArray() || shape->rank() == 0) continue;
    const auto found =
        parameters.find(std::vector<int64_t>(shape->dims().begin(), shape->dims().end()));
    if (found == parameters.end()) continue;
    uses_.Collect();
    for (LeafId parameter : found->second) {
      const Sharding* const to = sharding_[parameter.value];
      if (IsFree(leaf, 0) && Give(leaf, to, parameter, kMostOps)) break;
    }
  }
}

}  // namespace internal
}  // namespace shardcall
