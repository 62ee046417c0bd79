// SPDX-License-Identifier: Apache-2.0
// Infeed and outfeed: each device transfers its shard without the padding. Where shards differ in
// size, a conditional has a branch for each size.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_FEEDS_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_FEEDS_H_

#include "shardcall/partitioner/spmd/localize/localizer.h"

namespace shardcall {
inline namespace internal {

// Stores the results of an infeed, or the token of an outfeed.
void LocalizeFeed(Localizer& l, const LocalOp& op);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_FEEDS_H_
