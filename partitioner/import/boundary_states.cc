// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/import/boundary_states.h"

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {

const Sharding* AcrossBoundary(const Program& program, InstrId id, int k, const Sharding* from,
                               const Sharding* to, const Sharding* state) {
  if (state->mesh() != from->mesh() || state->is_maximal() || state->manual() != from->manual() ||
      !state->partial().empty() || !from->partial().empty() || !to->partial().empty()) {
    return nullptr;
  }
  const Module& m = program.module;
  const ManualBoundary& boundary = program.boundaries.at(id);
  const Shape* const local =
      boundary.entry ? m.instr(id).shape->leaf(k) : m.instr(m.operand(id, k)).shape;
  ShardingBuilder across(to->mesh(), to->rank());
  across.manual.assign(to->manual().begin(), to->manual().end());
  for (int dim = 0; dim < to->rank(); ++dim) {
    const AxisList& manual = boundary.manual_dims[k][dim];
    absl::Span<const AxisRef> free = state->dim(dim);
    if (boundary.entry) {
      if (free.size() < manual.size() || !absl::c_equal(manual, free.subspan(0, manual.size()))) {
        return nullptr;
      }
      free.remove_prefix(manual.size());
    }
    const auto is_manual = [&](AxisRef axis) {
      return absl::c_any_of(boundary.manual_axes, [&](AxisRef m) { return m.axis == axis.axis; });
    };
    if (absl::c_any_of(free, is_manual)) return nullptr;
    if (!manual.empty() && local->dim(dim) % AxesSize(free) != 0) return nullptr;
    AxisList& dims = across.dims[dim];
    if (!boundary.entry) dims.assign(manual.begin(), manual.end());
    dims.insert(dims.end(), free.begin(), free.end());
  }
  return across.Intern(m.context());
}

}  // namespace internal
}  // namespace shardcall
