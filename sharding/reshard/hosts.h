// SPDX-License-Identifier: Apache-2.0
// Which devices share a host, and how much of what a collective sends leaves it: the part that the
// network between hosts has to carry. Where a machine has rates by axes of the mesh, those that
// differ in the coordinates of slow axes are on different hosts.
#ifndef SHARDCALL_SHARDING_RESHARD_HOSTS_H_
#define SHARDCALL_SHARDING_RESHARD_HOSTS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/sharding/context.h"
#include "shardcall/sharding/cost_model.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {

// Who sends to whom in a group.
enum class Pattern : uint8_t {
  kRing,      // all-gather, reductions: each host receives every part once, all its devices share
              // the network
  kPairwise,  // all-to-all: each device to each other one
  kShift,     // permutes: all of what a device sends may go to another host
};

// That of a move; moves that are local send something only where they re-tile.
Pattern PatternOf(MoveKind kind);

// Those of a Context: all devices are on one until SetHosts.
class Hosts {
 public:
  bool one() const { return devices_ == 0 && by_device_.empty(); }
  // How much longer a byte takes between hosts than within one; at least 1.
  double slower() const { return slower_; }
  // Sets it, and returns what it was.
  double set_slower(double slower) { return std::exchange(slower_, slower); }
  // What `bytes` take as bytes within a host.
  double Weighted(double bytes, double between_hosts) const {
    return one() ? bytes : bytes + between_hosts * (slower_ - 1);
  }
  // Of what a device sends to the others of its group along `axes`, the share for other hosts.
  double Share(const BaseMesh& mesh, absl::Span<const AxisRef> axes, Pattern pattern);
  // The same of a group of `size` devices of which `here` are on one host.
  static double Share(int64_t size, int64_t here, Pattern pattern);
  // The same of a move.
  double Share(const Move& move);
  int64_t host_of(int64_t device) const {
    return by_device_.empty() ? device / devices_ : by_device_[device];
  }

 private:
  friend absl::Status SetHosts(Context& context, const CostModel& cost, const BaseMesh* mesh);

  int64_t devices_ = 0;             // of each host, with successive ids; 0: one host has all
  std::vector<int64_t> by_device_;  // the host of each device, in place of that; or empty
  double slower_ = 1;
  // The size of a group, and how many of its devices are on the host of the first one.
  using Group = std::pair<int64_t, int64_t>;
  absl::flat_hash_map<std::pair<const BaseMesh*, AxisList>, Group> groups_;
};

// The host of each device of the mesh where `cost` has rates of its axes, and some are slow; else
// none. E211 as of SetHosts.
absl::StatusOr<std::vector<int64_t>> HostsByAxes(const CostModel& cost, const BaseMesh* mesh);

// From here on reshards of the context are planned for the hosts of `cost`. Plans that were made
// for others stay valid, but are not used again. `mesh`: whose axes `cost` names, or null. E211 for
// axes that it does not have, and for those of it that have no rate.
absl::Status SetHosts(Context& context, const CostModel& cost, const BaseMesh* mesh = nullptr);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_HOSTS_H_
