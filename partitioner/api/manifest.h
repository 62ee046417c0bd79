// SPDX-License-Identifier: Apache-2.0
// Plugins given on the command line: a manifest (JSON) that gives rules, and
// says which shipped kernel computes a target.
//
//   {"targets": [{"name": "my_norm", "rule": "... d, d -> ... d",
//                 "need_replication": ["d"], "reduction": {"k": "add"},
//                 "permutation": [], "pad": {"k": 0}, "sizes": {"r": 4},
//                 "backend_config": "text that the call has"},
//                {"name": "row_solve", "batch_dims": 1},
//                {"name": "batch_fft", "batch_dims": 1,
//                 "kernel": "fft", "attributes": "{fft_type = \"IFFT\"}"}]}
//
// `kernel` names a target that has a handler; `attributes` is what that gets in
// place of the call's own. A target with a kernel needs no rule where the program
// states one. Each is for calls with its `backend_config`, if it gives one.
#ifndef SHARDCALL_PARTITIONER_API_MANIFEST_H_
#define SHARDCALL_PARTITIONER_API_MANIFEST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/ffi/handler.h"
#include "partitioner/custom_call/registry.h"

namespace shardcall {

// Registers every target of the manifest; without `handlers` its rules alone.
// Errors: E141 text that is no JSON or has other keys than these, E110 a rule
// that does not parse, E140 an unknown kernel, E131 attributes that do not parse,
// E142 a manifest that asks for a library (`library`, `symbol`), which needs the
// plugin loader.
absl::Status LoadManifest(absl::string_view json, absl::string_view file_name,
                          TargetRegistry* targets, HandlerRegistry* handlers = nullptr);

// A plugin by its path: *.json is a manifest. E143 if the file cannot be read.
absl::Status LoadPlugin(const std::string& path, TargetRegistry* targets,
                        HandlerRegistry* handlers = nullptr);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_MANIFEST_H_
