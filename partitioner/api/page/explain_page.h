// SPDX-License-Identifier: Apache-2.0
// The page of `explain --format=html`: one file that needs nothing else.
#ifndef SHARDCALL_PARTITIONER_API_PAGE_EXPLAIN_PAGE_H_
#define SHARDCALL_PARTITIONER_API_PAGE_EXPLAIN_PAGE_H_

#include <string>

#include "shardcall/partitioner/api/partition.h"

namespace shardcall {

// What the page shows, as JSON: collectives, their groups, source lines, warnings with their
// fixes, a step by the cost model, and the ops around the collectives. Times are seconds,
// sizes bytes; texts that repeat stand once, in "texts", and are numbers elsewhere.
std::string ExplainPageData(const PartitionedProgram& p, const SpmdOptions& options);

// The files of api/page/ with that data in them. Nothing of the program can leave its place
// in it: `<` is escaped, and the page's code makes text nodes of what it shows.
std::string ExplainPage(const PartitionedProgram& p, const SpmdOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_PAGE_EXPLAIN_PAGE_H_
