// SPDX-License-Identifier: Apache-2.0
// Plugins given on the command line: a manifest (JSON) that gives rules.
//
//   {"targets": [{"name": "my_norm", "rule": "... d, d -> ... d",
//                 "need_replication": ["d"], "reduction": {"k": "add"},
//                 "permutation": [], "pad": {"k": 0}, "sizes": {"r": 4},
//                 "backend_config": "text that the call has"},
//                {"name": "row_solve", "batch_dims": 1}]}
#ifndef SHARDCALL_PARTITIONER_API_MANIFEST_H_
#define SHARDCALL_PARTITIONER_API_MANIFEST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "partitioner/custom_call/registry.h"

namespace shardcall {

// Registers every target of the manifest. Errors: E141 text that is no JSON or
// has other keys than these, E110 a rule that does not parse, E142 a manifest
// that asks for a library (`library`, `symbol`), which needs the plugin loader.
absl::Status LoadManifest(absl::string_view json, absl::string_view file_name,
                          TargetRegistry* targets);

// A plugin by its path: *.json is a manifest. E143 if the file cannot be read.
absl::Status LoadPlugin(const std::string& path, TargetRegistry* targets);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_MANIFEST_H_
