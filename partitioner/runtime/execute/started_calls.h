// SPDX-License-Identifier: Apache-2.0
// The collectives of one device that go on while it computes. A start hands over
// a call with all that it reads and writes, its done takes the results.
//
//   StartedCalls started(comm.get(), /*meanwhile=*/true);
//   device.comm = started.comm();     // for the collectives in between, too
//   device.started = &started;
#ifndef SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STARTED_CALLS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STARTED_CALLS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "shardcall/collectives/async.h"
#include "shardcall/collectives/communicator.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall {

// One thread at a time may use it.
class StartedCalls {
 public:
  using Results = std::vector<Tensor>;
  using Call = std::function<absl::StatusOr<Results>(Communicator* comm)>;

  // `inner` (null: one device without others) outlives this. With `meanwhile`
  // calls run on a thread of their own, in the order of their starts, and `inner`
  // is to be used by way of comm() alone; else a start makes its call at once.
  StartedCalls(Communicator* inner, bool meanwhile);
  // Awaits what nobody took: each call has its deadline, and an Abort ends them.
  ~StartedCalls();

  Communicator* comm() { return async_ ? &*async_ : inner_; }

  // The number to finish it by. What `call` captures lives until it is over.
  int64_t Start(Call call);
  // Awaits the call; each number once. Errors: the call's.
  absl::StatusOr<Results> Finish(int64_t number);

 private:
  struct Open;

  Communicator* const inner_;
  absl::optional<AsyncCommunicator> async_;
  std::vector<std::unique_ptr<Open>> open_;  // few at a time
  int64_t last_ = 0;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STARTED_CALLS_H_
