// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/shapes/dim_labels.h"

#include <algorithm>

namespace shardcall {
inline namespace internal {
namespace {

bool ParseSide(absl::string_view labels, char batch, char feature, DimLabels::Side* side) {
  *side = DimLabels::Side();
  side->rank = static_cast<int>(labels.size());
  side->spatial.assign(labels.size(), -1);
  size_t spatial = 0;
  for (int d = 0; d < side->rank; ++d) {
    const char c = labels[d];
    if (c == batch && side->batch < 0) {
      side->batch = d;
    } else if (c == feature && side->feature < 0) {
      side->feature = d;
    } else if (c == '?') {
      side->has_unknown = true;
    } else if (c >= '0' && c <= '9' && c - '0' < side->rank && side->spatial[c - '0'] < 0) {
      side->spatial[c - '0'] = d;
      ++spatial;
    } else {
      return false;
    }
  }
  // If a number is left out, a higher one is missing now, and a -1 remains.
  side->spatial.resize(spatial);
  return side->batch >= 0 && side->feature >= 0 &&
         std::find(side->spatial.begin(), side->spatial.end(), -1) == side->spatial.end();
}

}  // namespace

bool ParseDimLabels(absl::string_view text, DimLabels* labels) {
  const size_t bar = text.find('_'), arrow = text.find("->");
  if (bar == absl::string_view::npos || arrow == absl::string_view::npos || arrow < bar) {
    return false;
  }
  return ParseSide(text.substr(0, bar), 'b', 'f', &labels->lhs) &&
         ParseSide(text.substr(bar + 1, arrow - bar - 1), 'i', 'o', &labels->rhs) &&
         ParseSide(text.substr(arrow + 2), 'b', 'f', &labels->out) &&
         labels->lhs.spatial.size() == labels->rhs.spatial.size() &&
         labels->lhs.spatial.size() == labels->out.spatial.size();
}

}  // namespace internal
}  // namespace shardcall
