// SPDX-License-Identifier: Apache-2.0
// Small random programs of real sizes: up to eight ops between sharded arguments and results, loops
// among them. Their plans are compared with the best ones there are (search.h). The same seed gives
// the same program.
#ifndef SHARDCALL_TESTS_PLAN_SEARCH_SMALL_GRAPHS_H_
#define SHARDCALL_TESTS_PLAN_SEARCH_SMALL_GRAPHS_H_

#include <cstdint>
#include <string>

namespace shardcall {

struct SmallGraphOptions {
  int most_ops = 8;
  bool loops = true;
};

// HLO text over 4 or 8 devices, on a mesh of one or two axes. Arguments are annotated; of the
// results some are, and the others may be sharded as the program likes.
std::string SmallGraph(uint64_t seed, const SmallGraphOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PLAN_SEARCH_SMALL_GRAPHS_H_
