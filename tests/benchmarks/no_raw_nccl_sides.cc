// SPDX-License-Identifier: Apache-2.0
// Stands in where shardcall is built without NCCL.
#include "tests/benchmarks/collective_bench.h"

namespace shardcall::bench {

absl::StatusOr<std::function<std::vector<Side>(Op)>> RawNcclSides(Communicator&) {
  return absl::UnavailableError("built without NCCL");
}
const Memory* DeviceMemory() { return nullptr; }

}  // namespace shardcall::bench
