// SPDX-License-Identifier: Apache-2.0
// Which devices reach each other over which links, and what the bytes of a collective take over
// those that it crosses: the network between hosts, or axes of the mesh with rates of their own. A
// collective that the backend lacks takes what those that stand for it take.
#ifndef SHARDCALL_SHARDING_RESHARD_LINKS_H_
#define SHARDCALL_SHARDING_RESHARD_LINKS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/sharding/backend.h"
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

Pattern PatternOf(Collective c);

// That of a move; moves that are local send something only where they re-tile.
Collective CollectiveOf(MoveKind kind);

// What `here` of the `size` devices of a group, which reach each other over faster links, send to
// the others of all that they send.
double ShareOfOthers(int64_t size, int64_t here, Pattern pattern);

// What a collective takes over the links that it crosses, or what those take that stand for it
// where the backend lacks it.
struct Crossing {
  double weight = 1;         // how many times as long a byte takes as by CostModel::bandwidth
  double latency = 0;        // seconds of all runs beyond CostModel::latency
  double between_hosts = 0;  // the share of what is sent over other links than the fastest ones
  double sent = 1;           // bytes that are sent for each byte of the collective
  int runs = 1;              // collectives that run
};

// Those of a Context: all are alike until SetLinks, and no collective lacks. They have levels, the
// fastest links first; the devices of one domain of a level reach each other over links of the
// levels before it.
class Links {
 public:
  bool alike() const { return levels_.empty(); }
  const BackendLimits& backend() const { return cost_.backend; }
  // Of groups of a mesh along `axes`.
  Crossing Of(const BaseMesh& mesh, absl::Span<const AxisRef> axes, Collective c);
  Crossing Of(const Move& move);
  // Of the permute of a value's shards. If the backend has none, all devices gather them.
  Crossing OfPermute(const BaseMesh& mesh, absl::Span<const AxisRef> axes);
  // Of a group of devices.
  Crossing OfGroup(absl::Span<const int64_t> group, Collective c) const;
  // Of a permute, by its slowest pair of devices.
  Crossing OfPairs(absl::Span<const int64_t> from, absl::Span<const int64_t> to) const;
  // What `collectives` collectives that send `bytes` in all take.
  Traffic Over(const Crossing& crossing, double bytes, int collectives = 1) const {
    return {bytes * crossing.sent, more_seconds(crossing, bytes, collectives),
            collectives * crossing.runs};
  }
  // Beyond what CostModel::bandwidth and latency say of what is sent.
  double more_seconds(const Crossing& crossing, double bytes, int collectives = 1) const {
    return bytes * (crossing.weight - crossing.sent) / cost_.bandwidth +
           collectives * crossing.latency;
  }
  // Whether searches for the cheapest reshard weigh bytes by their links, or take all for alike.
  bool weigh() const { return weigh_ && !alike(); }
  // Sets it, and returns what it was.
  bool set_weigh(bool weigh) { return std::exchange(weigh_, weigh); }

 private:
  friend absl::Status SetLinks(Context& context, const CostModel& cost, const BaseMesh* mesh);

  struct Level {
    double bandwidth = 0, latency = 0;
    int64_t devices = 0;          // of each domain, with successive ids; 0: as `domain` says
    std::vector<int64_t> domain;  // by device
    // Devices that the mesh does not have, as those of another replica, are on their own.
    int64_t DomainOf(int64_t device) const {
      if (devices > 0) return device / devices;
      return device < static_cast<int64_t>(domain.size()) ? domain[device] : -1 - device;
    }
    bool operator==(const Level&) const = default;
  };
  using Counts = absl::InlinedVector<int64_t, 4>;  // of a group, and of its part in each domain

  static absl::StatusOr<std::vector<Level>> LevelsOf(const CostModel& cost, const BaseMesh* mesh);
  // By the share of what is sent that crosses domains of a level or a later one.
  template <typename ShareOf>
  Crossing Sum(ShareOf share_of) const;
  Counts CountsOf(absl::Span<const int64_t> group) const;
  Crossing OfCounts(const Counts& counts, Pattern pattern) const;
  Crossing OfCounts(const Counts& counts, Collective c) const;

  CostModel cost_;             // whose links they are
  std::vector<Level> levels_;  // none where all links are as `cost_` says
  bool weigh_ = true;
  absl::flat_hash_map<std::pair<const BaseMesh*, AxisList>, Counts> groups_;
};

// From here on reshards of the context are planned for the links of `cost`. Plans that were made
// for others stay valid, but are not used again. `mesh`: whose axes `cost` names, or null. E211 for
// axes that it does not have.
absl::Status SetLinks(Context& context, const CostModel& cost, const BaseMesh* mesh = nullptr);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_LINKS_H_
