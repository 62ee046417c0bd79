// SPDX-License-Identifier: Apache-2.0
// PJRT plugins as an engine: XLA's CPUs, GPUs and TPUs run what is partitioned here.
//
//   SHARDCALL_ASSIGN_OR_RETURN(auto engine, MakePjrtEngine("libplugin.so"));
//   RunOptions options;
//   options.backend = Backend::kPjrt;
//   options.engine = engine.get();
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_ENGINE_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_ENGINE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "partitioner/api/engine.h"
#include "partitioner/bindings/pjrt/pjrt_client.h"

namespace shardcall {

// Loads the plugin; its client is made when a program is run, for as many devices, and
// kept. E333, E334. One thread at a time.
absl::StatusOr<std::unique_ptr<Engine>> MakePjrtEngine(const std::string& plugin,
                                                       pjrt::CreateOptions options = {});

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_PJRT_ENGINE_H_
