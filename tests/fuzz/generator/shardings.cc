// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/fuzz/generator/ops.h"

namespace shardcall {
namespace {

std::vector<int64_t> MeshSizes(Random& random, int64_t devices) {
  static const auto* const kFour = new std::vector<std::vector<int64_t>>{{4}, {2, 2}};
  static const auto* const kSix = new std::vector<std::vector<int64_t>>{{6}, {2, 3}, {3, 2}};
  static const auto* const kEight =
      new std::vector<std::vector<int64_t>>{{8}, {2, 4}, {4, 2}, {2, 2, 2}};
  switch (devices) {
    case 4: return random.Pick(*kFour);
    case 6: return random.Pick(*kSix);
    case 8: return random.Pick(*kEight);
    default: return {devices};
  }
}

// Now and then fewer devices, of a number that divides theirs.
int64_t SomeOf(Random& random, int64_t devices) {
  std::vector<int64_t> numbers;
  for (int64_t n = 2; n < devices; ++n) {
    if (devices % n == 0) numbers.push_back(n);
  }
  return !numbers.empty() && random.Chance(10) ? random.Pick(numbers) : devices;
}

}  // namespace

std::string RandomShardingText(Random& random, int rank, int64_t all_devices) {
  if (rank == 0 || random.Chance(8)) {
    return random.Chance(10) ? absl::StrCat("{maximal device=", random.Int(0, all_devices - 1), "}")
                             : "{replicated}";
  }
  const int64_t devices = SomeOf(random, all_devices);
  const std::vector<int64_t> sizes = MeshSizes(random, devices);
  std::vector<int> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (random.Chance(40)) random.Shuffle(&order);
  // Each axis goes to a dimension or, last, to none; in rising order.
  std::vector<int64_t> places;
  for (size_t k = 0; k < order.size(); ++k) {
    places.push_back(random.Int(0, rank - 1 + random.Chance(50)));
  }
  std::sort(places.begin(), places.end());

  if (devices == all_devices && random.Chance(25)) {  // named
    static constexpr const char* kNames[] = {"'a'", "'b'", "'c'"};
    std::vector<std::string> axes, dims(rank);
    for (size_t k = 0; k < sizes.size(); ++k)
      axes.push_back(absl::StrCat(kNames[k], "=", sizes[k]));
    for (size_t k = 0; k < order.size(); ++k) {
      if (places[k] == rank) continue;
      absl::StrAppend(&dims[places[k]], dims[places[k]].empty() ? "" : ", ", kNames[order[k]]);
    }
    for (std::string& d : dims) {
      if (random.Chance(20)) absl::StrAppend(&d, d.empty() ? "?" : ", ?");
      d = absl::StrCat("{", d, "}");
    }
    return absl::StrCat("{mesh[", absl::StrJoin(axes, ","), "], [", absl::StrJoin(dims, ", "),
                        "]}");
  }
  std::vector<int64_t> tiles(rank, 1), permuted;
  int64_t rest = 1;
  for (size_t k = 0; k < order.size(); ++k) {
    permuted.push_back(sizes[order[k]]);
    (places[k] == rank ? rest : tiles[places[k]]) *= sizes[order[k]];
  }
  if (rest > 1) tiles.push_back(rest);
  const bool identity = std::is_sorted(order.begin(), order.end());
  std::string text = absl::StrCat("{devices=[", absl::StrJoin(tiles, ","), "]");
  if (random.Chance(15)) {  // V1: any order of the devices
    std::vector<int64_t> list(all_devices);
    std::iota(list.begin(), list.end(), 0);
    random.Shuffle(&list);
    list.resize(devices);
    absl::StrAppend(&text, absl::StrJoin(list, ","));
  } else if (identity) {
    absl::StrAppend(&text, "<=[", devices, "]");
  } else {
    absl::StrAppend(&text, "<=[", absl::StrJoin(sizes, ","), "]T(", absl::StrJoin(order, ","), ")");
  }
  return absl::StrCat(text, rest > 1 ? " last_tile_dim_replicate}" : "}");
}

}  // namespace shardcall
