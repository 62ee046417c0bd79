// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_COMPILE_OPTIONS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_COMPILE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardcall::pjrt {

// A serialised CompileOptionsProto for a per-device program over these devices (ids of
// the plugin's, partition k on the k-th): one replica, as many partitions, and XLA's own
// sharding passes switched off, so that it is not partitioned again.
// `tupled_arguments`: the one parameter is a tuple, whose parts are given.
std::string PerDeviceOptions(absl::Span<const int64_t> device_ids, bool tupled_arguments);

// What a framework asks for when it compiles.
struct RequestedOptions {
  int64_t num_replicas = 1, num_partitions = 1;
  bool spmd = false;       // XLA is to partition the program
  bool auto_spmd = false;  // and to find the shardings
  // Which flat results and parameters may be given a sharding; one entry for all, or
  // one each. Empty: none.
  std::vector<bool> open_results, open_parameters;
};
// E339 for bytes that are no CompileOptionsProto.
absl::StatusOr<RequestedOptions> ReadOptions(absl::string_view serialized);

// Options under which a plugin converts a program and gets no further; see ToHlo. Both
// keep what `requested` says and what is not known here.
// `dump_folder`: where the module that XLA starts with is written.
absl::StatusOr<std::string> DumpingOptions(absl::string_view requested,
                                           absl::string_view dump_folder);
// XLA:GPU returns before its passes.
absl::StatusOr<std::string> EarlyExitOptions(absl::string_view requested);
// What a program that nobody has asked for yet is converted with: `num_partitions` on the
// first devices. `spmd`: it is to be partitioned. `shardy`: its shardings are those of the dialect
// sdy.
std::string PlainOptions(int64_t num_partitions, bool shardy, bool spmd = false);

// The requested options for the per-device module that takes the program's place: XLA's
// sharding passes are off beside those that are off already, nothing is open, and the
// layouts are those of `module`, a serialised HloModuleProto.
absl::StatusOr<std::string> ReplacedOptions(absl::string_view requested, absl::string_view module);

// The module in an HloProto, or in what a plugin gives as the optimized program. E339.
absl::StatusOr<std::string> HeldModule(absl::string_view holder);
// The HloModuleProto without the devices that it was compiled for. E339.
absl::StatusOr<std::string> WithoutDevices(absl::string_view module);

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_COMPILE_OPTIONS_H_
