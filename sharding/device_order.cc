// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {
namespace {

absl::Status BadOrder(std::string message, std::string found) {
  return ToStatus({.code = "E160",
                   .message = std::move(message),
                   .found = std::move(found),
                   .fix = "give every device id from 0 exactly once"});
}

// One dimension of an iota expression: positions with stride `position_stride` hold devices with
// stride `device_stride`.
struct Dim {
  int64_t size, position_stride, device_stride;
};

// Minor to major in positions. Empty if `ids` is not an iota expression.
std::vector<Dim> RecogniseIota(const std::vector<int64_t>& ids) {
  const int64_t n = ids.size();
  if (ids[0] != 0) return {};
  std::vector<Dim> dims;
  for (int64_t block = 1; block < n;) {
    const int64_t step = ids[block];
    int64_t size = 1;
    while (size * block < n && ids[size * block] == size * step) ++size;
    if (n % (block * size) != 0) return {};
    dims.push_back({size, block, step});
    block *= size;
  }
  std::vector<Dim> by_device = dims;
  std::sort(by_device.begin(), by_device.end(),
            [](const Dim& a, const Dim& b) { return a.device_stride < b.device_stride; });
  int64_t stride = 1;
  for (const Dim& d : by_device) {
    if (d.device_stride != stride) return {};
    stride *= d.size;
  }
  for (int64_t p = 0; p < n; ++p) {
    int64_t device = 0;
    for (const Dim& d : dims) device += p / d.position_stride % d.size * d.device_stride;
    if (ids[p] != device) return {};
  }
  if (dims.empty()) dims.push_back({1, 1, 1});
  return dims;
}

}  // namespace

DeviceOrder DeviceOrder::Identity(int64_t n) {
  DeviceOrder out;
  out.num_devices_ = n;
  out.reshape_ = {n};
  out.perm_ = {0};
  return out;
}

absl::StatusOr<DeviceOrder> DeviceOrder::Iota(absl::Span<const int64_t> reshape,
                                              absl::Span<const int64_t> perm) {
  int64_t n = 1;
  for (int64_t d : reshape) {
    if (d < 1 || __builtin_mul_overflow(n, d, &n) || n > kMaxDevices) {
      return BadOrder(
          "the reshape dimensions of a device order must be positive with a product "
          "below 2^31",
          absl::StrCat("[", absl::StrJoin(reshape, ","), "]"));
    }
  }
  absl::InlinedVector<int64_t, 8> order(perm.begin(), perm.end());
  if (order.empty()) {
    order.resize(reshape.size());
    std::iota(order.begin(), order.end(), 0);
  }
  absl::InlinedVector<bool, 8> seen(reshape.size(), false);
  bool valid = order.size() == reshape.size();
  for (size_t i = 0; valid && i < order.size(); ++i) {
    valid = order[i] >= 0 && order[i] < static_cast<int64_t>(seen.size()) && !seen[order[i]];
    if (valid) seen[order[i]] = true;
  }
  if (!valid) {
    return BadOrder(
        "the transposition of a device order must name each reshape dimension once",
        absl::StrCat("[", absl::StrJoin(reshape, ","), "]T(", absl::StrJoin(perm, ","), ")"));
  }
  // Drop dims of size 1, then merge neighbours that follow each other.
  absl::InlinedVector<int64_t, 8> kept;
  for (int64_t d : order) {
    if (reshape[d] != 1) kept.push_back(d);
  }
  if (kept.empty()) return Identity(1);
  // `last` skips dims of size 1 between two kept ones.
  auto follows = [&](int64_t a, int64_t b) {
    if (b <= a) return false;
    for (int64_t d = a + 1; d < b; ++d) {
      if (reshape[d] != 1) return false;
    }
    return true;
  };
  struct Group {
    int64_t first, size;
  };
  absl::InlinedVector<Group, 8> groups;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (i > 0 && follows(kept[i - 1], kept[i])) {
      groups.back().size *= reshape[kept[i]];
    } else {
      groups.push_back({kept[i], reshape[kept[i]]});
    }
  }
  absl::InlinedVector<Group, 8> sorted = groups;
  std::sort(sorted.begin(), sorted.end(),
            [](const Group& a, const Group& b) { return a.first < b.first; });
  DeviceOrder out;
  out.num_devices_ = n;
  for (const Group& g : sorted) out.reshape_.push_back(g.size);
  for (const Group& g : groups) {
    auto at = std::find_if(sorted.begin(), sorted.end(),
                           [&](const Group& s) { return s.first == g.first; });
    out.perm_.push_back(at - sorted.begin());
  }
  return out;
}

absl::StatusOr<DeviceOrder> DeviceOrder::List(std::vector<int64_t> ids) {
  const int64_t n = ids.size();
  if (n == 0) return BadOrder("a device list must not be empty", "");
  auto inverse = std::make_shared<std::vector<int64_t>>(n, -1);
  for (int64_t p = 0; p < n; ++p) {
    if (ids[p] < 0 || ids[p] >= n) {
      return BadOrder(absl::StrCat("a list of ", n, " devices must hold the ids 0 to ", n - 1),
                      absl::StrCat("the id ", ids[p]));
    }
    if ((*inverse)[ids[p]] >= 0) {
      return BadOrder("a device list must hold each device once",
                      absl::StrCat("the id ", ids[p], " twice"));
    }
    (*inverse)[ids[p]] = p;
  }
  if (std::vector<Dim> dims = RecogniseIota(ids); !dims.empty()) {
    std::vector<Dim> by_device = dims;
    std::sort(by_device.begin(), by_device.end(),
              [](const Dim& a, const Dim& b) { return a.device_stride > b.device_stride; });
    std::vector<int64_t> reshape, perm;
    for (const Dim& d : by_device) reshape.push_back(d.size);
    for (size_t i = dims.size(); i-- > 0;) {
      for (size_t j = 0; j < by_device.size(); ++j) {
        if (by_device[j].device_stride == dims[i].device_stride) perm.push_back(j);
      }
    }
    return Iota(reshape, perm);
  }
  DeviceOrder out;
  out.num_devices_ = n;
  out.list_ = std::make_shared<const std::vector<int64_t>>(std::move(ids));
  out.inverse_ = std::move(inverse);
  return out;
}

int64_t DeviceOrder::DeviceAt(int64_t position) const {
  if (list_ != nullptr) return (*list_)[position];
  if (perm_.size() <= 1) return position;
  int64_t device = 0;
  for (size_t i = perm_.size(); i-- > 0;) {
    const int64_t size = reshape_[perm_[i]];
    int64_t stride = 1;
    for (size_t j = perm_[i] + 1; j < reshape_.size(); ++j) stride *= reshape_[j];
    device += position % size * stride;
    position /= size;
  }
  return device;
}

int64_t DeviceOrder::PositionOf(int64_t device) const {
  if (list_ != nullptr) return (*inverse_)[device];
  if (perm_.size() <= 1) return device;
  int64_t position = 0;
  for (size_t i = 0; i < perm_.size(); ++i) {
    int64_t stride = 1;
    for (size_t j = perm_[i] + 1; j < reshape_.size(); ++j) stride *= reshape_[j];
    position = position * reshape_[perm_[i]] + device / stride % reshape_[perm_[i]];
  }
  return position;
}

bool operator==(const DeviceOrder& a, const DeviceOrder& b) {
  if (a.num_devices_ != b.num_devices_ || a.is_iota() != b.is_iota()) return false;
  if (a.is_iota()) return a.reshape_ == b.reshape_ && a.perm_ == b.perm_;
  return a.list_ == b.list_ || *a.list_ == *b.list_;
}

}  // namespace shardcall
