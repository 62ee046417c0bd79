// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_COMPILE_OPTIONS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_COMPILE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// A serialised CompileOptionsProto for a per-device program on these devices (the plugin's device
// ids, partition k on the k-th): one replica, as many partitions as devices, and XLA's own
// sharding passes switched off, so that the program is not partitioned again. `tupled_arguments`:
// the parameter is one tuple, and its elements are passed.
std::string PerDeviceOptions(absl::Span<const int64_t> device_ids, bool tupled_arguments);

// The options that a framework passes when it compiles.
struct RequestedOptions {
  int64_t num_replicas = 1, num_partitions = 1;
  bool spmd = false;       // XLA should partition the program
  bool auto_spmd = false;  // and choose the shardings
  // Which flat results and parameters may be given a sharding; one entry for all, or one each.
  // Empty: none.
  std::vector<bool> open_results, open_parameters;
};
// E339 for bytes that are not a CompileOptionsProto.
absl::StatusOr<RequestedOptions> ReadOptions(absl::string_view serialized);

// Options with which a plugin converts a program and then stops; see ToHlo. Both functions keep
// the options in `requested`, including unknown fields. `dump_folder`: where XLA writes its input
// module.
absl::StatusOr<std::string> DumpingOptions(absl::string_view requested,
                                           absl::string_view dump_folder);
// Makes XLA:GPU return before its passes.
absl::StatusOr<std::string> EarlyExitOptions(absl::string_view requested);
// Options for converting a program that came without options: `num_partitions` on the first
// devices. `spmd`: it is to be partitioned. `shardy`: its shardings are in the dialect sdy.
std::string PlainOptions(int64_t num_partitions, bool shardy, bool spmd = false);

// The requested options for the per-device module that replaces the program: XLA's sharding passes
// are switched off, no sharding is open, and the layouts are those of `module`, a serialised
// HloModuleProto.
absl::StatusOr<std::string> ReplacedOptions(absl::string_view requested, absl::string_view module);

// The module in an HloProto, or in the optimized program of a plugin. E339.
absl::StatusOr<std::string> HeldModule(absl::string_view holder);
// The HloModuleProto without its device assignment. E339.
absl::StatusOr<std::string> WithoutDevices(absl::string_view module);

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_COMPILE_OPTIONS_H_
