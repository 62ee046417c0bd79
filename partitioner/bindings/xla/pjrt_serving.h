// SPDX-License-Identifier: Apache-2.0
// Serves a target of a TargetRegistry as a partitioner of XLA: its rule (batch dims, rule string
// or callbacks) answers the three questions that XLA asks. Plugins accept it through
// pjrt_partitioner.h; XLA:CPU in jaxlib through
// jaxlib.xla_client.register_custom_call_partitioner, with one function for each question.
//
//   partition                the call on its shards, as StableHLO: one custom call,
//                            and the collectives that its rule needs behind it. The
//                            operands' shardings are those that the rule wants; XLA
//                            reshards to them.
//   infer_sharding           the results' shardings that follow from the operands'
//   propagate_user_sharding  the part of a user's sharding that a result can have
//
// XLA passes neither the call's attributes beyond backend_config nor its mesh: so the call has
// no side effects, aliases or layouts here unless PjrtTarget::like says them, and axes are x0, x1,
// .. unless the shardings name them.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_SERVING_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_SERVING_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct PjrtTarget {
  std::string name;
  std::shared_ptr<const TargetRegistry> rules;
  // The API version of the calls, 1 to 4. 0: 4 if backend_config is a dictionary; for other calls
  // `partition` then answers E147.
  int api_version = 0;
  // What the calls are like in all that XLA does not pass: a program whose entry computation calls
  // the target once, with the layouts, aliases, side effects and API version that all of them
  // have, and with as many operands and results of the same ranks. Null: it is not known.
  std::shared_ptr<const Module> like = nullptr;
};

// Thread-safe callbacks for the target; each call uses its own Context. The owner calls their dtor
// once. E101 for a target without a rule, and for one whose calls give their batch dims: XLA
// handles that itself, see RegisterBatchPartitionableWithPjrt. E147 for a `like` without a call.
absl::StatusOr<Shardcall_PjrtCallbacks*> NewPjrtCallbacks(PjrtTarget target);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_PJRT_SERVING_H_
