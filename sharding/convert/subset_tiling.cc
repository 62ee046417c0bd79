// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/convert/subset_tiling.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kMostListed = int64_t{1} << 20;

// Of a device id: (id / stride) % size.
struct Digit {
  int64_t size, stride;
};

// The digits in which ascending ids differ, minor to major: 1,3,9,11 differ in {2,2} and {2,8}.
// Empty where the ids are no grid, or one that does not divide `num_devices`.
std::vector<Digit> DigitsOf(absl::Span<const int64_t> ids, int64_t num_devices) {
  const int64_t count = ids.size();
  std::vector<Digit> digits;
  for (int64_t block = 1; block < count;) {
    const int64_t stride = ids[block] - ids[0];
    int64_t size = 1;
    while (size * block < count && ids[size * block] - ids[0] == size * stride) ++size;
    const bool nested = digits.empty() || stride % (digits.back().size * digits.back().stride) == 0;
    if (!nested || count % (block * size) != 0) return {};
    digits.push_back({size, stride});
    block *= size;
  }
  if (digits.empty() || num_devices % (digits.back().size * digits.back().stride) != 0) return {};
  return digits;
}

int64_t NumberOf(absl::Span<const Digit> digits, int64_t id) {
  int64_t number = 0, scale = 1;
  for (const Digit& d : digits) {
    number += id / d.stride % d.size * scale;
    scale *= d.size;
  }
  return number;
}

// For each tile of a list the devices that hold it, the named one first.
std::vector<std::vector<int64_t>> HoldersByDigits(absl::Span<const int64_t> list,
                                                  absl::Span<const Digit> digits,
                                                  int64_t num_devices) {
  std::vector<int64_t> tile_of(list.size(), -1);
  for (size_t t = 0; t < list.size(); ++t) {
    int64_t& tile = tile_of[NumberOf(digits, list[t])];
    if (tile >= 0) return {};  // two named devices have the same digits
    tile = t;
  }
  std::vector<std::vector<int64_t>> holders(list.size());
  for (size_t t = 0; t < list.size(); ++t) holders[t].push_back(list[t]);
  for (int64_t d = 0; d < num_devices; ++d) {
    std::vector<int64_t>& same = holders[tile_of[NumberOf(digits, d)]];
    if (same[0] != d) same.push_back(d);
  }
  return holders;
}

// Where the ids are no grid: the others in ascending order, as many for each tile.
std::vector<std::vector<int64_t>> HoldersInOrder(absl::Span<const int64_t> list,
                                                 int64_t num_devices) {
  const absl::flat_hash_set<int64_t> named(list.begin(), list.end());
  std::vector<std::vector<int64_t>> holders;
  int64_t next = 0;
  for (int64_t device : list) {
    std::vector<int64_t>& same = holders.emplace_back();
    same.push_back(device);
    while (static_cast<int64_t>(same.size() * list.size()) < num_devices) {
      while (named.contains(next)) ++next;
      same.push_back(next++);
    }
  }
  return holders;
}

std::vector<int64_t> WithCopies(absl::Span<const int64_t> list, int64_t num_devices) {
  std::vector<int64_t> ascending(list.begin(), list.end());
  absl::c_sort(ascending);
  const std::vector<Digit> digits = DigitsOf(ascending, num_devices);
  std::vector<std::vector<int64_t>> holders;
  if (!digits.empty()) holders = HoldersByDigits(list, digits, num_devices);
  if (holders.empty()) holders = HoldersInOrder(list, num_devices);
  std::vector<int64_t> out;
  out.reserve(num_devices);
  for (const std::vector<int64_t>& same : holders) out.insert(out.end(), same.begin(), same.end());
  return out;
}

absl::Status NotOverAll(const HloSharding& tiling, std::string expected, int64_t found,
                        std::string fix) {
  return ToStatus({.code = "E163",
                   .message = absl::StrCat("the tiling ", tiling.Print(),
                                           " is over some devices of the program, and cannot be "
                                           "extended to all of them"),
                   .expected = std::move(expected),
                   .found = absl::StrCat(found),
                   .fix = std::move(fix)});
}

}  // namespace

