// SPDX-License-Identifier: Apache-2.0
// Handlers written against XLA's typed FFI (API version 4), as ours.
//
// Stages, as XLA has them: `instantiate` once for each call in a program,
// with attributes alone; `prepare`, `initialize` and `execute` at each call.
// What instantiate sets lives as long as the program, the states of the others
// as long as the call.
//
// A handler that fails keeps its code: E317. One that breaks the ABI (returns
// what is no error or no future of ours) is E318, a future that is not complete
// within HandlerContext::deadline E319; a throw is E317.
#ifndef SHARDCALL_KERNELS_FFI_TYPED_HANDLER_H_
#define SHARDCALL_KERNELS_FFI_TYPED_HANDLER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/abi_table.h"
#include "shardcall/kernels/ffi/guard/timed_call.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct FfiMetadata {
  int minor = 0;  // of version 0.minor
  abi::Traits traits = 0;
  int64_t state_type = 0;  // 0: none
};

// Asks a stage's function. `target` and `stage` are for messages. E144 if it
// throws, refuses, does not answer, or is of a version that is not supported; E319 if it
// does not return.
absl::StatusOr<FfiMetadata> QueryFfiMetadata(abi::Handler* handler, absl::string_view target,
                                             abi::Stage stage,
                                             absl::Duration deadline = kLoadDeadline);

// "COMMAND_BUFFER_COMPATIBLE" for the bits that are known.
std::vector<std::string> FfiTraitNames(abi::Traits traits);

// An entry that can be registered; `execute` is required. `library` is kept as
// long as the entry, or work that it started, lives. E144 as above.
absl::StatusOr<HandlerEntry> MakeTypedEntry(absl::string_view target, absl::string_view platform,
                                            const abi::HandlerBundle& stages,
                                            absl::string_view source,
                                            std::shared_ptr<const void> library = nullptr);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_TYPED_HANDLER_H_
