// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_SETTINGS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/bindings/xla/registration.h"

namespace shardcall::pjrt {

// What the environment says; lists are separated by ':' (files) or ',' (targets).
struct WrapperSettings {
  std::string wrapped;                       // SHARDCALL_WRAPPED_PLUGIN: a file
  std::vector<std::string> plugins;          // SHARDCALL_PLUGINS: manifests and libraries
  std::vector<std::string> allow_replicate;  // SHARDCALL_ALLOW_REPLICATE: targets, or all
  std::string report;                        // SHARDCALL_REPORT: a folder; empty: no reports
};
WrapperSettings SettingsOfEnvironment();

// The shipped targets and those of the plugins. Whatever LoadPlugin says.
absl::Status FillRegistry(const WrapperSettings& settings, Registry* registry);

// What goes into a framework's cache keys: our version, and a hash of all in `settings`
// that changes what a program becomes. The files are read; one that cannot be read counts
// as empty.
std::string RulesVersion(const WrapperSettings& settings);

// Writes NAME.PID.N.json and NAME.PID.N.html into settings.report, which is made if it is
// not there, N being a number that no other report of this process has. E061.
absl::Status WriteReport(const WrapperSettings& settings, const PartitionedProgram& program);

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_SETTINGS_H_
