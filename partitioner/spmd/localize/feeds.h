// SPDX-License-Identifier: Apache-2.0
// Feeds from and to the host: each device feeds its shard, without what it is padded
// with. Where that differs between devices, a conditional has a branch for each form.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_FEEDS_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_FEEDS_H_

#include "shardcall/partitioner/spmd/localize/localizer.h"

namespace shardcall {

// Stores what an infeed yields, or the token of an outfeed.
void LocalizeFeed(Localizer& l, const LocalOp& op);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_FEEDS_H_
