// SPDX-License-Identifier: Apache-2.0
// Runs several devices that track the exactness of their values, each on its own thread. Before a
// collective they also exchange the exactness of its operands.
#ifndef SHARDCALL_PARTITIONER_EXACTNESS_EXACTNESS_DEVICES_H_
#define SHARDCALL_PARTITIONER_EXACTNESS_EXACTNESS_DEVICES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/exactness/exactness.h"
#include "shardcall/partitioner/exactness/order_of_sums.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {
inline namespace internal {

// Runs the program on `num_devices` devices, all with the same inputs; returns the results of the
// first device.
absl::StatusOr<ExactResults> RunExactly(std::shared_ptr<const DeviceProgram> program,
                                        std::shared_ptr<const OrderOfSums> sums,
                                        std::vector<Tensor> inputs, const ExactOptions& options,
                                        int num_devices, const BaseMesh* mesh);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_EXACTNESS_EXACTNESS_DEVICES_H_
