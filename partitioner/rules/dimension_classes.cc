// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/rules/dimension_classes.h"

#include <algorithm>

#include "shardcall/partitioner/import/value_flow.h"

namespace shardcall {
inline namespace internal {

DimensionClasses::DimensionClasses(const Program& program, RuleTable& rules) : program_(program) {
  const LeafTable& leaves = program.leaves;
  first_.assign(leaves.num_leaves(), -1);
  for (int l = 0; l < leaves.num_leaves(); ++l) {
    const LeafId leaf(l);
    if (leaves.canonical(leaf) != leaf) continue;
    first_[l] = static_cast<int>(nodes_.size());
    const Shape* shape = program_.LeafShape(leaf);
    for (int d = 0; d < (shape->IsArray() ? shape->rank() : 0); ++d) NewNode(shape->dim(d));
  }
  const Module& m = program.module;
  for (int n = 0; n < m.num_instructions(); ++n) {
    const InstrId id(n);
    const ShardingRule* rule = rules.rule(id);
    if (rule != nullptr) {
      AddRule(id, *rule);
    } else {
      AddStructural(id);
    }
  }
}

std::vector<int> DimensionClasses::Atoms(LeafId leaf, int dim) const {
  return Expanded({NodeOf(leaf, dim)});
}

int DimensionClasses::NewNode(int64_t size) {
  nodes_.emplace_back();
  nodes_.back().size = size;
  return static_cast<int>(nodes_.size()) - 1;
}

int DimensionClasses::Root(int n) const {
  while (nodes_[n].parent >= 0) n = nodes_[n].parent;
  return n;
}

void DimensionClasses::Expand(int n, std::vector<int>* out) const {
  std::vector<int> stack = {n};
  while (!stack.empty()) {
    const int top = Root(stack.back());
    stack.pop_back();
    if (nodes_[top].major < 0) {
      out->push_back(top);
      continue;
    }
    stack.push_back(nodes_[top].minor);
    stack.push_back(nodes_[top].major);
  }
}

std::vector<int> DimensionClasses::Expanded(absl::Span<const int> nodes) const {
  std::vector<int> out;
  for (int n : nodes) Expand(n, &out);
  return out;
}

void DimensionClasses::Fix(absl::Span<const int> nodes) {
  for (int n : Expanded(nodes)) nodes_[n].fixed = true;
}

void DimensionClasses::Split(int n, int64_t major_size) {
  const int64_t size = nodes_[n].size;
  const bool fixed = nodes_[n].fixed;
  const int major = NewNode(major_size), minor = NewNode(size / major_size);
  nodes_[major].fixed = nodes_[minor].fixed = fixed;
  nodes_[n].major = major;
  nodes_[n].minor = minor;
}

void DimensionClasses::Unify(absl::Span<const int> a, absl::Span<const int> b) {
  auto longer_than_one = [&](absl::Span<const int> list) {
    std::vector<int> out;
    for (int n : Expanded(list)) {
      if (nodes_[n].size != 1) out.push_back(n);
    }
    return out;
  };
  std::vector<int> x = longer_than_one(a), y = longer_than_one(b);
  size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    const int m = Root(x[i]), n = Root(y[j]);
    if (m == n) {
      ++i, ++j;
      continue;
    }
    const int64_t p = nodes_[m].size, q = nodes_[n].size;
    if (p == q && nodes_[m].major < 0 && nodes_[n].major < 0) {
      nodes_[n].parent = m;
      nodes_[m].fixed = nodes_[m].fixed || nodes_[n].fixed;
      ++i, ++j;
    } else if (nodes_[m].major >= 0 || nodes_[n].major >= 0) {
      // The split also changed this dimension, since the same atom occurs here twice.
      x = longer_than_one(absl::MakeConstSpan(x).subspan(i));
      y = longer_than_one(absl::MakeConstSpan(y).subspan(j));
      i = j = 0;
    } else if (q > 0 && p > q && p % q == 0) {
      Split(m, q);
      x[i] = nodes_[m].minor;
      Unify({nodes_[m].major}, {n});
      ++j;
    } else if (p > 0 && q > p && q % p == 0) {
      Split(n, p);
      y[j] = nodes_[n].minor;
      Unify({m}, {nodes_[n].major});
      ++i;
    } else {
      break;
    }
  }
  Fix(absl::MakeConstSpan(x).subspan(i));
  Fix(absl::MakeConstSpan(y).subspan(j));
}

void DimensionClasses::UnifyLeaves(LeafId a, LeafId b) {
  const Shape* shape = program_.LeafShape(a);
  const Shape* other = program_.LeafShape(b);
  if (!shape->IsArray() || !other->IsArray() || shape->rank() != other->rank()) return;
  for (int d = 0; d < shape->rank(); ++d) Unify({NodeOf(a, d)}, {NodeOf(b, d)});
}

void DimensionClasses::AddRule(InstrId id, const ShardingRule& rule) {
  const Module& m = program_.module;
  std::vector<LeafId> leaves;
  for (InstrId o : m.operands(id)) {
    for (int k = 0; k < m.instr(o).shape->num_leaves(); ++k) {
      leaves.push_back(program_.leaves.leaf(o, k));
    }
  }
  for (int k = 0; k < m.instr(id).shape->num_leaves(); ++k) {
    leaves.push_back(program_.leaves.leaf(id, k));
  }
  std::vector<int> factor_node;
  for (const Factor& f : rule.factors) factor_node.push_back(NewNode(f.size));
  std::vector<bool> same(rule.factors.size(), true);
  for (int t = 0; t < rule.num_tensors(); ++t) {
    for (const FactorList& dim : rule.tensor(t).dims) {
      for (int f : dim) same[f] = same[f] && rule.Extent(t, f) == rule.factors[f].size;
    }
  }
  for (int t = 0; t < rule.num_tensors(); ++t) {
    const auto& dims = rule.tensor(t).dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      const int node = NodeOf(leaves[t], static_cast<int>(d));
      std::vector<int> nodes;
      bool whole = true;
      for (int f : dims[d]) {
        nodes.push_back(factor_node[f]);
        whole = whole && same[f];
      }
      if (!whole) {
        Fix({node});
      } else if (!nodes.empty()) {
        Unify({node}, nodes);
      }
    }
  }
}

void DimensionClasses::AddStructural(InstrId id) {
  const Module& m = program_.module;
  auto unify = [&](InstrId a, InstrId b) {
    const int n = std::min(m.instr(a).shape->num_leaves(), m.instr(b).shape->num_leaves());
    for (int k = 0; k < n; ++k) {
      UnifyLeaves(program_.leaves.leaf(a, k), program_.leaves.leaf(b, k));
    }
  };
  if (program_.annotation[id.value] == AnnotationKind::kIdentity) {
    unify(m.operand(id, 0), id);
  } else if (HasTrait(m.instr(id).opcode, kControlFlow)) {
    for (const ValueFlow& flow : ValueFlows(m, id)) unify(flow.from, flow.to);
  }
}

}  // namespace internal
}  // namespace shardcall
