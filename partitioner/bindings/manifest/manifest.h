// SPDX-License-Identifier: Apache-2.0
// Manifests: JSON that gives rules, assigns shipped kernels to targets, or names the handlers of
// an ordinary XLA FFI library.
//
//   {"library": "libk.so",
//    "types": [{"name": "State", "type_id": "symbol", "type_info": "symbol"}],
//    "targets": [{"name": "my_norm", "symbol": "MyNorm", "platform": "Host",
//                 "api_version": 4, "traits": ["COMMAND_BUFFER_COMPATIBLE"],
//                 "rule": "... d, d -> ... d",
//                 "need_replication": ["d"], "reduction": {"k": "add"},
//                 "permutation": [], "pad": {"k": 0}, "sizes": {"r": 4},
//                 "backend_config": "text that the call has"},
//                {"name": "multi", "rules": ["i j -> i j", {"rule": "i j, j -> i j",
//                 "types": "T, f32 -> T", "when": {"mode": "gelu"}, "need_replication": ["j"]}]},
//                {"name": "stateful", "symbol": {"instantiate": "Make", "execute": "Use"}},
//                {"name": "row_solve", "batch_dims": 1},
//                {"name": "my_ffn", "partition_like": "ffn.hlo"},
//                {"name": "batch_fft", "batch_dims": 1,
//                 "kernel": "fft", "attributes": "{fft_type = \"IFFT\"}"}]}
//
// `rules` are the signatures of a target; of those that fit a call the narrowest is its rule
// (rule_choice.h).
//
// `partition_like` is a file with HLO text, from which the target's rule is made (reference.h).
// Its path and that of `library` are relative to the manifest. `types` are registered before any
// handler's version is queried: they name variables of the library that hold the id of a type
// (XLA_FFI_TypeId) and its deleter (XLA_FFI_TypeInfo).
//
// A target that has a rule may have a VJP and a batching rule (target_facts.h), and
// calls that are marked by name may be lowered to a target (lowering.h):
//
//   {"targets": [{"name": "my_norm", "rule": "b d, d -> b d, b", ..,
//                 "vjp": {"target": "my_norm_bwd",
//                         "arguments": ["cotangent 0", "operand 0", "operand 1", "result 1"],
//                         "gradients": [0, 1]},
//                 "batching": "leading"}],
//    "lowerings": [{"name": "my.gelu", "platform": "Host", "target": "fast_gelu",
//                   "operand_types": ["f32"], "result_types": ["f32"]}]}
//
// A pad is a number, "inf", "-inf" or "nan". A size may be a formula, {"sizes": {"g": "4 h"}}, and
// "ranges": {"operand 2": [0, "s"]} gives the lower bound of an operand's elements and their
// exclusive upper bound: checks of the rule make their calls accordingly (call_limits.h).
//
// `vjp` may have a "computation", the path of HLO text, instead of a target, a "backend_config"
// for the VJP's call, and a "pad": {"b": 0} for factors over which gradients are summed.
// With
// "skip_absent_operands": true, calls that leave out operands have a VJP, too.
// `batching` is "leading", "broadcast", "loop" or {"target": NAME}. A lowering without platform is
// for all of them; its `backend_config` defaults to that of the call, or to the composite's
// attributes; `api_version` is 1 to 4, by default 4; `column_major` passes matrices in LAPACK's
// column-major order.
//
// `kernel` names a target that has a handler; `attributes` replaces the attributes of the call. A
// library that registers its own handlers, by XLA_FFI_REGISTER_HANDLER, needs neither `symbol` nor
// `types`: its registrations are taken under their names, whether or not the manifest has a target
// of that name. A target with a kernel, a symbol or such a handler needs no rule if the program
// has one. Each entry is only for calls with its `backend_config`, if it gives one.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_MANIFEST_MANIFEST_H_
#define SHARDCALL_PARTITIONER_BINDINGS_MANIFEST_MANIFEST_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/kernels/ffi/timed_call.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/max_input.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Registers every target of the manifest. Without `handlers` it registers only the rules, and a
// manifest with a library is E142. Errors: E141 invalid JSON, unknown keys, or a name that is
// registered already; E110 a rule that does not parse; E140 an unknown kernel; E131 attributes
// that do not parse; E064 a program that it names and that is larger than `max_input` bytes; E142
// to E145 a library, a symbol or a handler that cannot be used; E319 one
// that does not return.
absl::Status LoadManifest(absl::string_view json, absl::string_view file_name,
                          TargetRegistry* targets, HandlerRegistry* handlers = nullptr,
                          LoweringRegistry* lowerings = nullptr,
                          absl::Duration deadline = kLoadDeadline, int64_t max_input = kMaxInput);

// The same from a file. E143 if it cannot be read; E064 if it, or a program that it names, is
// larger than `max_input` bytes.
absl::Status LoadManifestFile(const std::string& path, TargetRegistry* targets,
                              HandlerRegistry* handlers = nullptr,
                              LoweringRegistry* lowerings = nullptr,
                              absl::Duration deadline = kLoadDeadline,
                              int64_t max_input = kMaxInput);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_MANIFEST_MANIFEST_H_
