// SPDX-License-Identifier: Apache-2.0
// Plugins, the files that --plugin names: a manifest (manifest.h); a library that exports the
// entry point of shardcall_c.h; or a library that registers its own handlers through XLA's FFI
// (kernels/ffi/load/self_registration.h), whose targets have no rules.
//
// Threads may load plugins at once, into registries of their own. Into one registry, one thread
// loads at a time, and nobody else registers meanwhile: a plugin that fails takes back all that was
// registered since its load began.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_PLUGIN_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_PLUGIN_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/kernels/ffi/timed_call.h"
#include "shardcall/partitioner/bindings/c/shardcall_c.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/max_input.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// *.json is a manifest of at most `max_input` bytes, anything else a library. With `handlers` null
// only rules are registered. Errors: E143 a file that cannot be read; E064 a manifest that is too
// large; E142 a library that does not load, has no entry point and registers nothing, or was built
// for another version; those of LoadManifest; E141 or E144 an invalid handler; E146 an invalid
// registration. A library whose start-up code, entry or registration does not return within
// `deadline` is E319: its thread is abandoned, and its later registrations are refused, except that
// those of its start-up code are available to a later load.
absl::Status LoadPlugin(const std::string& path, TargetRegistry* targets,
                        HandlerRegistry* handlers = nullptr, LoweringRegistry* lowerings = nullptr,
                        absl::Duration deadline = kLoadDeadline, int64_t max_input = kMaxInput);

// Registers the result of a library's entry point; `library` is kept with its handlers.
absl::Status RegisterPlugin(const Shardcall_Plugin* plugin, absl::string_view source,
                            TargetRegistry* targets, HandlerRegistry* handlers,
                            std::shared_ptr<const void> library = nullptr,
                            LoweringRegistry* lowerings = nullptr,
                            absl::Duration deadline = kLoadDeadline);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_C_PLUGIN_H_
