// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_mesh.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shardcall {

int64_t TestMesh::num_devices() const {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

std::vector<TestSharding> AllShardings(const TestMesh& mesh, int rank) {
  // Axes are put one by one at every place of every list of what there is.
  std::vector<TestSharding> all{TestSharding(rank)};
  for (int axis = 0; axis < static_cast<int>(mesh.sizes.size()); ++axis) {
    const size_t n = all.size();
    for (size_t i = 0; i < n; ++i) {
      for (int d = 0; d < rank; ++d) {
        for (size_t at = 0; at <= all[i][d].size(); ++at) {
          TestSharding next = all[i];
          next[d].insert(next[d].begin() + at, axis);
          all.push_back(std::move(next));
        }
      }
    }
  }
  return all;
}

std::string ShardingText(const TestMesh& mesh, const TestSharding& sharding) {
  std::vector<int64_t> tiles;
  std::vector<int> order;
  for (const std::vector<int>& dim : sharding) {
    int64_t n = 1;
    for (int a : dim) {
      n *= mesh.sizes[a];
      order.push_back(a);
    }
    tiles.push_back(n);
  }
  if (order.empty()) return "{replicated}";
  int64_t copies = 1;
  for (int a = 0; a < static_cast<int>(mesh.sizes.size()); ++a) {
    if (std::find(order.begin(), order.end(), a) != order.end()) continue;
    order.push_back(a);
    copies *= mesh.sizes[a];
  }
  if (copies > 1) tiles.push_back(copies);
  std::string text = absl::StrCat("{devices=[", absl::StrJoin(tiles, ","), "]<=[");
  if (std::is_sorted(order.begin(), order.end())) {
    absl::StrAppend(&text, mesh.num_devices(), "]");
  } else {
    absl::StrAppend(&text, absl::StrJoin(mesh.sizes, ","), "]T(", absl::StrJoin(order, ","), ")");
  }
  return absl::StrCat(text, copies > 1 ? " last_tile_dim_replicate}" : "}");
}

}  // namespace shardcall
