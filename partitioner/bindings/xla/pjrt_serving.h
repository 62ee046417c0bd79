// SPDX-License-Identifier: Apache-2.0
// A target of ours as a partitioner of a live XLA: whatever a TargetRegistry has
// for it (batch dims, rule string, callbacks) answers the three questions that
// XLA asks. Plugins take it by pjrt_partitioner.h; XLA:CPU in jaxlib takes it by
// jaxlib.xla_client.register_custom_call_partitioner, with a function for each.
//
//   partition                the call on its shards, as StableHLO: one custom call,
//                            and the collectives that its rule needs behind it. The
//                            operands' shardings are those that the rule wants; XLA
//                            reshards to them.
//   infer_sharding           what follows for the results from the operands
//   propagate_user_sharding  the part of a wish that the results can have
//
// XLA says neither the target's attributes beyond backend_config nor its mesh: the
// call has no side effects, aliases or layouts of its own here, and axes are
// x0, x1, .. unless the shardings name them.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_SERVING_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_SERVING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct PjrtTarget {
  std::string name;
  std::shared_ptr<const TargetRegistry> rules;
  // Of the calls, 1 to 4. 0: 4 where backend_config is a dictionary; for other
  // calls `partition` then answers E147.
  int api_version = 0;
};

// Callbacks that answer for the target from any thread, each with a Context of its
// own. Whoever has them calls their dtor once. E101 for a target without a rule,
// and for one whose calls say their batch dims: XLA does that itself, see
// RegisterBatchPartitionableWithPjrt.
absl::StatusOr<Shardcall_PjrtCallbacks*> NewPjrtCallbacks(PjrtTarget target);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_SERVING_H_
