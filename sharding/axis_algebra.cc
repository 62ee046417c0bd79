// SPDX-License-Identifier: Apache-2.0
// Treats axis parts as intervals: a part of axis k spans the factors from pre_size to pre_size *
// size of the axis. Two parts are disjoint where one ends before the other begins and the cuts
// divide each other. Parts whose cuts do not (3 and 2 in an axis of 6) cannot be used together and
// count as overlapping.
#include <algorithm>
#include <numeric>

#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {
namespace {

int64_t Begin(AxisRef a) { return a.pre_size; }
int64_t End(AxisRef a) { return static_cast<int64_t>(a.pre_size) * a.size; }

AxisRef Part(uint16_t axis, int64_t begin, int64_t end) {
  return {axis, static_cast<uint32_t>(begin), static_cast<uint32_t>(end / begin)};
}

void AppendMerged(AxisRef a, AxisList* out) {
  if (a.size == 1) return;
  if (!out->empty() && out->back().axis == a.axis && End(out->back()) == Begin(a)) {
    out->back().size *= a.size;
  } else {
    out->push_back(a);
  }
}

// Result of matching two lists: the common leading part, and the rest of `b` after it.
struct Common {
  AxisList prefix;
  AxisList rest_of_b;
};

// Takes the next part if `current` is used up, and merges the parts that continue it.
void Fetch(absl::Span<const AxisRef> axes, size_t* next, AxisRef* current) {
  while (*next < axes.size()) {
    const AxisRef& a = axes[*next];
    if (current->size == 1) {
      *current = a;
    } else if (a.size != 1 && (a.axis != current->axis || Begin(a) != End(*current))) {
      return;
    } else {
      current->size *= a.size;
    }
    ++*next;
  }
}

Common MatchPrefix(absl::Span<const AxisRef> a, absl::Span<const AxisRef> b) {
  Common out;
  size_t i = 0, j = 0;
  AxisRef x{}, y{};  // what is left of a[i] and b[j]; size 1: take the next
  while (true) {
    Fetch(a, &i, &x);
    Fetch(b, &j, &y);
    if (x.size == 1 || y.size == 1 || x.axis != y.axis || x.pre_size != y.pre_size) break;
    const uint32_t common = std::gcd(x.size, y.size);
    if (common == 1) break;
    const AxisRef head{x.axis, x.pre_size, common};
    AppendMerged(head, &out.prefix);
    const bool stop = common != x.size && common != y.size;
    x = {x.axis, x.pre_size * common, x.size / common};
    y = {y.axis, y.pre_size * common, y.size / common};
    if (stop) break;
  }
  if (y.size > 1) AppendMerged(y, &out.rest_of_b);
  for (; j < b.size(); ++j) AppendMerged(b[j], &out.rest_of_b);
  return out;
}

}  // namespace

bool Overlaps(AxisRef a, AxisRef b) {
  if (a.axis != b.axis || a.size == 1 || b.size == 1) return false;
  return Begin(b) % End(a) != 0 && Begin(a) % End(b) != 0;
}

bool Overlaps(absl::Span<const AxisRef> a, absl::Span<const AxisRef> b) {
  for (const AxisRef& x : a) {
    for (const AxisRef& y : b) {
      if (Overlaps(x, y)) return true;
    }
  }
  return false;
}

bool Contains(absl::Span<const AxisRef> set, AxisRef a) {
  int64_t at = Begin(a);
  while (at < End(a)) {
    bool moved = false;
    for (const AxisRef& s : set) {
      if (s.axis != a.axis || Begin(s) > at || End(s) <= at) continue;
      if (at % Begin(s) != 0 || End(s) % at != 0) continue;
      const int64_t end = std::min(End(s), End(a));
      if (End(s) % end != 0 || End(a) % end != 0) continue;
      at = end;
      moved = true;
      break;
    }
    if (!moved) return false;
  }
  return true;
}

AxisList Canonical(const BaseMesh&, absl::Span<const AxisRef> axes) {
  AxisList out;
  for (const AxisRef& a : axes) AppendMerged(a, &out);
  return out;
}

AxisList CommonPrefix(const BaseMesh&, absl::Span<const AxisRef> a, absl::Span<const AxisRef> b) {
  return MatchPrefix(a, b).prefix;
}

bool IsPrefix(const BaseMesh&, absl::Span<const AxisRef> prefix, absl::Span<const AxisRef> axes) {
  return AxesSize(MatchPrefix(prefix, axes).prefix) == AxesSize(prefix);
}

AxisList RemovePrefix(const BaseMesh&, absl::Span<const AxisRef> prefix,
                      absl::Span<const AxisRef> axes) {
  Common common = MatchPrefix(prefix, axes);
  SHARDCALL_CHECK(AxesSize(common.prefix) == AxesSize(prefix));
  return std::move(common.rest_of_b);
}

AxisList PrefixOfSize(const BaseMesh&, absl::Span<const AxisRef> axes, int64_t size) {
  AxisList out;
  size_t next = 0;
  while (next < axes.size()) {
    AxisRef a{};
    Fetch(axes, &next, &a);
    const int64_t take = std::gcd(static_cast<int64_t>(a.size), size);
    AppendMerged({a.axis, a.pre_size, static_cast<uint32_t>(take)}, &out);
    if (take != a.size) break;
    size /= take;
  }
  return out;
}

AxisList Minus(const BaseMesh&, absl::Span<const AxisRef> axes, absl::Span<const AxisRef> used) {
  AxisList out;
  AxisList pieces, next;
  for (const AxisRef& a : axes) {
    pieces.assign(1, a);
    for (const AxisRef& u : used) {
      if (u.axis != a.axis) continue;
      next.clear();
      for (const AxisRef& p : pieces) {
        if (!Overlaps(p, u)) {
          next.push_back(p);
          continue;
        }
        if (Begin(p) < Begin(u) && Begin(u) % Begin(p) == 0 && End(p) % Begin(u) == 0) {
          next.push_back(Part(p.axis, Begin(p), Begin(u)));
        }
        if (End(u) < End(p) && End(p) % End(u) == 0 && End(u) % Begin(p) == 0) {
          next.push_back(Part(p.axis, End(u), End(p)));
        }
      }
      pieces.swap(next);
    }
    for (const AxisRef& p : pieces) AppendMerged(p, &out);
  }
  return out;
}

AxisList Complement(const BaseMesh& mesh, absl::Span<const AxisRef> used) {
  AxisList all;
  for (int k = 0; k < mesh.num_axes(); ++k) all.push_back(mesh.FullAxis(k));
  return Minus(mesh, all, used);
}

}  // namespace shardcall
