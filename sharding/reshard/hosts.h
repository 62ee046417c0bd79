// SPDX-License-Identifier: Apache-2.0
// Which devices share a host, and how much of what a collective sends leaves it: the part that the
// network between hosts has to carry.
#ifndef SHARDCALL_SHARDING_RESHARD_HOSTS_H_
#define SHARDCALL_SHARDING_RESHARD_HOSTS_H_

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
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
  bool one() const { return devices_ == 0; }
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
  int64_t host_of(int64_t device) const { return device / devices_; }

 private:
  friend void SetHosts(Context& context, const CostModel& cost);

  int64_t devices_ = 0;  // of each host, with successive ids; 0: one host has all
  double slower_ = 1;
  // The size of a group, and how many of its devices are on the host of the first one.
  using Group = std::pair<int64_t, int64_t>;
  absl::flat_hash_map<std::pair<const BaseMesh*, AxisList>, Group> groups_;
};

// From here on reshards of the context are planned for the hosts of `cost`. Plans that were made
// for others stay valid, but are not used again.
void SetHosts(Context& context, const CostModel& cost);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_HOSTS_H_