bool NamesSomeDevices(const HloSharding& sharding, int64_t num_devices) {
  return sharding.kind == HloSharding::Kind::kTiled && sharding.num_devices() < num_devices;
}

int64_t DevicesNamed(const HloSharding& tiling) {
  return tiling.is_list() ? *absl::c_max_element(tiling.list) + 1 : tiling.num_devices();
}

absl::Status CheckDevices(const HloSharding& tiling) {
  int64_t count = tiling.list.size();
  if (!tiling.is_list()) {
    SHARDCALL_ASSIGN_OR_RETURN(const DeviceOrder order,
                               DeviceOrder::Iota(tiling.reshape, tiling.perm));
    count = order.num_devices();
  }
  if (count != tiling.num_devices()) {
    return ToStatus({.code = "E160",
                     .message = "a tiling has another number of devices than of tiles",
                     .expected = absl::StrCat(tiling.num_devices()),
                     .found = absl::StrCat(count),
                     .fix = "give each tile one device"});
  }
  absl::flat_hash_set<int64_t> seen;
  for (int64_t device : tiling.list) {
    const bool possible = device >= 0 && device < kMaxDevices;
    if (possible && seen.insert(device).second) continue;
    return ToStatus({.code = "E160",
                     .message = "a device list must hold each device once",
                     .found = absl::StrCat("the id ", device, possible ? " twice" : ""),
                     .fix = "give each device of the program one tile"});
  }
  return absl::OkStatus();
}

absl::StatusOr<HloSharding> OverAllDevices(const HloSharding& tiling, int64_t num_devices) {
  SHARDCALL_RETURN_IF_ERROR(CheckDevices(tiling));
  const int64_t tiles = tiling.num_devices();
  if (DevicesNamed(tiling) > num_devices) {
    return NotOverAll(tiling, absl::StrCat("devices below ", num_devices), DevicesNamed(tiling) - 1,
                      "use devices of the program");
  }
  if (tiles < 2 || num_devices % tiles != 0) {
    return NotOverAll(tiling,
                      absl::StrCat("2 devices or more, of a number that divides ", num_devices),
                      tiles, "use a tiling over all devices, or over a number that divides theirs");
  }
  if (absl::c_linear_search(tiling.subgroups, HloSharding::Subgroup::kManual)) {
    return NotOverAll(tiling, absl::StrCat(num_devices, " devices, since some are manual"), tiles,
                      "run the manual region on all devices");
  }
  if (tiling.is_list() && num_devices > kMostListed) {
    return NotOverAll(tiling, absl::StrCat("a list in a program of at most ", kMostListed),
                      num_devices, "write the devices as an iota expression");
  }
  HloSharding out = tiling;
  out.tile.push_back(num_devices / tiles);
  out.subgroups.push_back(HloSharding::Subgroup::kReplicated);
  if (tiling.is_list()) {
    out.list = WithCopies(tiling.list, num_devices);
  } else {
    // Devices 0 to tiles - 1, with the others behind them in rows of as many.
    out.reshape.insert(out.reshape.begin(), num_devices / tiles);
    if (out.perm.empty()) {
      out.perm.resize(tiling.reshape.size());
      std::iota(out.perm.begin(), out.perm.end(), 0);
    }
    for (int64_t& dim : out.perm) ++dim;
    out.perm.push_back(0);
  }
  CanonicalizeTiles(&out);
  if (!out.is_list()) return out;
  SHARDCALL_ASSIGN_OR_RETURN(const DeviceOrder order, DeviceOrder::List(out.list));
  if (order.is_iota()) {
    out.list.clear();
    out.reshape.assign(order.reshape().begin(), order.reshape().end());
    out.perm.assign(order.perm().begin(), order.perm().end());
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
