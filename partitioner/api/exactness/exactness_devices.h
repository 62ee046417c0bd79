// SPDX-License-Identifier: Apache-2.0
// Devices that follow the exactness of their values, each on a thread of its own. Before
// they exchange data, they tell each other what they know of it.
#ifndef SHARDCALL_PARTITIONER_API_EXACTNESS_EXACTNESS_DEVICES_H_
#define SHARDCALL_PARTITIONER_API_EXACTNESS_EXACTNESS_DEVICES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/api/exactness/exactness.h"
#include "shardcall/partitioner/api/exactness/order_of_sums.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {

// The program on `num_devices` devices, all of them with the same inputs; what the first
// has in the end.
absl::StatusOr<ExactResults> RunExactly(std::shared_ptr<const DeviceProgram> program,
                                        std::shared_ptr<const OrderOfSums> sums,
                                        std::vector<Tensor> inputs, const ExactOptions& options,
                                        int num_devices, const BaseMesh* mesh);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_EXACTNESS_EXACTNESS_DEVICES_H_
