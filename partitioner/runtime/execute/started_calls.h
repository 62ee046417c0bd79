// SPDX-License-Identifier: Apache-2.0
// The asynchronous collectives of one device. A start passes a call with all the buffers that it
// uses; its done takes the results.
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
inline namespace internal {

// One thread at a time may use it.
class StartedCalls {
 public:
  using Results = std::vector<Tensor>;
  using Call = std::function<absl::StatusOr<Results>(Communicator* comm)>;

  // `inner` (null: a single device) outlives this. With `meanwhile` calls run on a separate
  // thread, in the order of their starts, and `inner` must be used through comm() only; else a
  // start runs its call immediately.
  StartedCalls(Communicator* inner, bool meanwhile);
  // Waits for calls that were not finished: each has its deadline, and an Abort ends them.
  ~StartedCalls();

  Communicator* comm() { return async_ ? &*async_ : inner_; }

  // Returns the number for Finish. The captures of `call` live until it is done.
  int64_t Start(Call call);
  // Waits for the call; to be called once per number. Errors: the call's.
  absl::StatusOr<Results> Finish(int64_t number);

 private:
  struct Open;

  Communicator* const inner_;
  absl::optional<AsyncCommunicator> async_;
  std::vector<std::unique_ptr<Open>> open_;  // only a few at a time
  int64_t last_ = 0;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STARTED_CALLS_H_
