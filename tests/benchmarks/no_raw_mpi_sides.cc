// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmarks/collective_bench.h"

namespace shardcall::bench {

std::vector<Side> RawMpiSides(Op) { return {}; }

}  // namespace shardcall::bench
