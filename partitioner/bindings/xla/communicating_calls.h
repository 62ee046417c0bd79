// SPDX-License-Identifier: Apache-2.0
// Custom calls whose handlers communicate (shardcall_ffi.h), in a program that another runtime runs
// on several devices of this process. That runtime knows nothing of our communicator, so each such
// call is run by a function of ours, which finds the devices that run the same call and gives the
// handler a communicator with them.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_COMMUNICATING_CALLS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_COMMUNICATING_CALLS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/bindings/xla/exported_calls.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/sharding/base/public.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall SHARDCALL_PUBLIC {

// Changes the typed calls of `module` whose handlers communicate, or are written in C++ by others,
// to targets of ours, and returns those. `ordinals` has the runtime's number of each device, by
// partition id; empty: some devices are not in this process, so that the handlers get no
// communicator and say so when they need one. `mesh` may be null. E140 for such a handler of a
// platform other than the host, which has no communicator there.
absl::StatusOr<std::vector<ExportedTarget>> ExportCommunicating(
    const HandlerRegistry& handlers, absl::string_view platform, absl::Span<const int> ordinals,
    int num_devices, const BaseMesh* mesh, Module* module);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_COMMUNICATING_CALLS_H_
