// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_SETTINGS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/bindings/xla/registration.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

// The settings in the environment; lists are separated by ':' (files) or ',' (targets).
struct WrapperSettings {
  std::string wrapped;                       // SHARDCALL_WRAPPED_PLUGIN: a file
  std::vector<std::string> plugins;          // SHARDCALL_PLUGINS: manifests and libraries
  std::vector<std::string> allow_replicate;  // SHARDCALL_ALLOW_REPLICATE: targets, or all
  std::string report;                        // SHARDCALL_REPORT: a folder; empty: no reports
};
WrapperSettings SettingsOfEnvironment();

// Registers the shipped targets and those of the plugins. Errors as for LoadPlugin.
absl::Status FillRegistry(const WrapperSettings& settings, Registry* registry);

// For a framework's cache keys: shardcall's version, and a hash of everything in `settings` that
// affects compiled programs. The files are read; one that cannot be read counts as empty.
std::string RulesVersion(const WrapperSettings& settings);

// Writes NAME.PID.N.json and NAME.PID.N.html into settings.report, which is created if needed; N
// is a number that is unique in this process. E061, which must not stop the program: W209.
absl::Status WriteReport(const WrapperSettings& settings, const PartitionedProgram& program);

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_SETTINGS_H_
