// SPDX-License-Identifier: Apache-2.0
// The page of `explain --format=html`: one self-contained file.
#ifndef SHARDCALL_PARTITIONER_API_PAGE_EXPLAIN_PAGE_H_
#define SHARDCALL_PARTITIONER_API_PAGE_EXPLAIN_PAGE_H_

#include <string>

#include "shardcall/partitioner/api/partition.h"

namespace shardcall::inline internal {

// The data of the page as JSON: collectives, their groups, source lines, warnings with their
// fixes, a step by the cost model, and the ops around the collectives. Times are in seconds, sizes
// in bytes. Repeated texts are stored once, in "texts", and referred to by index.
std::string ExplainPageData(const PartitionedProgram& p, const SpmdOptions& options);

// The page from the files of api/page/ with that data embedded. Text of the program cannot become
// markup: `<` is escaped in the data, and the page's script inserts it only as text nodes.
std::string ExplainPage(const PartitionedProgram& p, const SpmdOptions& options);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_API_PAGE_EXPLAIN_PAGE_H_
