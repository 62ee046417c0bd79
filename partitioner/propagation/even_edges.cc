// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/even_edges.h"

#include <memory>
#include <vector>

#include "shardcall/sharding/context.h"
#include "shardcall/sharding/whole_axes.h"

namespace shardcall {
inline namespace internal {
namespace {

// What the edge has in place of `s`; the same if that is even. Null and maximal ones stay.
const Sharding* Even(Context& context, const Sharding* s, const Shape* shape) {
  if (s == nullptr || s->is_maximal() || !shape->IsArray()) return s;
  ShardingBuilder b(*s);
  for (int d = 0; d < s->rank(); ++d) {
    b.dims[d] = WholeAxesThatDivide(*s->mesh(), s->dim(d), shape->dim(d));
  }
  return b.Intern(context);
}

ShardingConstraint Closed(const Sharding& s) {
  ShardingConstraint c;
  c.mesh = s.mesh();
  c.dims.resize(s.rank());
  for (int d = 0; d < s.rank(); ++d) {
    c.dims[d].axes.assign(s.dim(d).begin(), s.dim(d).end());
  }
  c.unreduced.assign(s.partial().begin(), s.partial().end());
  c.unreduced_op = s.partial_op();
  return c;
}

}  // namespace

bool CloseUnevenParameters(const PropagationResult& found, Program* program) {
  const Module& m = program->module;
  bool any = false;
  size_t flat = 0;
  for (InstrId p : m.comp(m.entry()).parameters) {
    for (int k = 0; k < m.instr(p).shape->num_leaves(); ++k, ++flat) {
      if (flat >= program->may_set_parameter.size() || !program->may_set_parameter[flat]) continue;
      const LeafId leaf = program->leaves.leaf(p, k);
      const Sharding* const s = found.sharding[leaf.value];
      const Sharding* const even = Even(m.context(), s, m.instr(p).shape->leaf(k));
      if (even == s) continue;
      program->owned_constraints.push_back(std::make_unique<ShardingConstraint>(Closed(*even)));
      program->constraints[leaf.value] = program->owned_constraints.back().get();
      program->may_set_parameter[flat] = false;
      any = true;
    }
  }
  return any;
}

void EvenResults(const Program& program, PropagationResult* found) {
  const Module& m = program.module;
  const Shape* const root = m.instr(m.comp(m.entry()).root).shape;
  for (size_t k = 0; k < found->outputs.size() && k < program.may_set_output.size(); ++k) {
    if (!program.may_set_output[k]) continue;
    const Sharding*& s = found->outputs[k];
    s = Even(m.context(), s, root->leaf(static_cast<int>(k)));
  }
}

}  // namespace internal
}  // namespace shardcall
