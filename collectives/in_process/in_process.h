// SPDX-License-Identifier: Apache-2.0
// The backend whose devices are threads of one process. They read and write each other's buffers
// directly, sleep while they wait, and agree on every call before data is moved. A device that
// fails, leaves or never comes ends the calls of its groups with a status that names it; the other
// devices never hang.
//
//   InProcessWorld world(8, absl::Seconds(20));
//   // on thread r:
//   std::unique_ptr<Communicator> comm = world.Rank(r);
//   comm->AllReduce({0, 1, 2, 3}, ReduceKind::kSum, ElementType::kF32, in, out, n, {"%ar"});
#ifndef SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_H_
#define SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_H_

#include <memory>

#include "absl/time/time.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall {
inline namespace internal {
class InProcessState;
}  // namespace internal
}  // namespace shardcall

namespace shardcall SHARDCALL_PUBLIC {

class InProcessWorld {
 public:
  // `deadline` bounds every wait for another device. size is at least 1.
  InProcessWorld(int size, absl::Duration deadline);

  // The communicator of device r; call this once per r. One thread at a time may use it, except
  // for Abort. Destroying it means leaving: pending and later calls of groups that still need this
  // device fail with E304. It may outlive the world.
  std::unique_ptr<Communicator> Rank(int r);

 private:
  std::shared_ptr<InProcessState> state_;
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_IN_PROCESS_IN_PROCESS_H_
