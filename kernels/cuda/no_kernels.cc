// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/cuda/kernels.h"

namespace shardcall::inline internal {

std::vector<std::pair<std::string, HostHandler>> CudaKernels() { return {}; }

}  // namespace shardcall::inline internal
