// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/cuda/kernels.h"

namespace shardcall {
inline namespace internal {

std::vector<std::pair<std::string, HostHandler>> CudaKernels() { return {}; }

}  // namespace internal
}  // namespace shardcall
