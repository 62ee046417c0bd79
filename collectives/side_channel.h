// SPDX-License-Identifier: Apache-2.0
// Exchanges a few bytes between ranks outside of a transport (NCCL) that needs this to start, or
// to find absent ranks: over another communicator, or TCP.
#ifndef SHARDCALL_COLLECTIVES_SIDE_CHANNEL_H_
#define SHARDCALL_COLLECTIVES_SIDE_CHANNEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "shardcall/collectives/communicator.h"

namespace shardcall {
inline namespace internal {

class SideChannel {
 public:
  static constexpr size_t kMaxBytes = 240;  // of one text

  virtual ~SideChannel() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Collective over the group: returns the text of every member, in group order. `what` is for
  // messages. E301 names the ranks that did not come in time.
  virtual absl::StatusOr<std::vector<std::string>> Gather(absl::Span<const int> group,
                                                          const std::string& mine,
                                                          absl::string_view what) = 0;
  // OK, or the failure that another rank has sent, where the channel can receive one.
  virtual absl::Status Told() { return absl::OkStatus(); }
  // The same as in Communicator.
  virtual void BeginWait() {}
  virtual void EndWait() {}
  virtual Departures FindDeparted(absl::Span<const int> /*group*/) { return {}; }
  // Sends this rank's failure to the others, where the channel can.
  virtual void Abort(const absl::Status& /*reason*/) {}
};

// Over a communicator, which outlives it.
std::unique_ptr<SideChannel> SideChannelOver(Communicator& communicator);

// Over TCP: rank 0 listens at `address` ("host:port"), the others connect to it. E301 if that
// takes longer than `deadline`, which also bounds every Gather; E306 for an invalid address, E307
// where the system fails.
absl::StatusOr<std::unique_ptr<SideChannel>> SideChannelOverTcp(const std::string& address,
                                                                int rank, int size,
                                                                absl::Duration deadline);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_SIDE_CHANNEL_H_
