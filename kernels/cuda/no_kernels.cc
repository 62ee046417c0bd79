// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/kernels.h"

namespace shardcall {

std::vector<std::pair<std::string, HostHandler>> CudaKernels() { return {}; }

}  // namespace shardcall
