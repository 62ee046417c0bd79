// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/whole_axes.h"

#include <vector>

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {

AxisList WholeAxesThatDivide(const BaseMesh& mesh, absl::Span<const AxisRef> axes, int64_t size) {
  std::vector<AxisList> whole;
  int64_t covered = 1;
  for (const BaseMesh::NamedAxis& named : mesh.names()) {
    whole.push_back(named.refs);
    covered *= AxesSize(named.refs);
  }
  if (covered != mesh.num_devices()) {
    whole.clear();
    for (int k = 0; k < mesh.num_axes(); ++k) whole.push_back({mesh.FullAxis(k)});
  }
  AxisList out, rest = Canonical(mesh, axes);
  while (!rest.empty()) {
    const auto next = absl::c_find_if(
        whole, [&](const AxisList& w) { return AxesSize(w) > 1 && IsPrefix(mesh, w, rest); });
    if (next == whole.end() || size % AxesSize(*next) != 0) break;
    size /= AxesSize(*next);
    out.insert(out.end(), next->begin(), next->end());
    rest = RemovePrefix(mesh, *next, rest);
  }
  return Canonical(mesh, out);
}

}  // namespace internal
}  // namespace shardcall
