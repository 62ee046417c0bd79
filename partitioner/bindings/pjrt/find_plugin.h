// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_FIND_PLUGIN_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_FIND_PLUGIN_H_

#include <string>

namespace shardcall {
inline namespace internal {
namespace pjrt {

// The plugin that converts StableHLO if none is named: that of the environment variables
// SHARDCALL_CONVERTER or SHARDCALL_WRAPPED_PLUGIN, else that of an installed wheel (xla-cpu-pjrt,
// jax-cuda13-pjrt or jax-cuda12-pjrt) in the active Python environment, the user's or the
// system's. Empty if there is none.
std::string FindConverter();

// The value of the environment variable; empty if it is not set.
std::string EnvironmentVariable(const char* name);

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_FIND_PLUGIN_H_
