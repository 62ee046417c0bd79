// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_COMPILE_OPTIONS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_COMPILE_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace shardcall::pjrt {

// A serialised CompileOptionsProto for a per-device program over these devices (ids of
// the plugin's, partition k on the k-th): one replica, as many partitions, and XLA's own
// sharding passes switched off, so that it is not partitioned again.
// `tupled_arguments`: the one parameter is a tuple, whose parts are given.
std::string PerDeviceOptions(absl::Span<const int64_t> device_ids, bool tupled_arguments);

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_COMPILE_OPTIONS_H_
