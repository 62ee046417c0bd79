// SPDX-License-Identifier: Apache-2.0
// Makes registry entries of handlers that use XLA's typed FFI (API version 4).
//
// Stages, as in XLA: `instantiate` once for each call in a program, with attributes only;
// `prepare`, `initialize` and `execute` at each call. State set by instantiate lives as long as
// the program, that of the other stages as long as the call.
//
// Elements of 1, 2 and 4 bits are packed, as under XLA (packed_buffers.h).
//
// A handler that fails is E317 and keeps its status code; one that throws is E317 too. One that
// breaks the ABI (returns something that is not an error or future made by the runtime) is E318; a
// future that is not complete within HandlerContext::deadline is E319.
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
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/kernels/ffi/timed_call.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct FfiMetadata {
  int minor = 0;  // of version 0.minor
  abi::Traits traits = 0;
  int64_t state_type = 0;  // 0: none
};

// Queries the metadata of a stage's function. `target` and `stage` are for messages. E144 if it
// throws, fails, does not answer, or has an unsupported version; E319 if it does not return.
absl::StatusOr<FfiMetadata> QueryFfiMetadata(abi::Handler* handler, absl::string_view target,
                                             abi::Stage stage,
                                             absl::Duration deadline = kLoadDeadline);

// "COMMAND_BUFFER_COMPATIBLE" and so on for the known bits.
std::vector<std::string> FfiTraitNames(abi::Traits traits);

// An entry for a HandlerRegistry; `execute` is required. `library` is kept as long as the entry,
// or work that it started, lives. E144 as above.
absl::StatusOr<HandlerEntry> MakeTypedEntry(absl::string_view target, absl::string_view platform,
                                            const abi::HandlerBundle& stages,
                                            absl::string_view source,
                                            std::shared_ptr<const void> library = nullptr);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_TYPED_HANDLER_H_
