// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_FIND_PLUGIN_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_FIND_PLUGIN_H_

#include <string>

namespace shardcall::pjrt {

// The plugin that converts StableHLO where none is named: what the environment variables
// SHARDCALL_CONVERTER or SHARDCALL_WRAPPED_PLUGIN name, else that of an installed wheel
// (xla-cpu-pjrt, jax-cuda13-pjrt or jax-cuda12-pjrt) in the Python environment that is
// active, the user's or the system's. Empty if there is none.
std::string FindConverter();

// What the environment variable says; empty where there is none.
std::string EnvironmentVariable(const char* name);

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_FIND_PLUGIN_H_
