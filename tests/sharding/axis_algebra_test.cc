// SPDX-License-Identifier: Apache-2.0
// The axis algebra against explicit coordinates, over all small meshes.
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "shardcall/sharding/axis_names.h"
#include "shardcall/sharding/mesh.h"
#include "tests/sharding/mesh_cases.h"

namespace shardcall {
namespace {

// Calls f(mesh) for every small mesh.
template <typename F>
void ForEachMesh(const F& f) {
  for (const auto& sizes : SmallMeshSizes()) {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    f(BaseMesh(sizes, DeviceOrder::Identity(n)));
  }
}

// `prefix` is a major part of `axes`: its coordinate is theirs, divided.
bool IsMajorPart(const BaseMesh& mesh, const AxisList& prefix, const AxisList& axes) {
  const int64_t rest = AxesSize(axes) / AxesSize(prefix);
  if (rest * AxesSize(prefix) != AxesSize(axes)) return false;
  const auto p = Coordinates(mesh, prefix), a = Coordinates(mesh, axes);
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] != a[i] / rest) return false;
  }
  return true;
}

TEST(AxisAlgebraTest, CanonicalListsAreEqualExactlyWhenCoordinatesAre) {
  ForEachMesh([](const BaseMesh& mesh) {
    std::set<std::pair<std::vector<int64_t>, int64_t>> seen;
    std::set<std::vector<AxisRef>> lists;
    for (const AxisList& axes : AllLists(mesh, 2)) {
      const AxisList canonical = Canonical(mesh, axes);
      ASSERT_EQ(Coordinates(mesh, canonical), Coordinates(mesh, axes));
      seen.insert({Coordinates(mesh, axes), AxesSize(axes)});
      lists.insert(std::vector<AxisRef>(canonical.begin(), canonical.end()));
    }
    EXPECT_EQ(seen.size(), lists.size());
  });
}

TEST(AxisAlgebraTest, PartsThatDoNotOverlapCombineFreely) {
  ForEachMesh([](const BaseMesh& mesh) {
    for (const AxisRef& a : AllParts(mesh)) {
      for (const AxisRef& b : AllParts(mesh)) {
        std::set<int64_t> pairs;
        const auto ca = Coordinates(mesh, {a}), cb = Coordinates(mesh, {b});
        for (size_t p = 0; p < ca.size(); ++p) pairs.insert(ca[p] * 1000 + cb[p]);
        // Parts of an axis whose cuts do not divide count as overlapping even
        // where every pair of coordinates occurs.
        ASSERT_TRUE(Overlaps(a, b) || pairs.size() == a.size * b.size);
        ASSERT_EQ(Overlaps(a, b), Overlaps(b, a));
        ASSERT_EQ(Contains({a}, b) && Contains({b}, a), a == b);
      }
    }
  });
}

TEST(AxisAlgebraTest, ContainsHoldsForPartsAndForWhatNeighboursCoverTogether) {
  const BaseMesh mesh({12}, DeviceOrder::Identity(12));
  EXPECT_TRUE(Contains({{0, 1, 4}}, {0, 2, 2}));
  EXPECT_FALSE(Contains({{0, 1, 4}}, {0, 1, 3}));
  EXPECT_TRUE(Contains({{0, 4, 3}, {0, 1, 4}}, {0, 2, 6}));
  EXPECT_FALSE(Contains({{0, 1, 2}, {0, 4, 3}}, {0, 1, 12}));
  EXPECT_TRUE(Contains({}, {0, 1, 1}));
}

TEST(AxisAlgebraTest, CommonPrefixIsTheLongestCommonMajorPart) {
  ForEachMesh([](const BaseMesh& mesh) {
    const std::vector<AxisList> lists = AllLists(mesh, 2);
    for (const AxisList& a : lists) {
      for (const AxisList& b : lists) {
        const AxisList common = CommonPrefix(mesh, a, b);
        ASSERT_TRUE(IsMajorPart(mesh, common, a));
        ASSERT_TRUE(IsMajorPart(mesh, common, b));
        // Nothing longer among all lists is a major part of both.
        for (const AxisList& longer : lists) {
          if (AxesSize(longer) > AxesSize(common) && AxesSize(a) % AxesSize(longer) == 0 &&
              AxesSize(b) % AxesSize(longer) == 0) {
            ASSERT_FALSE(IsMajorPart(mesh, longer, a) && IsMajorPart(mesh, longer, b))
                << AxisRefsText(NameAxes(mesh, a)) << " and " << AxisRefsText(NameAxes(mesh, b))
                << " have " << AxisRefsText(NameAxes(mesh, longer));
          }
        }
        ASSERT_EQ(IsPrefix(mesh, a, b), IsMajorPart(mesh, a, b));
        if (IsPrefix(mesh, a, b)) {
          AxisList joined = a;
          const AxisList rest = RemovePrefix(mesh, a, b);
          joined.insert(joined.end(), rest.begin(), rest.end());
          ASSERT_EQ(Coordinates(mesh, joined), Coordinates(mesh, b));
        }
      }
    }
  });
}

TEST(AxisAlgebraTest, PrefixOfSizeDividesAndIsAMajorPart) {
  ForEachMesh([](const BaseMesh& mesh) {
    for (const AxisList& axes : AllLists(mesh, 2)) {
      for (int64_t size = 1; size <= 24; ++size) {
        const AxisList prefix = PrefixOfSize(mesh, axes, size);
        ASSERT_EQ(size % AxesSize(prefix), 0);
        ASSERT_TRUE(IsMajorPart(mesh, prefix, axes));
        if (AxesSize(axes) != 0 && size % AxesSize(axes) == 0) {
          ASSERT_EQ(prefix, Canonical(mesh, axes));
        }
      }
    }
  });
}

TEST(AxisAlgebraTest, MinusAndComplementAreWhatIsLeft) {
  ForEachMesh([](const BaseMesh& mesh) {
    for (const AxisList& used : AllLists(mesh, 2)) {
      const AxisList rest = Complement(mesh, used);
      EXPECT_FALSE(Overlaps(rest, used));
      EXPECT_EQ(AxesSize(rest) * AxesSize(used), mesh.num_devices());
      for (const AxisList& axes : AllLists(mesh, 1)) {
        const AxisList left = Minus(mesh, axes, used);
        ASSERT_FALSE(Overlaps(left, used));
        for (const AxisRef& l : left) ASSERT_TRUE(Contains(axes, l));
        ASSERT_TRUE(Overlaps(axes, used) || left == Canonical(mesh, axes));
      }
    }
  });
}

}  // namespace
}  // namespace shardcall
