// SPDX-License-Identifier: Apache-2.0
// The call that XLA asks about, as a program of our own.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_ASKED_CALL_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_ASKED_CALL_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/bindings/xla/pjrt_answers.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

struct AskedCall {
  explicit AskedCall(Module m) : module(std::move(m)) {}
  Module module;
  int64_t num_partitions = 1;
};

// ENTRY { ROOT call(parameters) }, with the shardings on the parameters and the call, and with what
// the target's `like` has. E147 for a value that is not sharded here, for a call whose ABI is not
// known, and for one that is not as `like`.
absl::StatusOr<AskedCall> MakeAskedCall(const PjrtTarget& target, const PjrtQuestion& q);

// The first call of the target in the entry computation; invalid if there is none.
InstrId CallIn(const Module& module, absl::string_view target);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_ASKED_CALL_H_
