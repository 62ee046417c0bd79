// SPDX-License-Identifier: Apache-2.0
// What the page of `explain --format=html` shows of a partitioned program.
#ifndef SHARDCALL_PARTITIONER_API_PAGE_CONTENT_H_
#define SHARDCALL_PARTITIONER_API_PAGE_CONTENT_H_

#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/page/explain_page.h"

namespace shardcall {
inline namespace internal {

// Refers to `p`, which must outlive it. `whole_reasons`: as in Explain().
PageContent PageContentOf(const PartitionedProgram& p, const SpmdOptions& options,
                          bool whole_reasons = false);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_PAGE_CONTENT_H_
