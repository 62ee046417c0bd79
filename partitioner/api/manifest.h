// SPDX-License-Identifier: Apache-2.0
// Manifests: JSON that gives rules, says which shipped kernel computes a target,
// names the handlers of an ordinary XLA FFI library, or all of that.
//
//   {"library": "libk.so",
//    "types": [{"name": "State", "type_id": "symbol", "type_info": "symbol"}],
//    "targets": [{"name": "my_norm", "symbol": "MyNorm", "platform": "Host",
//                 "api_version": 4, "traits": ["COMMAND_BUFFER_COMPATIBLE"],
//                 "rule": "... d, d -> ... d",
//                 "need_replication": ["d"], "reduction": {"k": "add"},
//                 "permutation": [], "pad": {"k": 0}, "sizes": {"r": 4},
//                 "backend_config": "text that the call has"},
//                {"name": "stateful", "symbol": {"instantiate": "Make", "execute": "Use"}},
//                {"name": "row_solve", "batch_dims": 1},
//                {"name": "my_ffn", "partition_like": "ffn.hlo"},
//                {"name": "batch_fft", "batch_dims": 1,
//                 "kernel": "fft", "attributes": "{fft_type = \"IFFT\"}"}]}
//
// `partition_like` is HLO text whose rule the target has (reference.h). A path of
// `library` or of that is relative to the manifest. `types` are registered
// before any handler is asked for its version: variables of the library that
// hold the id of a type (XLA_FFI_TypeId) and how it is deleted
// (XLA_FFI_TypeInfo).
//
// `kernel` names a target that has a handler; `attributes` is what that gets in
// place of the call's own. A target with a kernel or a symbol needs no rule where
// the program states one. Each is for calls with its `backend_config`, if it
// gives one.
#ifndef SHARDCALL_PARTITIONER_API_MANIFEST_H_
#define SHARDCALL_PARTITIONER_API_MANIFEST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/ffi/handler.h"
#include "partitioner/custom_call/registry.h"

namespace shardcall {

// Registers every target of the manifest; without `handlers` its rules alone,
// and one with a library is then E142. Errors: E141 text that is no JSON or has
// other keys than these, or a name that is taken, E110 a rule that does not
// parse, E140 an unknown kernel, E131 attributes that do not parse, E142 to E145
// a library, a symbol or a handler that cannot be used.
absl::Status LoadManifest(absl::string_view json, absl::string_view file_name,
                          TargetRegistry* targets, HandlerRegistry* handlers = nullptr);

// The same from a file. E143 if it cannot be read.
absl::Status LoadManifestFile(const std::string& path, TargetRegistry* targets,
                              HandlerRegistry* handlers = nullptr);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_MANIFEST_H_
